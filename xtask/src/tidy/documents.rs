//! Paths and links in documents have to exist.

use super::markdown;
use super::tree::{SourceTree, TidyFinding};

const MAP: &str = "ARCHITECTURE.md";
const MAPPED: &[&str] = &["crates/", "xtask/", "docs/", "web/", ".ci/"];

pub fn the_map_names_existing_paths(tree: &SourceTree) -> Vec<TidyFinding> {
    let Some(text) = tree.text(MAP) else {
        return vec![TidyFinding::on(MAP, "the file is missing; write the code map")];
    };
    let mut findings = Vec::new();
    for line in markdown::lines(text) {
        let candidates: Vec<&str> = match line.is_fenced {
            true => line.text.split_whitespace().take(1).collect(),
            false => markdown::code_spans(line.text).collect(),
        };
        let named = candidates.into_iter().filter(|candidate| MAPPED.iter().any(|start| candidate.starts_with(start)));
        for path in named.flat_map(expand) {
            if !tree.has(plain(&path)) {
                let advice = format!("`{path}` does not exist; correct the code map");
                findings.push(TidyFinding::at(MAP, line.number, advice));
            }
        }
    }
    findings
}

/// `a/{b,c}/d` names two paths.
fn expand(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (choices, after))) = parts else {
        return vec![path.to_owned()];
    };
    choices.split(',').flat_map(|choice| expand(&format!("{before}{}{after}", choice.trim()))).collect()
}

/// Without a line number, an item, and anything from the first placeholder on.
fn plain(path: &str) -> &str {
    let path = path.split([':', '#', ' ']).next().unwrap_or(path);
    match path.find(['*', '<', '…']) {
        Some(placeholder) => path[..placeholder].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => path,
    }
}

pub fn links_hold(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for line in markdown::lines(text).filter(|line| !line.is_fenced) {
            for target in markdown::link_targets(line.text).into_iter().filter(|target| is_relative(target)) {
                if !resolve(path, &target).is_some_and(|resolved| tree.has(&resolved)) {
                    let advice = format!("the link to `{target}` is broken; correct it");
                    findings.push(TidyFinding::at(path, line.number, advice));
                }
            }
        }
    }
    findings
}

fn is_relative(target: &str) -> bool {
    let has_scheme =
        target.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|letter| letter.is_ascii_alphanumeric()));
    !has_scheme && !target.starts_with('#') && !target.starts_with("//")
}

/// The path from the root, or None when the link leaves the repository.
fn resolve(document: &str, target: &str) -> Option<String> {
    let file = target.split(['#', '?']).next().unwrap_or(target).replace("%20", " ");
    let mut parts: Vec<&str> = match file.starts_with('/') {
        true => Vec::new(),
        false => document.split('/').collect(),
    };
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Vec<TidyFinding> {
        let files = [(MAP, text), ("crates/store/migrations/sqlite/0001_start.sql", ""), ("xtask/src/main.rs", "")];
        the_map_names_existing_paths(&SourceTree::of(&files))
    }

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        assert_eq!(map("See `xtask/src/main.rs:7`, `crates/*/src`, `crates/store/` and `serde/lib.rs`.\n"), []);
        assert_eq!(map("```\ncrates/store/   the database, docs/unwritten.md\n```\n"), []);
        assert_eq!(map("See `crates/store/migrations/{sqlite,postgres}/`.\n").len(), 1);
        assert_eq!(map("```\nweb/   the web app\n```\n").len(), 1);
    }

    #[test]
    fn a_missing_map_is_found() {
        assert_eq!(the_map_names_existing_paths(&SourceTree::of(&[])).len(), 1);
    }

    fn links(text: &str) -> Vec<TidyFinding> {
        links_hold(&SourceTree::of(&[("docs/guide.md", text), ("README.md", ""), ("docs/api/rooms.md", "")]))
    }

    #[test]
    fn a_broken_link_is_found() {
        assert_eq!(
            links("[a](../README.md) [b](api/rooms.md#post) [c](/docs/api) [d](https://e.org) [e](#here)\n"),
            []
        );
        assert_eq!(links("[a](README.md)\n").len(), 1);
        assert_eq!(links("[a](../../elsewhere.md)\n").len(), 1);
    }
}

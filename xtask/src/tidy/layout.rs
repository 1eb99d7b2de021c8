//! Names say what a folder or file is for, and every module folder has a head comment.

use std::collections::BTreeSet;

use super::tree::{SourceTree, TidyFinding};

const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];
const MODULE_FILES: &[&str] = &["mod.rs", "lib.rs", "main.rs"];

pub fn names_say_what_is_inside(tree: &SourceTree) -> Vec<TidyFinding> {
    let advice = |name: &str| format!("`{name}` does not say what is inside; name it after that");
    let mut findings = Vec::new();
    for path in tree.paths() {
        let parts = path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        if let Some(name) = parts.into_iter().find(|part| EMPTY_NAMES.contains(part)) {
            findings.push(TidyFinding::on(path, advice(name)));
        }
    }
    for (path, text) in tree.rust_sources() {
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = inline_module(line).filter(|name| EMPTY_NAMES.contains(name)) {
                findings.push(TidyFinding::at(path, index + 1, advice(name)));
            }
        }
    }
    findings
}

/// The name in `mod name {`. Other modules are files, which are checked by their paths.
fn inline_module(line: &str) -> Option<&str> {
    let (head, _) = line.split_once('{')?;
    let mut words = head.split_whitespace().skip_while(|word| word.starts_with("pub"));
    words.next().filter(|word| *word == "mod")?;
    words.next()
}

pub fn module_folders_have_a_head_comment(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut folders = BTreeSet::new();
    for (path, text) in tree.rust_sources().filter(|(path, _)| is_source(path)) {
        let Some((folder, file)) = path.rsplit_once('/') else {
            continue;
        };
        // Cargo treats each file directly in src/bin as a program.
        if !folder.ends_with("/src/bin") {
            folders.insert(folder);
        }
        if MODULE_FILES.contains(&file) && !text.starts_with("//!") {
            findings
                .push(TidyFinding::on(path, "start with `//!`: what it is for, what it must not know, where to start"));
        }
    }
    for folder in folders {
        if !MODULE_FILES.iter().any(|file| tree.has(&format!("{folder}/{file}"))) {
            findings.push(TidyFinding::on(folder, "add a mod.rs, so that the module's own file is in its folder"));
        }
    }
    findings
}

fn is_source(path: &str) -> bool {
    (path.starts_with("crates/") && path.contains("/src/")) || path.starts_with("xtask/src/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_meaning_are_found() {
        let good = SourceTree::of(&[
            ("crates/store/src/journal/mod.rs", "mod commonplace {}\n"),
            ("web/src/lib/uncommon.ts", ""),
        ]);
        assert_eq!(names_say_what_is_inside(&good), []);
        let bad = SourceTree::of(&[
            ("crates/store/src/utils.rs", ""),
            ("crates/store/tests/common/mod.rs", ""),
            ("crates/store/src/lib.rs", "//! Store.\npub mod helpers {\n}\n"),
        ]);
        assert_eq!(names_say_what_is_inside(&bad).len(), 3);
    }

    #[test]
    fn a_missing_head_comment_is_found() {
        let good = SourceTree::of(&[
            ("crates/store/src/lib.rs", "//! Store.\n"),
            ("crates/store/src/row.rs", "struct Row;\n"),
            ("crates/testkit/src/lib.rs", "//! Testkit.\n"),
            ("crates/testkit/src/bin/bench.rs", "fn main() {}\n"),
            ("crates/store/tests/it/main.rs", "mod journal;\n"),
        ]);
        assert_eq!(module_folders_have_a_head_comment(&good), []);
        let bad =
            SourceTree::of(&[("crates/store/src/lib.rs", "mod journal;\n"), ("crates/store/src/journal/tail.rs", "")]);
        assert_eq!(module_folders_have_a_head_comment(&bad).len(), 2);
    }
}

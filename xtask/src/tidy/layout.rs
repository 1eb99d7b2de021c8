//! Folders tell the story: no drawer for everything, and a head comment at every door.

use std::collections::BTreeSet;

use super::tree::{Finding, Tree};

const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc"];
const DOORS: &[&str] = &["mod.rs", "lib.rs", "main.rs"];

pub fn names_say_what_is_inside(tree: &Tree) -> Vec<Finding> {
    let advice = |name: &str| format!("`{name}` says nothing about what is inside; name it after that");
    let mut findings = Vec::new();
    for path in tree.paths() {
        let parts = path.split('/').map(|part| part.split('.').next().unwrap_or(part));
        if let Some(name) = parts.into_iter().find(|part| EMPTY_NAMES.contains(part)) {
            findings.push(Finding::on(path, advice(name)));
        }
    }
    for (path, text) in tree.rust_sources() {
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = inline_module(line).filter(|name| EMPTY_NAMES.contains(name)) {
                findings.push(Finding::at(path, index + 1, advice(name)));
            }
        }
    }
    findings
}

/// The name in `mod name {`. A module in a file of its own is known by the file.
fn inline_module(line: &str) -> Option<&str> {
    let (head, _) = line.split_once('{')?;
    let mut words = head.split_whitespace().skip_while(|word| word.starts_with("pub"));
    words.next().filter(|word| *word == "mod")?;
    words.next()
}

pub fn folders_have_a_door(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut folders = BTreeSet::new();
    for (path, text) in tree.rust_sources().filter(|(path, _)| is_source(path)) {
        let Some((folder, file)) = path.rsplit_once('/') else {
            continue;
        };
        // Cargo takes each file right in src/bin for a program.
        if !folder.ends_with("/src/bin") {
            folders.insert(folder);
        }
        if DOORS.contains(&file) && !text.starts_with("//!") {
            findings
                .push(Finding::on(path, "open with `//!`: what it is for, what it must never know, where to start"));
        }
    }
    for folder in folders {
        if !DOORS.iter().any(|door| tree.has(&format!("{folder}/{door}"))) {
            findings.push(Finding::on(folder, "give the folder a mod.rs, so that its door is inside"));
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
    fn drawers_for_everything_are_found() {
        let good =
            Tree::of(&[("crates/store/src/journal/mod.rs", "mod commonplace {}\n"), ("web/src/lib/uncommon.ts", "")]);
        assert_eq!(names_say_what_is_inside(&good), []);
        let bad = Tree::of(&[
            ("crates/store/src/utils.rs", ""),
            ("crates/store/tests/common/mod.rs", ""),
            ("crates/store/src/lib.rs", "//! Store.\npub mod helpers {\n}\n"),
        ]);
        assert_eq!(names_say_what_is_inside(&bad).len(), 3);
    }

    #[test]
    fn a_door_without_a_head_comment_is_found() {
        let good = Tree::of(&[
            ("crates/store/src/lib.rs", "//! Store.\n"),
            ("crates/store/src/row.rs", "struct Row;\n"),
            ("crates/testkit/src/lib.rs", "//! Testkit.\n"),
            ("crates/testkit/src/bin/bench.rs", "fn main() {}\n"),
            ("crates/store/tests/it/main.rs", "mod journal;\n"),
        ]);
        assert_eq!(folders_have_a_door(&good), []);
        let bad = Tree::of(&[("crates/store/src/lib.rs", "mod journal;\n"), ("crates/store/src/journal/tail.rs", "")]);
        assert_eq!(folders_have_a_door(&bad).len(), 2);
    }
}

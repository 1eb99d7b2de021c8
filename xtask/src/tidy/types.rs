//! Each public type has a name of its own across the workspace, so that a search for it leads to one place.

use std::collections::BTreeMap;

use super::tree::{SourceTree, TidyFinding};

const KINDS: &[&str] = &["struct", "enum", "trait", "union", "type"];

pub fn have_their_own_names(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut seen: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, text) in tree.rust_sources().filter(|(path, _)| is_source(path)) {
        for (line, name) in definitions(text) {
            match seen.get(name) {
                Some((other, at)) => {
                    let advice = format!("`{name}` is also defined at {other}:{at}; give each its own name");
                    findings.push(TidyFinding::at(path, line, advice));
                }
                None => drop(seen.insert(name, (path, line))),
            }
        }
    }
    findings
}

fn is_source(path: &str) -> bool {
    let in_source = path.starts_with("xtask/src/") || (path.starts_with("crates/") && path.contains("/src/"));
    in_source && !path.contains("/tests/") && !path.ends_with("/tests.rs")
}

/// The line and name of each public type outside of `#[cfg(test)]` items. Relies on rustfmt: an item that starts at one
/// indentation ends with a closing brace at the same one.
fn definitions(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut is_for_tests = false;
    let mut skipped_until: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(end) = &skipped_until {
            if line.trim_end() == *end {
                skipped_until = None;
            }
            continue;
        }
        let item = line.trim_start();
        if item.starts_with("#[") || item.starts_with("//") || item.is_empty() {
            is_for_tests |= is_test_attribute(item);
            continue;
        }
        if is_for_tests {
            is_for_tests = false;
            if line.trim_end().ends_with('{') {
                skipped_until = Some(format!("{}}}", &line[..line.len() - item.len()]));
            }
            continue;
        }
        found.extend(public_type(item).map(|name| (index + 1, name)));
    }
    found
}

/// `#[cfg(test)]` and `#[cfg(all(test, unix))]`, but not `#[cfg(not(test))]`.
fn is_test_attribute(line: &str) -> bool {
    line.strip_prefix("#[cfg(").is_some_and(|condition| {
        !condition.contains("not(test")
            && condition.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == "test")
    })
}

/// The name in `pub(crate) struct Name<T> {`.
fn public_type(item: &str) -> Option<&str> {
    let rest = item.strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(visibility) => visibility.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.strip_prefix(' ')?.split_whitespace().skip_while(|word| matches!(*word, "unsafe" | "auto"));
    words.next().filter(|kind| KINDS.contains(kind))?;
    let name = words.next()?.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        definitions(text).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn every_kind_of_public_type_is_a_definition() {
        let text = "pub struct A;\npub(crate) enum B {\n}\n    pub(in crate::x) unsafe trait C<T>: D {\npub type E<T> = F<T>;\n\
                    pub union G {\nstruct Private;\npub fn struct_name() {}\npub use h::Struct;\npub struct I<'a>(&'a str);\n";
        assert_eq!(names(text), ["A", "B", "C", "E", "G", "I"]);
    }

    #[test]
    fn types_for_tests_are_left_out() {
        let text = "pub struct A;\n#[cfg(test)]\nmod tests {\n    pub struct B;\n    fn f() {\n    }\n}\npub struct C;\n\
                    #[cfg(test)]\n#[derive(Debug)]\npub struct D;\npub struct E;\n#[cfg(not(test))]\npub struct F;\n\
                    #[cfg(all(test, unix))]\npub struct G {\n    h: u8,\n}\npub struct I;\n";
        assert_eq!(names(text), ["A", "C", "E", "F", "I"]);
    }

    #[test]
    fn a_name_that_is_taken_is_found_with_both_places() {
        let good = [
            ("crates/store/src/lib.rs", "pub struct Room;\n"),
            ("crates/store/src/journal/tests.rs", "pub struct Room;\n"),
            ("crates/store/tests/it/main.rs", "pub struct Room;\n"),
            ("crates/engine/src/room/tests/scene.rs", "pub struct Room;\n"),
            ("crates/engine/src/lib.rs", "struct Room;\n"),
        ];
        assert_eq!(have_their_own_names(&SourceTree::of(&good)), []);
        let bad =
            [("crates/store/src/lib.rs", "\npub struct Room;\n"), ("xtask/src/main.rs", "pub(crate) enum Room {}\n")];
        let findings = have_their_own_names(&SourceTree::of(&bad));
        assert_eq!(findings.len(), 1);
        let text = findings[0].to_string();
        assert!(text.starts_with("xtask/src/main.rs:1: ") && text.contains("crates/store/src/lib.rs:2"), "{text}");
        let twice = [("crates/store/src/lib.rs", "pub mod a {\n    pub struct Row;\n}\npub struct Row;\n")];
        assert_eq!(have_their_own_names(&SourceTree::of(&twice)).len(), 1);
    }
}

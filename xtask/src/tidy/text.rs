//! Text that is not allowed in the tree: paths that exist on one machine only, ignored tests, and marks for later work.

use super::tree::{SourceTree, TidyFinding};

/// These files contain examples of what they forbid.
const OWN_EXAMPLES: &str = "xtask/src/tidy/";
const MACHINE_FOLDERS: &[&str] = &["/root/", "/home/", "/work/"];
/// The home folder inside every sandbox, on every machine.
const GUEST_HOME: &str = "/home/agent";
const MARKS: &[&str] = &["TODO", "FIXME"];

pub fn no_path_of_one_machine(tree: &SourceTree) -> Vec<TidyFinding> {
    let is_exempt = |path: &str| path == "LICENSE" || path.starts_with(OWN_EXAMPLES);
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !is_exempt(path)) {
        for (index, line) in text.lines().enumerate() {
            if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| has_absolute(line, folder)) {
                let advice = format!("{folder} is a folder of one machine; make the path relative or configurable");
                findings.push(TidyFinding::at(path, index + 1, advice));
            }
        }
    }
    findings
}

/// Not inside a longer path: `engine/work/` is allowed.
fn has_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).filter(|(position, _)| !line[*position..].starts_with(GUEST_HOME)).any(
        |(position, _)| {
            let before = &line[..position];
            let continues = |letter: char| letter.is_alphanumeric() || "_-./~*})]$".contains(letter);
            before.ends_with("file://") || !before.ends_with(continues)
        },
    )
}

pub fn nothing_left_to_do(tree: &SourceTree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust_sources().filter(|(path, _)| !path.starts_with(OWN_EXAMPLES)) {
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("#[ignore") {
                findings.push(TidyFinding::at(path, index + 1, "an ignored test proves nothing; fix it or remove it"));
            }
            if line.split(|letter: char| !letter.is_alphanumeric()).any(|word| MARKS.contains(&word)) {
                findings.push(TidyFinding::at(path, index + 1, "do it now, or open an issue and remove the mark"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found() {
        let good = [
            ("a.md", "engine/work/ claims, /workspace is mounted, ~/work/ is yours, /home/agent"),
            ("LICENSE", "/home/"),
        ];
        assert_eq!(no_path_of_one_machine(&SourceTree::of(&good)), []);
        let bad = [
            ("a.md", "cd /work/main"),
            ("b.toml", "x = \"/home/me/x\""),
            ("c.md", "file:///root/x"),
            ("d.rs", "/root/"),
        ];
        assert_eq!(no_path_of_one_machine(&SourceTree::of(&bad)).len(), 4);
    }

    #[test]
    fn ignored_tests_and_marks_are_found() {
        let good = SourceTree::of(&[("a.rs", "// the TODOS table\nlet todo = 1;\n"), ("b.md", "TODO\n")]);
        assert_eq!(nothing_left_to_do(&good), []);
        let bad = SourceTree::of(&[("a.rs", "    #[ignore = \"slow\"]\n// TODO: later\n// FIXME(me)\n")]);
        assert_eq!(nothing_left_to_do(&bad).len(), 3);
    }
}

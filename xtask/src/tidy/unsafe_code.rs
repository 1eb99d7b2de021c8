//! Where unsafe code may be. The workspace denies it; `deny`, unlike `forbid`, can be lifted for one item, and this rule
//! says in which crates.

use super::tree::{SourceTree, TidyFinding};

/// Folders of the crates that may lift the lint, each with the reason in its own head comment.
const UNSAFE_CRATES: &[&str] = &["crates/sandbox"];

const LINT: &str = "unsafe_code";

pub fn stays_in_its_crates(tree: &SourceTree) -> Vec<TidyFinding> {
    check(tree, UNSAFE_CRATES)
}

fn check(tree: &SourceTree, unsafe_crates: &[&str]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if !tree.text("Cargo.toml").is_some_and(|text| text.contains("\nunsafe_code = \"deny\"\n")) {
        findings.push(TidyFinding::on("Cargo.toml", "the workspace lints must contain `unsafe_code = \"deny\"`"));
    }
    for (path, text) in tree.texts() {
        let Some(folder) = crate_folder(path) else { continue };
        if path == format!("{folder}/Cargo.toml") && !text.contains("\n[lints]\nworkspace = true\n") {
            findings.push(TidyFinding::on(path, "take the lints of the workspace: `[lints]`, `workspace = true`"));
        }
        // This rule and its list are in xtask, which has no reason to be in the list.
        let is_checked = (path.ends_with(".rs") && folder != "xtask") || path.ends_with("/Cargo.toml");
        if !is_checked || unsafe_crates.contains(&folder) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let is_comment = ["//", "# "].iter().any(|start| line.trim_start().starts_with(start));
            if line.contains(LINT) && !is_comment {
                let advice = format!(
                    "{folder} may not contain unsafe code; move it to a crate in the list of xtask/src/tidy/unsafe_code.rs"
                );
                findings.push(TidyFinding::at(path, index + 1, advice));
            }
        }
    }
    findings
}

/// `crates/name` or `xtask`.
fn crate_folder(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return Some("xtask");
    }
    let name = path.strip_prefix("crates/")?.split('/').next()?;
    Some(&path[.."crates/".len() + name.len()])
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::SourceTree;

    const WORKSPACE: (&str, &str) = ("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"deny\"\n");
    const MANIFEST: &str = "[package]\nname = \"store\"\n\n[lints]\nworkspace = true\n\n[dependencies]\n";

    fn findings(files: &[(&str, &str)], unsafe_crates: &[&str]) -> usize {
        check(&SourceTree::of(&[&[WORKSPACE], files].concat()), unsafe_crates).len()
    }

    #[test]
    fn the_lint_is_lifted_only_in_listed_crates() {
        let lifted = "#[allow(unsafe_code)]\nfn f() {}\n";
        assert_eq!(findings(&[("crates/store/src/lib.rs", "fn f() {}\n// unsafe_code\n")], &[]), 0);
        assert_eq!(findings(&[("crates/store/src/lib.rs", lifted)], &[]), 1);
        assert_eq!(findings(&[("crates/store/src/lib.rs", "#![expect(unsafe_code)]\n")], &[]), 1);
        assert_eq!(findings(&[("crates/store/tests/it/main.rs", lifted)], &["crates/sandbox"]), 1);
        assert_eq!(findings(&[("crates/sandbox/src/lib.rs", lifted)], &["crates/sandbox"]), 0);
        assert_eq!(findings(&[("crates/sandbox-tests/src/lib.rs", lifted)], &["crates/sandbox"]), 1);
    }

    #[test]
    fn every_crate_takes_the_lints_of_the_workspace() {
        assert_eq!(findings(&[("crates/store/Cargo.toml", MANIFEST)], &[]), 0);
        assert_eq!(findings(&[("crates/store/Cargo.toml", "[package]\nname = \"store\"\n")], &[]), 1);
        let own = "[package]\nname = \"store\"\n\n[lints.rust]\nunsafe_code = \"allow\"\n";
        assert_eq!(findings(&[("crates/store/Cargo.toml", own)], &[]), 2);
        let forbidden = SourceTree::of(&[("Cargo.toml", "[workspace.lints.rust]\nunused = \"deny\"\n")]);
        assert_eq!(check(&forbidden, &[]).len(), 1);
    }
}

//! A long file usually holds two modules.

use super::tree::{SourceTree, TidyFinding};

const LIMIT: usize = 600;
const EXCEPTIONS_FILE: &str = "xtask/src/tidy/size_exceptions.txt";
const EXCEPTIONS: &str = include_str!("size_exceptions.txt");

pub fn source_files_stay_small(tree: &SourceTree) -> Vec<TidyFinding> {
    check(tree, EXCEPTIONS)
}

fn check(tree: &SourceTree, exceptions: &str) -> Vec<TidyFinding> {
    let excepted: Vec<&str> = exceptions.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let too_long = |path: &str, text: &str| text.lines().count() > LIMIT && !is_test(path);
    let mut findings = Vec::new();
    for (path, text) in tree.rust_sources() {
        if too_long(path, text) && !excepted.contains(&path) {
            let lines = text.lines().count();
            findings.push(TidyFinding::at(path, LIMIT + 1, format!("{lines} lines; split it, the limit is {LIMIT}")));
        }
    }
    for path in excepted {
        if !tree.text(path).is_some_and(|text| too_long(path, text)) {
            findings.push(TidyFinding::on(
                EXCEPTIONS_FILE,
                format!("{path} no longer needs an exception; remove its line"),
            ));
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_found_outside_tests() {
        let long = "\n".repeat(LIMIT + 1);
        let fits = "\n".repeat(LIMIT);
        let good =
            [("crates/store/src/lib.rs", fits.as_str()), ("crates/store/tests/it/main.rs", &long), ("a.md", &long)];
        assert_eq!(check(&SourceTree::of(&good), ""), []);
        let bad = SourceTree::of(&[("crates/store/src/lib.rs", &long)]);
        assert_eq!(check(&bad, "").len(), 1);
        assert_eq!(check(&bad, "crates/store/src/lib.rs\n"), []);
    }

    #[test]
    fn an_exception_without_a_reason_is_found() {
        let findings =
            check(&SourceTree::of(&[("crates/store/src/lib.rs", "short")]), "crates/store/src/lib.rs\ngone.rs\n");
        assert_eq!(findings.len(), 2);
    }
}

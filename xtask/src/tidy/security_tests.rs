//! docs/security.md names a test for every promise. A test that was renamed or removed must not stay there.

use super::markdown;
use super::tree::{SourceTree, TidyFinding};

const DOCUMENT: &str = "docs/security.md";
/// The last column of the tables with promises.
const COLUMN: &str = "test";

pub fn promises_name_existing_tests(tree: &SourceTree) -> Vec<TidyFinding> {
    let Some(text) = tree.text(DOCUMENT) else {
        return vec![TidyFinding::on(DOCUMENT, "the file is missing; write what is promised, and which test shows it")];
    };
    let mut findings = Vec::new();
    let mut is_inside = false;
    for line in markdown::lines(text).filter(|line| !line.is_fenced) {
        let Some(cells) = markdown::table_row(line.text) else {
            // The line below the head of a table has no cells.
            is_inside &= line.text.trim_start().starts_with('|');
            continue;
        };
        let Some(last) = cells.last().map(|cell| cell.trim()) else { continue };
        if last == COLUMN {
            is_inside = true;
            continue;
        }
        if !is_inside {
            continue;
        }
        let names: Vec<&str> = markdown::code_spans(last).collect();
        if names.is_empty() {
            findings.push(TidyFinding::at(DOCUMENT, line.number, "this promise names no test"));
        }
        for name in names.into_iter().filter(|name| !exists(tree, name)) {
            findings.push(TidyFinding::at(
                DOCUMENT,
                line.number,
                format!("there is no test `{name}`; correct the table"),
            ));
        }
    }
    findings
}

/// A file, the name of a test, or its beginning followed by `…`.
fn exists(tree: &SourceTree, name: &str) -> bool {
    if name.ends_with(".rs") {
        return tree.has(name) || tree.paths().any(|path| path.ends_with(&format!("/{name}")));
    }
    let (name, is_whole) = name.strip_suffix('…').map_or((name, true), |start| (start, false));
    let is_part_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_named = |text: &str| {
        text.match_indices(name).any(|(at, _)| {
            let is_start = !text[..at].ends_with(is_part_of_a_name);
            let is_end = !text[at + name.len()..].starts_with(is_part_of_a_name);
            is_start && (is_end || !is_whole)
        })
    };
    tree.texts().any(|(path, text)| is_test(path, text) && is_named(text))
}

fn is_test(path: &str, text: &str) -> bool {
    match path.starts_with("web/") {
        true => path.contains(".test."),
        false => {
            path.starts_with("crates/")
                && path.ends_with(".rs")
                && (path.contains("/tests/") || text.contains("#[test]") || text.contains("::test"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: (&str, &str) =
        ("crates/app/tests/it/closed.rs", "async fn h1_a_page_is_refused(api: &TestClient) {}\n");

    fn findings(row: &str) -> usize {
        let document = format!(
            "# Security\n\n| who | test |\n|---|---|\n{row}\n\n| other | table |\n|---|---|\n| `no` | `none` |\n"
        );
        promises_name_existing_tests(&SourceTree::of(&[(DOCUMENT, &document), TEST])).len()
    }

    #[test]
    fn tests_by_name_by_beginning_and_by_file_are_found() {
        for row in ["| a | `h1_a_page_is_refused` |", "| a | `h1_…` |", "| a | `closed.rs`, `h1_a_page_…` |"] {
            assert_eq!(findings(row), 0, "{row}");
        }
    }

    #[test]
    fn a_missing_test_is_reported() {
        for row in
            ["| a | `h1_a_page` |", "| a | `h2_…` |", "| a | `open.rs` |", "| a | |", "| a | `a_page_is_refused` |"]
        {
            assert_eq!(findings(row), 1, "{row}");
        }
        assert_eq!(promises_name_existing_tests(&SourceTree::of(&[TEST])).len(), 1);
    }
}

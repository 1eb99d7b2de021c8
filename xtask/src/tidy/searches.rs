//! The table in CONTRIBUTING.md that says what to search for: each search has to lead to the file that it names.

use super::markdown;
use super::tree::{SourceTree, TidyFinding};

const DOCUMENT: &str = "CONTRIBUTING.md";
const HEADING: &str = "## Looking for something?";
const FEWEST_ROWS: usize = 12;
/// A file among this many with the most hits is easy to see in a list of results.
const FIRST_RESULTS: usize = 3;

struct SearchRow<'a> {
    line: usize,
    words: &'a str,
    file: &'a str,
}

pub fn lead_to_their_file(tree: &SourceTree) -> Vec<TidyFinding> {
    let text = tree.text(DOCUMENT).unwrap_or_default();
    let Some((heading, rows)) = rows(text) else {
        return vec![TidyFinding::on(DOCUMENT, format!("add a table under the heading `{HEADING}`"))];
    };
    let mut findings = Vec::new();
    if rows.len() < FEWEST_ROWS {
        let advice = format!("the table has {} rows; name at least {FEWEST_ROWS} searches", rows.len());
        findings.push(TidyFinding::at(DOCUMENT, heading, advice));
    }
    for row in rows {
        match row {
            Ok(row) => findings.extend(fault(tree, &row).map(|fault| TidyFinding::at(DOCUMENT, row.line, fault))),
            Err(line) => {
                let advice = "write the row as: | subject | `search words` | `path/to/file.rs` |";
                findings.push(TidyFinding::at(DOCUMENT, line, advice));
            }
        }
    }
    findings
}

type HeadingAndRows<'a> = (usize, Vec<Result<SearchRow<'a>, usize>>);

/// The line of the heading and the rows below it, without the table's head. A row that cannot be read is its line.
fn rows(text: &str) -> Option<HeadingAndRows<'_>> {
    let mut lines = markdown::lines(text).skip_while(|line| line.text.trim_end() != HEADING);
    let heading = lines.next()?.number;
    let section = lines.take_while(|line| !line.text.starts_with('#'));
    let table = section.filter_map(|line| Some((line.number, markdown::table_row(line.text)?))).skip(1);
    Some((heading, table.map(|(line, cells)| search_row(line, &cells).ok_or(line)).collect()))
}

fn search_row<'a>(line: usize, cells: &[&'a str]) -> Option<SearchRow<'a>> {
    let [_, words, file] = cells else {
        return None;
    };
    let code = |cell: &'a str| cell.strip_prefix('`')?.strip_suffix('`').filter(|code| !code.is_empty());
    Some(SearchRow { line, words: code(words)?, file: code(file)? })
}

/// None when the search leads to the file: it has the only hits, is among the files with the most, or is the only one
/// that defines what was searched for.
fn fault(tree: &SourceTree, row: &SearchRow<'_>) -> Option<String> {
    let SearchRow { words, file, .. } = row;
    let mut hits: Vec<(usize, &str, &str)> = tree
        .texts()
        .filter(|(path, _)| is_searched(path))
        .map(|(path, text)| (lines_with(text, words), path, text))
        .filter(|(count, ..)| *count > 0)
        .collect();
    hits.sort_by_key(|(count, path, _)| (std::cmp::Reverse(*count), *path));
    let Some((own, _, text)) = hits.iter().find(|(_, path, _)| path == file) else {
        return Some(match tree.has(file) {
            true => format!("a search for `{words}` does not find {file}"),
            false => format!("{file} does not exist"),
        });
    };
    // Files with as many hits count as earlier ones: a list of results may show them first.
    let is_among_first = hits.iter().filter(|(count, ..)| count >= own).count() <= FIRST_RESULTS;
    let defines_alone = defines(text, words) && hits.iter().filter(|(_, _, text)| defines(text, words)).count() == 1;
    let first = hits.first().map_or("", |(_, path, _)| path);
    let advice = format!("a search for `{words}` leads to {first} and {} other files before {file}", hits.len() - 1);
    (!is_among_first && !defines_alone).then_some(advice)
}

/// As `git grep -wic` counts: lines with the whole words, in any case.
fn lines_with(text: &str, words: &str) -> usize {
    let words = words.to_lowercase();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let has_words = |line: &str| {
        line.match_indices(&words).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + words.len()..]);
            !before.ends_with(is_word) && !after.starts_with(is_word)
        })
    };
    text.lines().filter(|line| has_words(&line.to_lowercase())).count()
}

/// The files of the search that CONTRIBUTING.md shows: without tests, and without what is generated.
fn is_searched(path: &str) -> bool {
    let in_crate = path.starts_with("crates/") && path.split('/').nth(2) == Some("src");
    let is_left_out = path.contains("test") || [".d.ts", ".snap", ".json"].iter().any(|end| path.ends_with(end));
    (in_crate || path.starts_with("web/src/")) && !is_left_out
}

/// Whether a line starts the definition of an item with this name, in Rust or TypeScript.
fn defines(text: &str, name: &str) -> bool {
    const STARTS: &[&str] = &[
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "fn ",
        "mod ",
        "const ",
        "static ",
        "macro_rules! ",
        "class ",
        "function ",
        "interface ",
    ];
    let name = STARTS.iter().find_map(|start| name.strip_prefix(start)).unwrap_or(name);
    let name = name.trim_end_matches(['(', '{', '<', ':', ' ']);
    let ends = |rest: &str| !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        STARTS.iter().any(|start| {
            line.find(start).is_some_and(|at| {
                let before = &line[..at];
                let is_start = before.is_empty() || before.ends_with(' ');
                is_start && line[at + start.len()..].strip_prefix(name).is_some_and(ends)
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("crates/engine/src/approval.rs", "struct Approval;\nApproval\nan approval\nApproval"),
        ("crates/engine/src/turn.rs", "Approval\nApproval"),
        ("crates/engine/src/run.rs", "Approval\nApproval"),
        ("crates/server/src/http.rs", "Approval\nApproval"),
        ("crates/server/src/answer.rs", "Approval\nfn Approval_of() {}"),
        ("crates/engine/tests/it/main.rs", "Approval\nApproval\nApproval\nApproval\nApproval\nApproval"),
        ("web/src/app.tsx", "class Room {}"),
    ];

    fn findings(rows: &str) -> Vec<TidyFinding> {
        let filler = "| app | `class Room` | `web/src/app.tsx` |\n".repeat(FEWEST_ROWS);
        check(&format!(
            "# Contributing\n\n{HEADING}\n\n| subject | search | file |\n|---|---|---|\n{rows}{filler}\n## Next\n"
        ))
    }

    fn check(document: &str) -> Vec<TidyFinding> {
        let mut files = FILES.to_vec();
        files.push((DOCUMENT, document));
        lead_to_their_file(&SourceTree::of(&files))
    }

    #[test]
    fn a_search_that_leads_to_its_file_is_fine() {
        assert_eq!(findings("| approvals | `Approval` | `crates/engine/src/approval.rs` |\n"), []);
        assert_eq!(findings("| approvals | `struct Approval` | `crates/engine/src/approval.rs` |\n"), []);
    }

    #[test]
    fn a_file_that_defines_the_item_alone_may_have_few_hits() {
        let files = [
            ("crates/a/src/a.rs", "x Item Item"),
            ("crates/b/src/b.rs", "y Item Item"),
            ("crates/c/src/c.rs", "z Item Item"),
            ("crates/d/src/d.rs", "pub struct Item;"),
        ];
        let tree = SourceTree::of(&files);
        let fault_of = |file| fault(&tree, &SearchRow { line: 1, words: "Item", file });
        assert_eq!(fault_of("crates/d/src/d.rs"), None);
        let mut twice = files.to_vec();
        twice[0].1 = "enum Item {} Item Item";
        let tree = SourceTree::of(&twice);
        assert!(fault(&tree, &SearchRow { line: 1, words: "Item", file: "crates/d/src/d.rs" }).is_some());
    }

    #[test]
    fn a_search_that_leads_elsewhere_is_found() {
        for row in [
            "| answers | `Approval` | `crates/server/src/answer.rs` |\n",
            "| tests | `Approval` | `crates/engine/tests/it/main.rs` |\n",
            "| a part of a word | `Approva` | `crates/engine/src/approval.rs` |\n",
            "| nothing | `Approval` | `crates/engine/src/gone.rs` |\n",
            "| no code | Approval | `crates/engine/src/approval.rs` |\n",
            "| too few | `Approval` |\n",
        ] {
            assert_eq!(findings(row).len(), 1, "{row}");
        }
    }

    #[test]
    fn a_missing_or_short_table_is_found() {
        assert_eq!(check("# Contributing\n").len(), 1);
        let row = "| app | `class Room` | `web/src/app.tsx` |\n";
        let short = format!("{HEADING}\n| a | b | c |\n|---|---|---|\n{}", row.repeat(FEWEST_ROWS - 1));
        assert_eq!(check(&short).len(), 1);
    }
}

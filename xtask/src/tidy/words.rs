//! Words that are not allowed in what people read: they make the text sound old, and there is a plain word for each.

use super::tree::{SourceTree, TidyFinding};

/// Each is one or more whole words, and what to write instead.
const WORDS: &[(&[&str], &str)] = &[
    (&["whoever"], "who it is"),
    (&["anew"], "`again`"),
    (&["under", "way"], "`running` or `in progress`"),
    (&["for", "ever"], "`forever` or `without a limit`"),
];

const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".sh", ".ts", ".tsx"];

/// Where the words may be: recordings of other programs, files that must not change, and this rule's own examples.
const EXEMPT_FOLDERS: &[&str] = &[
    "crates/providers/tests/transcripts/",
    "crates/store/migrations/",
    "crates/testkit/transcripts/",
    "fuzz/corpus/",
    "xtask/src/tidy/words.rs",
];
/// The same for folders of this name anywhere, and for lists of past changes.
const EXEMPT_PARTS: &[&str] = &["/snapshots/", "/fixtures/", "CHANGELOG", "HISTORY"];

pub fn are_plain(tree: &SourceTree) -> Vec<TidyFinding> {
    let is_checked = |path: &str| {
        ENDINGS.iter().any(|ending| path.ends_with(ending))
            && !EXEMPT_FOLDERS.iter().any(|folder| path.starts_with(folder))
            && !EXEMPT_PARTS.iter().any(|part| path.contains(part))
    };
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_checked(path)) {
        for (line, words, advice) in occurrences(text) {
            findings.push(TidyFinding::at(path, line, format!("`{}` is not plain; write {advice}", words.join(" "))));
        }
    }
    findings
}

struct Word<'a> {
    text: &'a str,
    line: usize,
    /// What is between the word before and this one may be inside one phrase.
    continues: bool,
}

/// Only letters count, so that names such as `for_ever` and phrases across two lines of a comment are found too.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphabetic) {
        let (gap, from) = rest.split_at(start);
        line += gap.matches('\n').count();
        let end = from.find(|letter: char| !letter.is_alphabetic()).unwrap_or(from.len());
        let continues = gap.chars().all(|letter| letter.is_whitespace() || "/!#*>_-".contains(letter));
        words.push(Word { text: &from[..end], line, continues });
        rest = &from[end..];
    }
    words
}

fn occurrences(text: &str) -> Vec<(usize, &'static [&'static str], &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    for at in 0..words.len() {
        for (phrase, advice) in WORDS {
            let here = words[at..].iter().take(phrase.len());
            let matches = here.zip(*phrase).enumerate().filter(|(position, (word, wanted))| {
                word.text.eq_ignore_ascii_case(wanted) && (*position == 0 || word.continues)
            });
            if matches.count() == phrase.len() {
                found.push((words[at].line, *phrase, *advice));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        are_plain(&SourceTree::of(&[("docs/a.md", text)])).iter().map(|finding| finding.line()).collect()
    }

    #[test]
    fn the_words_are_found_as_whole_words() {
        assert_eq!(lines("Whoever asks.\nStart anew.\nThe run under way.\nIt waits for ever."), [1, 2, 3, 4]);
        assert_eq!(lines("Forever, howsoever, renewed, underway, runaway, for every run, under a way"), []);
        assert_eq!(lines("ANEW, anew"), [1, 1]);
        assert_eq!(lines("It goes under. Way more is left; for (ever)"), []);
    }

    #[test]
    fn names_and_broken_lines_are_found_too() {
        assert_eq!(lines("fn whoever_is_first() {}\nlet wait_for_ever = 1;"), [1, 2]);
        assert_eq!(lines("/// The commit under\n    /// way ends."), [1]);
    }

    #[test]
    fn some_files_are_exempt() {
        let bad = "anew";
        let exempt = [
            "crates/store/migrations/sqlite/notes.md",
            "crates/app/tests/it/snapshots/a.md",
            "docs/CHANGELOG.md",
            "data.json",
        ];
        for path in exempt {
            assert_eq!(are_plain(&SourceTree::of(&[(path, bad)])), [], "{path}");
        }
        for path in [
            "README.md",
            "web/README.md",
            "web/src/app/a.tsx",
            "web/e2e/a.test.ts",
            "Cargo.toml",
            "crates/app/src/lib.rs",
        ] {
            assert_eq!(are_plain(&SourceTree::of(&[(path, bad)])).len(), 1, "{path}");
        }
    }
}

//! What test programs print: one file per program, each a pure function from a line to its meaning.
//!
//! Must not run anything. Start at [`TestFormat::read`]; `record.rs`, one folder up, adds the events together.

mod chaos;
mod libtest;
mod nextest;
mod vitest;

use std::time::Duration;

use crate::totals::TestTotals;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestFormat {
    Nextest,
    /// A test binary of Rust's own, as `cargo test` runs it.
    Libtest,
    Vitest,
    Chaos,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TestEvent {
    /// Building is over, and this many more tests will run.
    Started(u64),
    /// A test has ended.
    Finished { name: String, took: Option<Duration> },
    /// A file with tests has ended. Tests that are reported after it are in this file.
    FileFinished { name: String, tests: u64 },
    /// The program's own count at its end.
    Closed(TestTotals),
}

/// How much of a stage's output is shown when it fails.
const SHOWN_LINES: usize = 400;
/// How much is shown when nothing in it looks like a failed test.
const LAST_LINES: usize = 80;

impl TestFormat {
    pub fn read(self, line: &str) -> Option<TestEvent> {
        match self {
            Self::Nextest => nextest::read(line),
            Self::Libtest => libtest::read(line),
            Self::Vitest => vitest::read(line),
            Self::Chaos => chaos::read(line),
        }
    }

    /// The part of the output that says what failed and why.
    pub fn failures(self, output: &str) -> String {
        let lines: Vec<&str> = output.lines().collect();
        let relevant: Vec<&str> = match self {
            Self::Nextest => nextest::failures(&lines),
            Self::Libtest => libtest::failures(&lines),
            Self::Vitest => vitest::failures(&lines),
            Self::Chaos => chaos::failures(&lines),
        };
        if relevant.is_empty() {
            return lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        }
        let mut shown = relevant[..relevant.len().min(SHOWN_LINES)].join("\n");
        if let Some(more) = relevant.len().checked_sub(SHOWN_LINES).filter(|more| *more > 0) {
            shown.push_str(&format!("\n… and {more} more lines in the log"));
        }
        shown
    }
}

/// The number before a word, as in `12 passed`.
fn count(counts: &str, separator: char, word: &str) -> Option<u64> {
    counts.split(separator).find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_failed_test_the_last_lines_are_shown() {
        let output = (1..=100).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
        let shown = TestFormat::Nextest.failures(&output);
        assert!(shown.starts_with("line 21\n") && shown.ends_with("line 100"));
    }

    #[test]
    fn an_endless_failure_is_cut() {
        let output = format!("failures:\n{}", "boring\n".repeat(1000));
        let shown = TestFormat::Libtest.failures(&output);
        assert_eq!(shown.lines().count(), SHOWN_LINES + 1);
        assert!(shown.ends_with("… and 601 more lines in the log"), "{shown}");
    }
}

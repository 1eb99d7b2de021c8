//! Vitest 4 without a terminal.

use std::time::Duration;

use super::{TestEvent, count};
use crate::totals::TestTotals;

const MARKS: &[char] = &['✓', '×', '❯', '↓'];

pub fn read(line: &str) -> Option<TestEvent> {
    let indented = line.len() - line.trim_start().len();
    let line = line.trim();
    if line.starts_with("RUN ") {
        return Some(TestEvent::Started(0));
    }
    if let Some(counts) = line.strip_prefix("Tests ") {
        return totals(counts).map(TestEvent::Closed);
    }
    let rest = line.strip_prefix(MARKS)?.strip_prefix(' ')?;
    match indented {
        1 => file(rest),
        _ => test(rest),
    }
}

/// `src/a.test.ts (3 tests | 1 failed) 1612ms`
fn file(line: &str) -> Option<TestEvent> {
    let (name, rest) = line.split_once(" (")?;
    let (tests, _) = rest.split_once(" test")?;
    Some(TestEvent::FileFinished { name: name.to_owned(), tests: tests.parse().ok()? })
}

/// `is slow  1201ms`: failed tests and those that take longer than 300 ms have a line of their own.
fn test(line: &str) -> Option<TestEvent> {
    let (name, took) = line.rsplit_once(' ')?;
    let took = Duration::from_millis(took.strip_suffix("ms")?.parse().ok()?);
    Some(TestEvent::Finished { name: name.trim().to_owned(), took: Some(took) })
}

/// `2 failed | 40 passed | 1 skipped (43)`
fn totals(counts: &str) -> Option<TestTotals> {
    let counts = counts.rsplit_once('(').map_or(counts, |(counts, _)| counts);
    let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(|word| count(counts, '|', word).unwrap_or(0));
    (passed + failed + skipped > 0).then_some(TestTotals { passed, failed, skipped })
}

/// From the first heading about failures to the end.
pub fn failures<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let is_heading =
        |line: &str| line.starts_with('⎯') && ["Failed ", "Unhandled "].iter().any(|word| line.contains(word));
    lines.iter().skip_while(|line| !is_heading(line)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_slow_tests_are_read() {
        let file = |name: &str, tests| Some(TestEvent::FileFinished { name: name.into(), tests });
        assert_eq!(read(" RUN  v4.1.12 /repository/web"), Some(TestEvent::Started(0)));
        assert_eq!(read(" ❯ src/a.test.ts (3 tests | 1 failed) 1612ms"), file("src/a.test.ts", 3));
        assert_eq!(read(" ✓ src/b.test.ts (1 test) 3ms"), file("src/b.test.ts", 1));
        let slow = |name: &str, milliseconds| {
            Some(TestEvent::Finished { name: name.into(), took: Some(Duration::from_millis(milliseconds)) })
        };
        assert_eq!(read("     ✓ is slow  1201ms"), slow("is slow", 1201));
        assert_eq!(read("     × fails 408ms"), slow("fails", 408));
        assert_eq!(read(" ❯ src/a.test.ts:5:85"), None);
        assert_eq!(read(" FAIL  src/a.test.ts > the room > fails"), None);
    }

    #[test]
    fn the_closing_line_is_read() {
        let closed = |line: &str| match read(line) {
            Some(TestEvent::Closed(TestTotals { passed, failed, skipped })) => Some((passed, failed, skipped)),
            _ => None,
        };
        assert_eq!(closed("      Tests  57 passed (57)"), Some((57, 0, 0)));
        assert_eq!(closed("      Tests  2 failed | 40 passed | 1 skipped (43)"), Some((40, 2, 1)));
        assert_eq!(closed(" Test Files  3 passed (3)"), None);
        assert_eq!(closed("Tests begin"), None);
    }

    #[test]
    fn failures_begin_at_their_heading() {
        let lines = [" ✓ src/b.test.ts (1 test) 3ms", "⎯⎯⎯ Failed Tests 1 ⎯⎯⎯", " FAIL  src/a.test.ts > fails"];
        assert_eq!(failures(&lines), lines[1..]);
    }
}

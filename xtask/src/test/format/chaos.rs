//! Our own crash harness: `ok   name`, `FAIL name`, and at the end `chaos: 6 passed, 0 failed`.

use super::{TestEvent, count};
use crate::totals::TestTotals;

pub fn read(line: &str) -> Option<TestEvent> {
    if let Some(counts) = line.strip_prefix("chaos: ") {
        return totals(counts).map(TestEvent::Closed);
    }
    let name = line.strip_prefix("ok   ").or_else(|| line.strip_prefix("FAIL "))?;
    Some(TestEvent::Finished { name: name.to_owned(), took: None })
}

fn totals(counts: &str) -> Option<TestTotals> {
    Some(TestTotals {
        passed: count(counts, ',', "passed")?,
        failed: count(counts, ',', "failed")?,
        skipped: count(counts, ',', "skipped").unwrap_or(0),
    })
}

/// Each failed check with the indented lines below it, and where the evidence is.
pub fn failures<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in lines {
        is_inside = line.starts_with("FAIL ") || (is_inside && line.starts_with("       "));
        if is_inside || line.contains(" is kept in ") {
            found.push(*line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_and_the_closing_line_are_read() {
        let closed = |passed, failed, skipped| Some(TestEvent::Closed(TestTotals { passed, failed, skipped }));
        assert_eq!(read("chaos: 6 passed, 0 failed"), closed(6, 0, 0));
        assert_eq!(read("chaos: 5 passed, 1 failed, 2 skipped"), closed(5, 1, 2));
        assert_eq!(read("chaos: seed 7, 4 cycles, 12 rooms"), None);
        assert_eq!(read("tidy: 6 passed, 0 failed"), None);
        let name = "02 gapless (31 rooms)".to_owned();
        assert_eq!(read("FAIL 02 gapless (31 rooms)"), Some(TestEvent::Finished { name, took: None }));
    }

    #[test]
    fn failed_checks_are_shown_with_their_faults() {
        let lines = ["ok   01 a (1)", "FAIL 02 b (2)", "       room 7 has a hole", "chaos: 1 passed, 1 failed"];
        assert_eq!(failures(&lines), lines[1..3]);
    }
}

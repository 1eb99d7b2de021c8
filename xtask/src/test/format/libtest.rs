//! A Rust test binary: `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; …`.

use super::{TestEvent, count};
use crate::totals::TestTotals;

pub fn read(line: &str) -> Option<TestEvent> {
    if let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) {
        return totals(counts).map(TestEvent::Closed);
    }
    if let Some(rest) = line.strip_prefix("running ") {
        return rest.split_once(" test").and_then(|(number, _)| number.parse().ok()).map(TestEvent::Started);
    }
    let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let has_ended = verdict == "ok" || verdict == "FAILED" || verdict.starts_with("ignored");
    has_ended.then(|| TestEvent::Finished { name: name.to_owned(), took: None })
}

fn totals(counts: &str) -> Option<TestTotals> {
    Some(TestTotals {
        passed: count(counts, ';', "passed")?,
        failed: count(counts, ';', "failed")?,
        skipped: count(counts, ';', "ignored")?,
    })
}

/// Each binary tells of its failed tests between `failures:` and its result.
pub fn failures<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut is_inside = false;
    let mut found = Vec::new();
    for line in lines {
        is_inside |= *line == "failures:";
        if is_inside || line.starts_with("error: ") {
            found.push(*line);
        }
        is_inside &= !line.starts_with("test result: ");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_results_are_counted() {
        let finished = |name: &str| Some(TestEvent::Finished { name: name.into(), took: None });
        assert_eq!(read("running 12 tests"), Some(TestEvent::Started(12)));
        assert_eq!(read("running 1 test"), Some(TestEvent::Started(1)));
        assert_eq!(read("test doors::it_opens ... ok"), finished("doors::it_opens"));
        assert_eq!(read("test result_is_kept ... FAILED"), finished("result_is_kept"));
        assert_eq!(read("test a has been running for over 60 seconds"), None);
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out";
        assert_eq!(read(line), Some(TestEvent::Closed(TestTotals { passed: 12, failed: 3, skipped: 1 })));
    }

    #[test]
    fn only_what_failed_is_shown() {
        let lines = [
            "test a ... ok",
            "failures:",
            "---- b stdout ----",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            "test c ... ok",
            "error: test failed, to rerun pass `--lib`",
        ];
        assert_eq!(failures(&lines), [lines[1], lines[2], lines[3], lines[5]]);
    }
}

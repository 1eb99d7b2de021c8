//! `cargo nextest run`, version 0.9.

use std::time::Duration;

use super::{TestEvent, count};
use crate::totals::TestTotals;

const SUMMARY: &str = "Summary [";

pub fn read(line: &str) -> Option<TestEvent> {
    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix("Starting ") {
        return rest.split_once(" test").and_then(|(number, _)| number.parse().ok()).map(TestEvent::Started);
    }
    if let Some((_, counts)) = line.strip_prefix(SUMMARY).and_then(|rest| rest.split_once("] ")) {
        return summary(counts).map(TestEvent::Closed);
    }
    finished(line)
}

/// `PASS [   2.519s] (6/7) nx slow`, and the same with FAIL, LEAK, TIMEOUT or a signal. A test that is still running
/// has `[>  1.000s]`, and the closing list repeats slow tests as SLOW.
fn finished(line: &str) -> Option<TestEvent> {
    let (verdict, rest) = line.split_once(" [")?;
    let is_verdict =
        verdict.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == ' ');
    if !is_verdict || verdict == "SLOW" {
        return None;
    }
    let (seconds, rest) = rest.split_once("s] ")?;
    let took = Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()?;
    // The counter depends on `--show-progress`.
    let name = rest.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(rest, |(_, name)| name);
    Some(TestEvent::Finished { name: name.trim().to_owned(), took: Some(took) })
}

/// `7 tests run: 4 passed (1 slow, 1 leaky), 2 failed, 1 timed out, 0 skipped`. Every test that ran and did not pass
/// has failed, by whatever word.
fn summary(counts: &str) -> Option<TestTotals> {
    let (run, counts) = counts.split_once(" run: ")?;
    // `3/7 tests` when the run was stopped early.
    let run = run.split([' ', '/']).next()?.parse::<u64>().ok()?;
    let counts = without_parentheses(counts);
    let passed = count(&counts, ',', "passed").unwrap_or(0);
    let skipped = count(&counts, ',', "skipped").unwrap_or(0);
    Some(TestTotals { passed, failed: run.saturating_sub(passed), skipped })
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    let mut outside = String::new();
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            letter if depth == 0 => outside.push(letter),
            _ => {}
        }
    }
    outside
}

/// With `failure-output = "final"`, everything about failed tests follows the summary.
pub fn failures<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let after = lines.iter().skip_while(|line| !line.trim_start().starts_with(SUMMARY));
    after.filter(|line| !line.trim_start().starts_with("SLOW [")).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(name: &str, milliseconds: u64) -> Option<TestEvent> {
        Some(TestEvent::Finished { name: name.into(), took: Some(Duration::from_millis(milliseconds)) })
    }

    #[test]
    fn tests_are_counted_with_their_times() {
        assert_eq!(read("    Starting 7 tests across 2 binaries"), Some(TestEvent::Started(7)));
        assert_eq!(read("    Starting 1 test across 2 binaries (6 tests skipped)"), Some(TestEvent::Started(1)));
        assert_eq!(read("        PASS [   2.519s] (6/7) nx slow"), finished("nx slow", 2519));
        assert_eq!(
            read("        PASS [   0.017s] (  3/712) nx::it inner::passes"),
            finished("nx::it inner::passes", 17)
        );
        assert_eq!(read("        PASS [   0.123s] greenroom::it passes"), finished("greenroom::it passes", 123));
        for verdict in ["SIGABRT", "FAIL", "LEAK", "TIMEOUT"] {
            assert_eq!(read(&format!("{verdict:>12} [   5.009s] (7/7) nx hangs")), finished("nx hangs", 5009));
        }
    }

    #[test]
    fn tests_that_still_run_are_not_finished() {
        assert_eq!(read("        SLOW [>  1.000s] (───) nx hangs"), None);
        assert_eq!(read("        SLOW [>  1.000s] nx hangs"), None);
        assert_eq!(read(" TERMINATING [>  5.000s] (───) nx hangs"), None);
        assert_eq!(read("        SLOW [   2.519s] (6/7) nx slow"), None, "the closing list repeats it");
        assert_eq!(read("    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.62s"), None);
        assert_eq!(read("  stdout ───"), None);
    }

    #[test]
    fn the_summary_is_read() {
        let closed = |line: &str| match read(line) {
            Some(TestEvent::Closed(TestTotals { passed, failed, skipped })) => Some((passed, failed, skipped)),
            _ => None,
        };
        let line = "     Summary [   5.019s] 7 tests run: 4 passed (1 slow, 1 leaky), 2 failed, 1 timed out, 0 skipped";
        assert_eq!(closed(line), Some((4, 3, 0)));
        assert_eq!(closed("     Summary [   0.101s] 1 test run: 1 passed, 6 skipped"), Some((1, 0, 6)));
        assert_eq!(closed("     Summary [   0.101s] 3/7 tests run: 2 passed, 1 failed, 0 skipped"), Some((2, 1, 0)));
        assert_eq!(closed("     Summary [   0.101s] 2 tests run: 0 passed, 2 exec failed, 0 skipped"), Some((0, 2, 0)));
    }

    #[test]
    fn failures_follow_the_summary() {
        let lines = [
            "        PASS [   0.022s] (2/7) nx passes",
            "     Summary [   5.019s] 7 tests run: 6 passed (1 slow), 1 failed, 0 skipped",
            "        SLOW [   2.519s] (6/7) nx slow",
            "        FAIL [   0.146s] (4/7) nx fails",
            "    assertion `left == right` failed: no",
        ];
        assert_eq!(failures(&lines), [lines[1], lines[3], lines[4]]);
    }
}

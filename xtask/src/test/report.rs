//! The text at the end of `cargo xtask test`. Pure.

use std::time::Duration;

use super::record::TimedTest;
use super::stages::StageResult;
use crate::progress::minutes;
use crate::totals::TestTotals;

const SLOWEST: usize = 10;

pub struct StageReport {
    pub name: &'static str,
    pub result: StageResult,
}

/// One line when a stage ends.
pub fn stage_line(report: &StageReport) -> String {
    let StageResult { totals, built, ran, .. } = &report.result;
    format!("{}: {totals} (building {}, running {})", report.name, minutes(*built), minutes(*ran))
}

pub fn sum(reports: &[StageReport]) -> TestTotals {
    let mut sum = TestTotals::default();
    for report in reports {
        sum += report.result.totals;
    }
    sum
}

/// Everything at the end; the last line is the totals.
pub fn closing(reports: &[StageReport], building: Duration, whole: Duration, logs: &str) -> String {
    let mut lines = Vec::new();
    let slowest = slowest(reports);
    if !slowest.is_empty() {
        lines.push("== slowest tests ==".to_owned());
        lines.extend(
            slowest.iter().map(|(stage, test)| format!("{:>7.1} s  {stage}: {}", test.took.as_secs_f64(), test.name)),
        );
    }
    lines.push("== totals ==".to_owned());
    lines.push(format!("building for all stages: {}", minutes(building)));
    lines.extend(reports.iter().map(stage_line));
    lines.push(format!("All of it took {}. Logs: {logs}", minutes(whole)));
    lines.push(sum(reports).to_string());
    lines.join("\n")
}

fn slowest(reports: &[StageReport]) -> Vec<(&'static str, &TimedTest)> {
    let named = reports.iter().flat_map(|report| report.result.timed.iter().map(|test| (report.name, test)));
    let mut tests: Vec<_> = named.collect();
    tests.sort_by_key(|(_, test)| std::cmp::Reverse(test.took));
    tests.truncate(SLOWEST);
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &'static str, passed: u64, failed: u64, times: &[u64]) -> StageReport {
        let timed = times.iter().map(|&milliseconds| TimedTest {
            name: format!("takes {milliseconds}"),
            took: Duration::from_millis(milliseconds),
        });
        let totals = TestTotals { passed, failed, skipped: 0 };
        let (built, ran) = (Duration::from_secs(3), Duration::from_secs(252));
        StageReport { name, result: StageResult { totals, built, ran, timed: timed.collect() } }
    }

    #[test]
    fn the_last_line_is_the_totals() {
        let reports = [report("rust", 12, 0, &[1500]), report("chaos", 3, 1, &[])];
        let text = closing(&reports, Duration::from_secs(423), Duration::from_secs(700), "target/xtask/test*.log");
        assert_eq!(
            text,
            "== slowest tests ==\n    1.5 s  rust: takes 1500\n== totals ==\nbuilding for all stages: 7:03\n\
             rust: 12 passed, 0 failed (building 0:03, running 4:12)\n\
             chaos: 3 passed, 1 failed (building 0:03, running 4:12)\n\
             All of it took 11:40. Logs: target/xtask/test*.log\n15 passed, 1 failed"
        );
    }

    #[test]
    fn the_ten_slowest_of_all_stages_are_named() {
        let reports = [report("rust", 9, 0, &[1, 5, 3, 12, 11, 10]), report("web", 9, 0, &[2, 4, 6, 7, 8, 9])];
        let names: Vec<u128> = slowest(&reports).iter().map(|(_, test)| test.took.as_millis()).collect();
        assert_eq!(names, [12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
    }

    #[test]
    fn without_times_there_is_no_list() {
        let text = closing(&[report("mcp", 1, 0, &[])], Duration::ZERO, Duration::ZERO, "x");
        assert!(text.starts_with("== totals =="));
    }
}

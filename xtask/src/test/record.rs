//! Adds up what the programs of a stage print. Pure: events in, counts and times out.

use std::time::Duration;

use super::format::{TestEvent, TestFormat};
use crate::totals::TestTotals;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimedTest {
    pub name: String,
    pub took: Duration,
}

#[derive(Default, Debug)]
pub struct TestRecord {
    totals: TestTotals,
    announced: u64,
    finished: u64,
    file: String,
    has_started: bool,
    is_closed: bool,
    timed: Vec<TimedTest>,
}

impl TestRecord {
    pub fn take(&mut self, event: TestEvent) {
        match event {
            TestEvent::Started(tests) => {
                self.has_started = true;
                self.announced += tests;
                // Nextest repeats failed tests after its summary; another program's tests count again.
                self.is_closed = false;
            }
            TestEvent::FileFinished { name, tests } => {
                self.finished += tests;
                self.file = name;
            }
            TestEvent::Finished { .. } if self.is_closed => {}
            TestEvent::Finished { name, took } => {
                let is_in_file = !self.file.is_empty();
                // A file has counted its tests already.
                self.finished += u64::from(!is_in_file);
                let name = if is_in_file { format!("{} > {name}", self.file) } else { name };
                self.timed.extend(took.map(|took| TimedTest { name, took }));
            }
            TestEvent::Closed(totals) => {
                self.totals += totals;
                self.is_closed = true;
            }
        }
    }

    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// For the progress line.
    pub fn detail(&self) -> String {
        match self.announced {
            0 => format!("{} tests", self.finished),
            announced => format!("{} of {announced} tests", self.finished),
        }
    }

    /// The totals and times of a program that has ended. A program that fails without a failed test, because it crashed
    /// or was not built, counts as one failed test; so does one that never said how many tests passed.
    pub fn conclude(self, has_succeeded: bool) -> (TestTotals, Vec<TimedTest>, Option<&'static str>) {
        let complaint = match (has_succeeded, self.is_closed, self.totals.failed) {
            (true, false, _) => Some("ended without saying how many tests passed"),
            (false, _, 0) => Some("failed although no test failed"),
            _ => None,
        };
        let mut totals = self.totals;
        if complaint.is_some() {
            totals += TestTotals::ONE_FAILED;
        }
        (totals, self.timed, complaint)
    }
}

/// Feeds a line to the record.
pub fn read_line(format: TestFormat, line: &str, record: &mut TestRecord) {
    if let Some(event) = format.read(line) {
        record.take(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(format: TestFormat, output: &str) -> TestRecord {
        let mut record = TestRecord::default();
        output.lines().for_each(|line| read_line(format, line, &mut record));
        record
    }

    const NEXTEST: &str = "    Starting 2 tests across 1 binary\n        PASS [   0.022s] (1/2) nx passes\n        \
        FAIL [   0.146s] (2/2) nx fails\n     Summary [   0.2s] 2 tests run: 1 passed, 1 failed, 0 skipped\n        \
        FAIL [   0.146s] (2/2) nx fails\n";

    #[test]
    fn a_test_counts_once_although_it_is_reported_twice() {
        let record = record(TestFormat::Nextest, NEXTEST);
        assert_eq!(record.detail(), "2 of 2 tests");
        let (totals, timed, complaint) = record.conclude(false);
        assert_eq!((totals.passed, totals.failed, complaint), (1, 1, None));
        assert_eq!(timed.iter().map(|test| test.name.as_str()).collect::<Vec<_>>(), ["nx passes", "nx fails"]);
    }

    #[test]
    fn the_results_of_several_binaries_are_added_up() {
        let result = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let output = format!("running 1 test\ntest a ... ok\n{result}running 1 test\ntest b ... ok\n{result}");
        let record = record(TestFormat::Libtest, &output);
        assert_eq!(record.detail(), "2 of 2 tests");
        assert_eq!(record.conclude(true).0, TestTotals { passed: 2, failed: 0, skipped: 0 });
    }

    #[test]
    fn slow_tests_of_vitest_are_named_with_their_file() {
        let output = " RUN  v4\n ✓ src/a.test.ts (3 tests) 1612ms\n     ✓ is slow  1201ms\n      Tests  3 passed (3)\n";
        let record = record(TestFormat::Vitest, output);
        assert_eq!(record.detail(), "3 tests");
        assert_eq!(record.conclude(true).1[0].name, "src/a.test.ts > is slow");
    }

    #[test]
    fn a_program_that_dies_or_says_nothing_counts_as_failed() {
        let chaos = |output: &str, has_succeeded| record(TestFormat::Chaos, output).conclude(has_succeeded).0;
        assert_eq!(chaos("chaos: 2 passed, 0 failed", false), TestTotals { passed: 2, failed: 1, skipped: 0 });
        assert_eq!(chaos("chaos: 2 passed, 4 failed", false), TestTotals { passed: 2, failed: 4, skipped: 0 });
        assert_eq!(chaos("", true), TestTotals::ONE_FAILED);
        assert_eq!(chaos("", false), TestTotals::ONE_FAILED);
        assert_eq!(chaos("chaos: 2 passed, 0 failed", true), TestTotals { passed: 2, failed: 0, skipped: 0 });
    }
}

//! How many tests passed, failed and were skipped; read from the lines that test programs print,
//! and added up.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::workspace::{Outcome, cannot_run, spell};

const SILENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Totals {
    pub const ONE_FAILED: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// Having run nothing is not a success.
    pub fn is_success(self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(formatter, ", {skipped} skipped"),
        }
    }
}

/// The line with which a Rust test binary ends: `test result: ok. 12 passed; 0 failed; 1 ignored; 0
/// measured; …`.
pub fn from_test_result(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    Some(Totals {
        passed: count(counts, ';', "passed")?,
        failed: count(counts, ';', "failed")?,
        skipped: count(counts, ';', "ignored")?,
    })
}

/// The closing line of our own test programs: `chaos: 6 passed, 0 failed`, and perhaps `, 1
/// skipped`.
pub fn from_closing_line(name: &str, line: &str) -> Option<Totals> {
    let counts = line.strip_prefix(name)?.strip_prefix(": ")?;
    Some(Totals {
        passed: count(counts, ',', "passed")?,
        failed: count(counts, ',', "failed")?,
        skipped: count(counts, ',', "skipped").unwrap_or(0),
    })
}

fn count(counts: &str, separator: char, word: &str) -> Option<u64> {
    counts.split(separator).find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
}

/// Runs the program, passes its output on as it comes, and adds up what `read` finds in the lines.
/// A program that fails without a failed test, because it crashed or was not even built, counts as
/// one.
pub fn run(command: &mut Command, screen: &mut dyn Write, read: impl Fn(&str) -> Option<Totals>) -> Outcome<Totals> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_run(command, &error))?;
    let mut totals = Totals::default();
    let mut found_any = false;
    let lines = child.stdout.take().map(lines_of);
    while let Some(line) = lines.as_ref().and_then(|lines| next(lines, &mut child)) {
        screen.write_all(&line).map_err(|error| format!("cannot pass the output on: {error}"))?;
        if let Some(more) = read(String::from_utf8_lossy(&line).trim_end()) {
            totals += more;
            found_any = true;
        }
    }
    let status = child.wait().map_err(|error| format!("cannot wait for `{}`: {error}", spell(command)))?;
    if status.success() && !found_any {
        let program = spell(command);
        eprintln!("`{program}` ended without saying how many tests passed");
        totals += Totals::ONE_FAILED;
    }
    if !status.success() && totals.failed == 0 {
        let program = spell(command);
        eprintln!("`{program}` ended with {status} although no test failed");
        totals += Totals::ONE_FAILED;
    }
    Ok(totals)
}

/// Read on a thread of its own, because reading has no deadline.
fn lines_of(output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1000);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    receiver
}

/// None at the end of the output. A process that a test left behind may hold the output open for
/// ever, so after the program's own end a moment of silence is the end as well.
fn next(lines: &Receiver<Vec<u8>>, child: &mut Child) -> Option<Vec<u8>> {
    loop {
        let has_ended = matches!(child.try_wait(), Ok(Some(_)));
        match lines.recv_timeout(SILENCE) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Timeout) if !has_ended => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn totals(passed: u64, failed: u64, skipped: u64) -> Totals {
        Totals { passed, failed, skipped }
    }

    #[test]
    fn reads_the_result_of_a_rust_test_binary() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered out";
        assert_eq!(from_test_result(line), Some(totals(12, 3, 1)));
        assert_eq!(from_test_result("test result_is_kept ... ok"), None);
    }

    #[test]
    fn reads_a_closing_line_of_the_right_program_only() {
        assert_eq!(from_closing_line("chaos", "chaos: 6 passed, 0 failed"), Some(totals(6, 0, 0)));
        assert_eq!(from_closing_line("chaos", "chaos: 5 passed, 1 failed, 2 skipped"), Some(totals(5, 1, 2)));
        assert_eq!(from_closing_line("chaos", "tidy: 6 passed, 0 failed"), None);
        assert_eq!(from_closing_line("chaos", "chaos: cycle 3 begins"), None);
    }

    #[test]
    fn the_final_line_has_one_form() {
        assert_eq!(totals(4, 0, 0).to_string(), "4 passed, 0 failed");
        assert_eq!(totals(4, 1, 2).to_string(), "4 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn nothing_run_is_no_success() {
        assert!(totals(1, 0, 3).is_success());
        assert!(!totals(0, 0, 3).is_success());
        assert!(!totals(9, 1, 0).is_success());
    }

    fn probe(script: &str) -> (Outcome<Totals>, String) {
        let mut screen = Vec::new();
        let read = |line: &str| from_closing_line("probe", line);
        let outcome = run(Command::new("sh").args(["-c", script]), &mut screen, read);
        (outcome, String::from_utf8_lossy(&screen).into_owned())
    }

    #[test]
    fn output_is_passed_on_and_added_up() {
        let output = "probe: 2 passed, 0 failed\nwords\nprobe: 1 passed, 0 failed\n";
        let expected = (Ok(totals(3, 0, 0)), output.to_owned());
        assert_eq!(probe(&format!("printf '{output}'")), expected);
    }

    #[test]
    fn a_program_that_dies_or_says_nothing_counts_as_failed() {
        let crashed = probe("echo 'probe: 2 passed, 0 failed'; exit 101").0;
        assert_eq!(crashed, Ok(totals(2, 1, 0)));
        let failed = probe("echo 'probe: 2 passed, 4 failed'; exit 101").0;
        assert_eq!(failed, Ok(totals(2, 4, 0)));
        assert_eq!(probe("true").0, Ok(totals(0, 1, 0)));
    }

    #[test]
    fn a_process_left_behind_is_not_waited_for() {
        let begin = Instant::now();
        let outcome = probe("sleep 10 & echo 'probe: 1 passed, 0 failed'").0;
        assert_eq!(outcome, Ok(totals(1, 0, 0)));
        assert!(begin.elapsed() < Duration::from_secs(8));
    }
}

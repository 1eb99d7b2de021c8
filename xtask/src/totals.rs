//! How many tests passed, failed and were skipped. The last line of `cargo xtask test` is one of these; CI reads it.

use std::fmt;
use std::ops::AddAssign;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestTotals {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl TestTotals {
    pub const ONE_FAILED: Self = Self { passed: 0, failed: 1, skipped: 0 };

    /// Having run nothing is not a success.
    pub fn is_success(self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl AddAssign for TestTotals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for TestTotals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(formatter, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(passed: u64, failed: u64, skipped: u64) -> TestTotals {
        TestTotals { passed, failed, skipped }
    }

    #[test]
    fn the_final_line_has_one_form() {
        assert_eq!(totals(4, 0, 0).to_string(), "4 passed, 0 failed");
        assert_eq!(totals(4, 1, 2).to_string(), "4 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn running_nothing_is_not_a_success() {
        assert!(totals(1, 0, 3).is_success());
        assert!(!totals(0, 0, 3).is_success());
        assert!(!totals(9, 1, 0).is_success());
    }
}

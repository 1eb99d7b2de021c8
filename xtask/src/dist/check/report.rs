//! One line for each check, and the totals.

use crate::repository::XtaskResult;
use crate::steps::Steps;
use crate::totals::TestTotals;

pub struct CheckReport<'a> {
    pub steps: &'a Steps,
    totals: TestTotals,
}

impl<'a> CheckReport<'a> {
    pub fn new(steps: &'a Steps) -> Self {
        Self { steps, totals: TestTotals::default() }
    }

    /// The result says what was seen, or why the check failed. Returns whether it passed.
    pub fn add(&mut self, name: &str, result: XtaskResult<String>) -> bool {
        self.steps.say(&line(name, &result));
        match result.is_ok() {
            true => self.totals.passed += 1,
            false => self.totals.failed += 1,
        }
        result.is_ok()
    }

    pub fn finish(self) -> TestTotals {
        self.steps.say(&format!("dist: {}", self.totals));
        self.totals
    }
}

fn line(name: &str, result: &XtaskResult<String>) -> String {
    match result {
        Ok(seen) if seen.is_empty() => format!("dist: {name} ... ok"),
        Ok(seen) => format!("dist: {name} ... ok ({seen})"),
        Err(reason) => format!("dist: {name} ... FAILED\n{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_seen() {
        assert_eq!(line("deb: stops", &Ok(String::new())), "dist: deb: stops ... ok");
        assert_eq!(line("deb: serves", &Ok("0.41 s".into())), "dist: deb: serves ... ok (0.41 s)");
        assert_eq!(line("deb: stops", &Err("it hangs".into())), "dist: deb: stops ... FAILED\nit hangs");
    }
}

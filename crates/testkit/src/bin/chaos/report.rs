//! Named, numbered checks, one line each, and the closing line.

/// Enough to see the pattern.
const FAULTS_SHOWN: usize = 6;
const FAULT_CHARACTERS: usize = 400;

#[derive(Debug)]
pub struct ChaosCheck {
    pub name: &'static str,
    /// What was examined, to reveal a check that examined nothing.
    pub examined: String,
    pub faults: Vec<String>,
}

impl ChaosCheck {
    pub fn new(name: &'static str) -> Self {
        Self { name, examined: String::new(), faults: Vec::new() }
    }

    /// The number at the start of the name.
    pub fn number(&self) -> u32 {
        self.name.split(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX)
    }

    pub fn passed(&self) -> bool {
        self.faults.is_empty()
    }

    pub fn expect(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(fault());
        }
    }

    pub fn print(&self) {
        let verdict = if self.passed() { "ok  " } else { "FAIL" };
        println!("{verdict} {} ({})", self.name, self.examined);
        for fault in self.faults.iter().take(FAULTS_SHOWN) {
            let text: String = fault.chars().take(FAULT_CHARACTERS).collect();
            println!("       {text}");
        }
        if let Some(more) = self.faults.len().checked_sub(FAULTS_SHOWN).filter(|&more| more > 0) {
            println!("       and {more} more");
        }
    }
}

/// The result of a whole test.
pub enum ChaosVerdict {
    Checked(Vec<ChaosCheck>),
    /// In a test with a planted bug: the check that caught it, if any.
    Planted {
        name: String,
        caught: Option<String>,
    },
}

impl ChaosVerdict {
    /// Returns how many checks failed.
    pub fn print(&self) -> usize {
        match self {
            Self::Checked(checks) => {
                checks.iter().for_each(ChaosCheck::print);
                let failed = checks.iter().filter(|check| !check.passed()).count();
                closing_line(checks.len() - failed, failed);
                failed
            }
            Self::Planted { name, caught: Some(by) } => {
                println!("ok   the planted bug {name} was caught by: {by}");
                closing_line(1, 0);
                0
            }
            Self::Planted { name, caught: None } => {
                println!("FAIL the planted bug {name} was not caught");
                closing_line(0, 1);
                1
            }
        }
    }
}

pub fn closing_line(passed: usize, failed: usize) {
    println!("chaos: {passed} passed, {failed} failed");
}

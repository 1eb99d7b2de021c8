//! Backoff for a program that crashes repeatedly, so that it is not restarted in a tight loop.

use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// This many failed starts …
    pub failures: usize,
    /// … within this window …
    pub window: Duration,
    /// … block new starts for this long. The delay doubles with each further failure …
    pub delay: Duration,
    /// … up to this maximum.
    pub max_delay: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self {
            failures: 3,
            window: Duration::from_secs(60),
            delay: Duration::from_secs(10),
            max_delay: Duration::from_secs(600),
        }
    }
}

/// Counts failed starts. Callers pass the time, so tests need not wait.
#[derive(Clone, Debug)]
pub struct Backoff {
    limits: BackoffLimits,
    /// Never more than `limits.failures`.
    failures: VecDeque<Instant>,
    delays: u32,
    until: Option<Instant>,
}

/// Why the program may not be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffRefusal {
    pub failures: usize,
    /// From the first failure to the last.
    pub within: Duration,
    pub wait: Duration,
}

impl fmt::Display for BackoffRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failures, within, wait } = self;
        write!(f, "it crashed {failures} times in {} s; next try in {} s", seconds(*within), seconds(*wait))
    }
}

impl std::error::Error for BackoffRefusal {}

/// Rounds up, so that a message never says 0 s.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

impl Backoff {
    pub fn new(limits: BackoffLimits) -> Self {
        Self { limits, failures: VecDeque::new(), delays: 0, until: None }
    }

    /// Returns an error while the program may not be started.
    pub fn check(&self, now: Instant) -> Result<(), BackoffRefusal> {
        let wait = self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        if wait.is_zero() {
            return Ok(());
        }
        let within = match (self.failures.front(), self.failures.back()) {
            (Some(first), Some(last)) => last.saturating_duration_since(*first),
            _ => Duration::ZERO,
        };
        Err(BackoffRefusal { failures: self.failures.len(), within, wait })
    }

    /// Records that the program did not start, or ended before it was useful.
    pub fn record_failure(&mut self, now: Instant) {
        self.failures.push_back(now);
        if self.failures.len() > self.limits.failures {
            self.failures.pop_front();
        }
        let oldest = self.failures.front().copied().unwrap_or(now);
        let crowded =
            self.failures.len() == self.limits.failures && now.saturating_duration_since(oldest) <= self.limits.window;
        // A failure right after a delay starts the next delay, however long the last one was.
        if crowded || self.delays > 0 {
            let factor = 2_u32.saturating_pow(self.delays);
            self.until = Some(now + self.limits.delay.saturating_mul(factor).min(self.limits.max_delay));
            self.delays = self.delays.saturating_add(1);
        }
    }

    /// Records that the program works, and forgets earlier failures.
    pub fn record_success(&mut self) {
        *self = Self::new(self.limits);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(BackoffLimits::default())
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, BackoffLimits};
    use std::time::{Duration, Instant};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn three_in_a_minute() -> Backoff {
        Backoff::new(BackoffLimits { failures: 3, window: s(60), delay: s(10), max_delay: s(30) })
    }

    #[test]
    fn invariant_14_limits_a_crash_loop_is_delayed() {
        let (mut backoff, start) = (three_in_a_minute(), Instant::now());
        for second in [0, 1] {
            backoff.record_failure(start + s(second));
            assert_eq!(backoff.check(start + s(second)), Ok(()));
        }
        backoff.record_failure(start + s(4));
        let refusal = backoff.check(start + s(5)).unwrap_err();
        assert_eq!(refusal.to_string(), "it crashed 3 times in 4 s; next try in 9 s");
        assert_eq!(backoff.check(start + s(14)), Ok(()));
    }

    #[test]
    fn failures_far_apart_do_not_delay_a_start() {
        let (mut backoff, start) = (three_in_a_minute(), Instant::now());
        for second in [0, 50, 100, 150, 200] {
            backoff.record_failure(start + s(second));
            assert_eq!(backoff.check(start + s(second)), Ok(()), "{second}");
        }
    }

    #[test]
    fn each_further_failure_doubles_the_delay_up_to_the_maximum() {
        let (mut backoff, mut now) = (three_in_a_minute(), Instant::now());
        backoff.record_failure(now);
        backoff.record_failure(now);
        for rest in [10, 20, 30, 30] {
            backoff.record_failure(now);
            assert_eq!(backoff.check(now).unwrap_err().wait, s(rest));
            now += s(rest);
            assert_eq!(backoff.check(now), Ok(()));
        }
    }

    #[test]
    fn a_success_resets_the_failures() {
        let (mut backoff, now) = (three_in_a_minute(), Instant::now());
        for _ in 0..3 {
            backoff.record_failure(now);
        }
        assert!(backoff.check(now).is_err());
        backoff.record_success();
        assert_eq!(backoff.check(now), Ok(()));
        backoff.record_failure(now);
        backoff.record_failure(now);
        assert_eq!(backoff.check(now), Ok(()));
    }
}

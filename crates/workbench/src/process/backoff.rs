//! A program that crashes over and over is given a rest instead of being started in a circle.

use std::{
    collections::VecDeque,
    fmt,
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many failed starts …
    pub failures: usize,
    /// … within so long …
    pub window: Duration,
    /// … mean a rest of so long. It doubles with each further failure …
    pub rest: Duration,
    /// … up to this.
    pub longest_rest: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            failures: 3,
            window: Duration::from_secs(60),
            rest: Duration::from_secs(10),
            longest_rest: Duration::from_secs(600),
        }
    }
}

/// Counts failed starts; told the time, so that it can be tested without any passing.
#[derive(Clone, Debug)]
pub struct Backoff {
    limits: Limits,
    /// Never more than `limits.failures`.
    failures: VecDeque<Instant>,
    rests: u32,
    until: Option<Instant>,
}

/// Why it is not started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub failures: usize,
    /// From the first of them to the last.
    pub within: Duration,
    pub wait: Duration,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failures, within, wait } = self;
        write!(f, "it crashed {failures} times in {} s; next try in {} s", seconds(*within), seconds(*wait))
    }
}

impl std::error::Error for Refusal {}

/// Rounded up: nobody is told to try again in 0 s.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

impl Backoff {
    pub fn new(limits: Limits) -> Self {
        Self { limits, failures: VecDeque::new(), rests: 0, until: None }
    }

    /// Whether it may be started now.
    pub fn check(&self, now: Instant) -> Result<(), Refusal> {
        let wait = self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        if wait.is_zero() {
            return Ok(());
        }
        let within = match (self.failures.front(), self.failures.back()) {
            (Some(first), Some(last)) => last.saturating_duration_since(*first),
            _ => Duration::ZERO,
        };
        Err(Refusal { failures: self.failures.len(), within, wait })
    }

    /// It did not come up, or went down before it was of any use.
    pub fn failed(&mut self, now: Instant) {
        self.failures.push_back(now);
        if self.failures.len() > self.limits.failures {
            self.failures.pop_front();
        }
        let oldest = self.failures.front().copied().unwrap_or(now);
        let crowded =
            self.failures.len() == self.limits.failures && now.saturating_duration_since(oldest) <= self.limits.window;
        // The one try after a rest counts by itself, however long the rest was.
        if crowded || self.rests > 0 {
            let factor = 2_u32.saturating_pow(self.rests);
            self.until = Some(now + self.limits.rest.saturating_mul(factor).min(self.limits.longest_rest));
            self.rests = self.rests.saturating_add(1);
        }
    }

    /// It works: what was before does not count any more.
    pub fn succeeded(&mut self) {
        *self = Self::new(self.limits);
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Limits};
    use std::time::{Duration, Instant};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn three_in_a_minute() -> Backoff {
        Backoff::new(Limits { failures: 3, window: s(60), rest: s(10), longest_rest: s(30) })
    }

    #[test]
    fn invariant_14_limits_a_crash_loop_is_given_a_rest() {
        let (mut backoff, start) = (three_in_a_minute(), Instant::now());
        for second in [0, 1] {
            backoff.failed(start + s(second));
            assert_eq!(backoff.check(start + s(second)), Ok(()));
        }
        backoff.failed(start + s(4));
        let refusal = backoff.check(start + s(5)).unwrap_err();
        assert_eq!(refusal.to_string(), "it crashed 3 times in 4 s; next try in 9 s");
        assert_eq!(backoff.check(start + s(14)), Ok(()));
    }

    #[test]
    fn failures_far_apart_are_bad_luck() {
        let (mut backoff, start) = (three_in_a_minute(), Instant::now());
        for second in [0, 50, 100, 150, 200] {
            backoff.failed(start + s(second));
            assert_eq!(backoff.check(start + s(second)), Ok(()), "{second}");
        }
    }

    #[test]
    fn each_further_failure_doubles_the_rest_up_to_a_limit() {
        let (mut backoff, mut now) = (three_in_a_minute(), Instant::now());
        backoff.failed(now);
        backoff.failed(now);
        for rest in [10, 20, 30, 30] {
            backoff.failed(now);
            assert_eq!(backoff.check(now).unwrap_err().wait, s(rest));
            now += s(rest);
            assert_eq!(backoff.check(now), Ok(()));
        }
    }

    #[test]
    fn a_success_forgives() {
        let (mut backoff, now) = (three_in_a_minute(), Instant::now());
        for _ in 0..3 {
            backoff.failed(now);
        }
        assert!(backoff.check(now).is_err());
        backoff.succeeded();
        assert_eq!(backoff.check(now), Ok(()));
        backoff.failed(now);
        backoff.failed(now);
        assert_eq!(backoff.check(now), Ok(()));
    }
}

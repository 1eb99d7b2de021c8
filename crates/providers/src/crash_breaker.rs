//! A circuit breaker per agent: a program that crashes repeatedly is not restarted with every message.

use domain::run::RunError;
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::time::Instant;
use workbench::process::Backoff;

/// More agents than are expected to fail at once. Beyond that, the oldest crash record is dropped.
const MAX_AGENTS: usize = 1024;

/// The recent crashes of each agent. Every provider has one breaker.
#[derive(Debug)]
pub struct CrashBreaker<K> {
    /// The display name of the program.
    name: String,
    failing: Mutex<HashMap<K, CrashRecord>>,
}

#[derive(Debug)]
struct CrashRecord {
    backoff: Backoff,
    last: Instant,
    /// The error message of the last crash.
    message: String,
}

impl<K: Eq + Hash + Clone> CrashBreaker<K> {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), failing: Mutex::default() }
    }

    fn failing(&self) -> MutexGuard<'_, HashMap<K, CrashRecord>> {
        // Every change is a single step, so a panic cannot leave the map inconsistent.
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error while the program must not be started for this agent.
    pub fn check(&self, key: &K) -> Result<(), RunError> {
        let failing = self.failing();
        let Some(CrashRecord { backoff, message, .. }) = failing.get(key) else { return Ok(()) };
        backoff.check(Instant::now().into_std()).map_err(|rest| {
            let message = format!("{} is not started now: {rest}. Last error: {message}", self.name);
            RunError::new("program_crashed", message)
        })
    }

    /// Records that a turn or a start of this agent has failed. A missing program or login does not count as a crash:
    /// it is reported and retried immediately.
    pub fn record_failure(&self, key: &K, error: &RunError) {
        if !matches!(error.code.as_str(), "program_crashed" | "start_failed" | "start_timeout" | "bad_output") {
            return;
        }
        let now = Instant::now();
        let mut failing = self.failing();
        if failing.len() >= MAX_AGENTS && !failing.contains_key(key) {
            let oldest = failing.iter().min_by_key(|(_, failing)| failing.last).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| failing.remove(&oldest));
        }
        let entry = failing.entry(key.clone()).or_insert_with(|| CrashRecord {
            backoff: Backoff::default(),
            last: now,
            message: String::new(),
        });
        // The breaker's own error does not count as a crash, nor does a failure of a turn that started before it
        // opened.
        if entry.backoff.check(now.into_std()).is_ok() {
            entry.backoff.record_failure(now.into_std());
            entry.last = now;
            error.message.clone_into(&mut entry.message);
        }
    }

    /// Records a success and clears earlier crashes.
    pub fn record_success(&self, key: &K) {
        self.failing().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::{CrashBreaker, MAX_AGENTS};
    use domain::run::RunError;
    use std::time::Duration;
    use tokio::time::advance;

    fn error(code: &str) -> RunError {
        RunError::new(code, "boom")
    }

    #[tokio::test(start_paused = true)]
    async fn invariant_14_limits_repeated_crashes_block_only_the_crashing_agent() {
        let crashes = CrashBreaker::new("It");
        for _ in 0..3 {
            assert_eq!(crashes.check(&1), Ok(()));
            crashes.record_failure(&1, &error("program_crashed"));
            advance(Duration::from_secs(1)).await;
        }
        let refused = crashes.check(&1).unwrap_err();
        let message = "It is not started now: it crashed 3 times in 2 s; next try in 9 s. Last error: boom";
        assert_eq!((refused.code.as_str(), refused.message.as_str()), ("program_crashed", message));
        // The breaker's own error does not extend the wait.
        crashes.record_failure(&1, &refused);
        assert_eq!(crashes.check(&2), Ok(()));
        advance(Duration::from_secs(9)).await;
        assert_eq!(crashes.check(&1), Ok(()));
        crashes.record_success(&1);
        crashes.record_failure(&1, &error("program_crashed"));
        assert_eq!(crashes.check(&1), Ok(()), "the count restarts after a success");
    }

    #[tokio::test(start_paused = true)]
    async fn only_crashes_count() {
        for (code, counts) in [
            ("program_crashed", true),
            ("start_failed", true),
            ("start_timeout", true),
            ("bad_output", true),
            ("authentication_failed", false),
            ("program_missing", false),
            ("api_error", false),
        ] {
            let crashes = CrashBreaker::new("It");
            (0..3).for_each(|_| crashes.record_failure(&1, &error(code)));
            assert_eq!(crashes.check(&1).is_err(), counts, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn invariant_14_limits_oldest_record_is_dropped_when_too_many_agents_crash() {
        let crashes = CrashBreaker::new("It");
        for agent in 0..=MAX_AGENTS {
            (0..3).for_each(|_| crashes.record_failure(&agent, &error("program_crashed")));
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(crashes.failing().len(), MAX_AGENTS);
        assert_eq!(crashes.check(&0), Ok(()));
        assert!(crashes.check(&1).is_err());
    }
}

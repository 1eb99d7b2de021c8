//! Agents whose program crashes over and over are given a rest, so that it is not started again with every message.

use domain::run::RunError;
use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::time::Instant;
use workbench::process::Backoff;

/// More agents than ever fail at once. Beyond that, the one that crashed longest ago is forgotten.
const MAX_AGENTS: usize = 1024;

/// What has crashed lately, of each agent. A provider has one of these.
#[derive(Debug)]
pub struct Crashes<K> {
    /// As people call the program.
    name: String,
    failing: Mutex<HashMap<K, Failing>>,
}

#[derive(Debug)]
struct Failing {
    backoff: Backoff,
    last: Instant,
    /// What it crashed with.
    message: String,
}

impl<K: Eq + Hash + Clone> Crashes<K> {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), failing: Mutex::default() }
    }

    fn failing(&self) -> MutexGuard<'_, HashMap<K, Failing>> {
        // Each change is one step; a panic elsewhere leaves nothing half done.
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program may be started for this agent now.
    pub fn check(&self, key: &K) -> Result<(), RunError> {
        let failing = self.failing();
        let Some(Failing { backoff, message, .. }) = failing.get(key) else { return Ok(()) };
        backoff.check(Instant::now().into_std()).map_err(|rest| {
            let message = format!("{} is not started now: {rest}. It was: {message}", self.name);
            RunError::new("program_crashed", message)
        })
    }

    /// A turn or a start of this agent has failed. A program that is missing or not logged in is told so at once, and
    /// tried again at once when somebody has seen to it: that is no crash.
    pub fn failed(&self, key: &K, error: &RunError) {
        if !matches!(error.code.as_str(), "program_crashed" | "start_failed" | "start_timeout" | "bad_output") {
            return;
        }
        let now = Instant::now();
        let mut failing = self.failing();
        if failing.len() >= MAX_AGENTS && !failing.contains_key(key) {
            let oldest = failing.iter().min_by_key(|(_, failing)| failing.last).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| failing.remove(&oldest));
        }
        let entry = failing.entry(key.clone()).or_insert_with(|| Failing {
            backoff: Backoff::default(),
            last: now,
            message: String::new(),
        });
        // What only says that it rests is no further failure, nor is one that was under way when the rest began.
        if entry.backoff.check(now.into_std()).is_ok() {
            entry.backoff.failed(now.into_std());
            entry.last = now;
            error.message.clone_into(&mut entry.message);
        }
    }

    /// It works: what was before does not count any more.
    pub fn succeeded(&self, key: &K) {
        self.failing().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::{Crashes, MAX_AGENTS};
    use domain::run::RunError;
    use std::time::Duration;
    use tokio::time::advance;

    fn error(code: &str) -> RunError {
        RunError::new(code, "boom")
    }

    #[tokio::test(start_paused = true)]
    async fn invariant_14_limits_an_agent_that_crashes_again_and_again_rests_and_others_do_not() {
        let crashes = Crashes::new("It");
        for _ in 0..3 {
            assert_eq!(crashes.check(&1), Ok(()));
            crashes.failed(&1, &error("program_crashed"));
            advance(Duration::from_secs(1)).await;
        }
        let refused = crashes.check(&1).unwrap_err();
        let message = "It is not started now: it crashed 3 times in 2 s; next try in 9 s. It was: boom";
        assert_eq!((refused.code.as_str(), refused.message.as_str()), ("program_crashed", message));
        // To say that it rests does not prolong the rest.
        crashes.failed(&1, &refused);
        assert_eq!(crashes.check(&2), Ok(()));
        advance(Duration::from_secs(9)).await;
        assert_eq!(crashes.check(&1), Ok(()));
        crashes.succeeded(&1);
        crashes.failed(&1, &error("program_crashed"));
        assert_eq!(crashes.check(&1), Ok(()), "counted anew");
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
            let crashes = Crashes::new("It");
            (0..3).for_each(|_| crashes.failed(&1, &error(code)));
            assert_eq!(crashes.check(&1).is_err(), counts, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn invariant_14_limits_the_oldest_is_forgotten_when_too_many_crash() {
        let crashes = Crashes::new("It");
        for agent in 0..=MAX_AGENTS {
            (0..3).for_each(|_| crashes.failed(&agent, &error("program_crashed")));
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(crashes.failing().len(), MAX_AGENTS);
        assert_eq!(crashes.check(&0), Ok(()));
        assert!(crashes.check(&1).is_err());
    }
}

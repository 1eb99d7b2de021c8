//! Stops a turn completely: interrupts it, ends the commands that outlive it and, if necessary, kills the instance.

use super::{instance::InstanceEnd, leftovers, turn::CodexTurn};
use crate::{jsonrpc::CallError, program};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long Codex may take to interrupt a turn. It usually needs about ten milliseconds.
pub const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long it may take until no command is running.
const CLEAN_TIMEOUT: Duration = Duration::from_secs(2);
/// The results of the commands follow immediately.
const RESULTS_TIMEOUT: Duration = Duration::from_millis(500);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// A sandboxed command stops from the outside in, which takes about ten milliseconds.
const TEARDOWN_TIME: Duration = Duration::from_millis(200);

impl CodexTurn<'_> {
    /// Returns when nothing of the turn is running; with the end of the instance, if it had to be killed.
    pub async fn shut_down(&mut self, since: Instant) -> Option<Arc<InstanceEnd>> {
        if self.instance_ended {
            return None;
        }
        let must_break_off = self.end.is_none();
        if must_break_off || self.parser.has_running_commands() {
            let thread = self.thread.clone();
            let running = tokio::task::spawn_blocking(move || leftovers::running(&thread));
            // Counted before Codex ends them itself: the receipt has every process that the stop has ended.
            self.running_at_stop =
                self.during(running, Some(since + INTERRUPT_TIMEOUT)).await.and_then(Result::ok).unwrap_or_default();
        }
        if must_break_off && !self.interrupt(since + INTERRUPT_TIMEOUT).await {
            return self.kill("it did not respond when a turn was interrupted").await;
        }
        if self.instance_ended {
            return None;
        }
        // Commands outlive an interrupt, and background commands outlive a finished turn.
        let deadline = Instant::now() + CLEAN_TIMEOUT;
        let is_clean = !(must_break_off || self.parser.has_running_commands()) || self.clean(deadline).await;
        let is_swept = !self.parser.has_started_commands() || self.sweep(deadline).await;
        if !(is_clean && is_swept) {
            return self.kill("commands of a finished turn could not be stopped otherwise").await;
        }
        None
    }

    /// Interrupts the turn. Returns whether it has ended.
    async fn interrupt(&mut self, deadline: Instant) -> bool {
        while self.end.is_none() && !self.instance_ended {
            let Some(turn) = self.parser.turn() else {
                // The turn was started, but its id is not known yet.
                if !self.step_until(deadline).await {
                    return false;
                }
                continue;
            };
            let params = json!({"threadId": self.thread, "turnId": turn});
            match self.call("turn/interrupt", params, deadline).await {
                Ok(_) => {
                    while self.end.is_none() && !self.instance_ended {
                        if !self.step_until(deadline).await {
                            return false;
                        }
                    }
                }
                // Codex refuses to interrupt a turn that has an id but has not started, so try again.
                Err(CallError::Refused { .. }) => {
                    if self.during(tokio::time::sleep(RETRY_INTERVAL), Some(deadline)).await.is_none() {
                        return false;
                    }
                }
                Err(_) => return self.instance_ended,
            }
        }
        true
    }

    /// Ends the thread's commands. Returns whether none is running.
    async fn clean(&mut self, deadline: Instant) -> bool {
        let thread = json!({"threadId": self.thread});
        match self.call("thread/backgroundTerminals/clean", thread.clone(), deadline).await {
            Ok(_) => {}
            Err(CallError::Refused { message, .. }) => {
                tracing::debug!(message, "Codex refused to end its commands");
                return !self.parser.has_running_commands();
            }
            Err(_) => return self.instance_ended,
        }
        loop {
            match self.call("thread/backgroundTerminals/list", thread.clone(), deadline).await {
                Ok(list) if is_empty(&list) => break,
                Ok(_) => {}
                Err(_) => return self.instance_ended,
            }
            if self.during(tokio::time::sleep(RETRY_INTERVAL), Some(deadline)).await.is_none() {
                return false;
            }
        }
        let deadline = deadline.min(Instant::now() + RESULTS_TIMEOUT);
        while self.parser.has_running_commands() && !self.instance_ended && self.step_until(deadline).await {}
        true
    }

    /// Waits for the processes started by the thread's commands, and kills them after a moment. Returns whether all
    /// ended.
    async fn sweep(&mut self, deadline: Instant) -> bool {
        let force_at = deadline.min(Instant::now() + TEARDOWN_TIME);
        let mut killed = BTreeSet::new();
        let is_swept = loop {
            let (thread, by_force) = (self.thread.clone(), Instant::now() >= force_at);
            let look = move || match by_force {
                true => (leftovers::kill(&thread), leftovers::running(&thread).len()),
                false => (Vec::new(), leftovers::running(&thread).len()),
            };
            let look = self.during(tokio::task::spawn_blocking(look), Some(deadline)).await;
            let Some(Ok((ended, left))) = look else { break false };
            killed.extend(ended);
            if left == 0 {
                break true;
            }
            if self.during(tokio::time::sleep(TEARDOWN_TIME / 10), Some(deadline)).await.is_none() {
                break false;
            }
        };
        let count = u32::try_from(killed.len()).unwrap_or(u32::MAX);
        program::leftovers_ended(count).into_iter().for_each(|status| self.port.send(status));
        self.killed = killed;
        is_swept
    }

    async fn kill(&mut self, why: &str) -> Option<Arc<InstanceEnd>> {
        if self.instance_ended {
            return None;
        }
        // The rest is counted by the keeper of the instance.
        let thread = self.thread.clone();
        if let Ok(left) = tokio::task::spawn_blocking(move || leftovers::running(&thread)).await {
            self.running_at_stop.retain(|process| !left.contains(process));
            self.killed.retain(|process| !left.contains(process));
        }
        let lost = self.instance.stop_with(&format!("Codex was stopped with all its turns: {why}.")).await;
        self.instance_ended = true;
        Some(lost)
    }

    async fn call(&mut self, method: &'static str, params: Value, deadline: Instant) -> Result<Value, CallError> {
        let peer = self.instance.peer.clone();
        let time = deadline.saturating_duration_since(Instant::now());
        let call = async move { peer.request(method, params, time).await };
        let answer = self.during(call, Some(deadline)).await.unwrap_or(Err(CallError::Timeout));
        self.instance_ended |= matches!(answer, Err(CallError::Closed(_)));
        answer
    }

    /// Returns whether something was handled before the deadline.
    async fn step_until(&mut self, deadline: Instant) -> bool {
        tokio::time::timeout_at(deadline, self.step()).await.is_ok()
    }
}

fn is_empty(list: &Value) -> bool {
    list.get("data").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

//! Ending a turn for sure: the word to stop, then the commands that outlive it, then, if need be, the whole instance.

use super::{instance::Lost, leftovers, turn::Turn};
use crate::{jsonrpc::CallError, program};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long Codex may take to break off a turn. It needs some ten milliseconds.
pub const INTERRUPT: Duration = Duration::from_secs(3);
/// How long it may take until no command runs any more.
const CLEAN: Duration = Duration::from_secs(2);
/// What came of the commands is told right behind.
const RESULTS: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_millis(50);
/// A command in its sandbox goes down from the outside in; that takes some ten milliseconds.
const TEARDOWN: Duration = Duration::from_millis(200);

impl Turn<'_> {
    /// Comes back when nothing of the turn runs any more; with how the instance ended, if that is what it took.
    pub async fn put_to_rest(&mut self, since: Instant) -> Option<Arc<Lost>> {
        if self.is_lost {
            return None;
        }
        let must_break_off = self.end.is_none();
        if must_break_off && !self.interrupt(since + INTERRUPT).await {
            return self.kill("a turn was to be interrupted and it did not answer").await;
        }
        if self.is_lost {
            return None;
        }
        // Commands outlive an interrupt, and those that a finished turn left in the background outlive that too.
        let deadline = Instant::now() + CLEAN;
        let is_clean = !(must_break_off || self.parser.commands_run()) || self.clean(deadline).await;
        let is_swept = !self.parser.has_run_commands() || self.sweep(deadline).await;
        if !(is_clean && is_swept) {
            return self.kill("commands of a turn that was over could not be ended otherwise").await;
        }
        None
    }

    /// Whether the turn has ended.
    async fn interrupt(&mut self, deadline: Instant) -> bool {
        while self.end.is_none() && !self.is_lost {
            let Some(turn) = self.parser.turn() else {
                // It was started and has not been named yet.
                if !self.step_until(deadline).await {
                    return false;
                }
                continue;
            };
            let params = json!({"threadId": self.thread, "turnId": turn});
            match self.call("turn/interrupt", params, deadline).await {
                Ok(_) => {
                    while self.end.is_none() && !self.is_lost {
                        if !self.step_until(deadline).await {
                            return false;
                        }
                    }
                }
                // A turn that is named but has not begun is not there to be interrupted: it would run then.
                Err(CallError::Refused { .. }) => {
                    if self.during(tokio::time::sleep(AGAIN), Some(deadline)).await.is_none() {
                        return false;
                    }
                }
                Err(_) => return self.is_lost,
            }
        }
        true
    }

    /// Whether no command of the thread runs any more.
    async fn clean(&mut self, deadline: Instant) -> bool {
        let thread = json!({"threadId": self.thread});
        match self.call("thread/backgroundTerminals/clean", thread.clone(), deadline).await {
            Ok(_) => {}
            Err(CallError::Refused { message, .. }) => {
                tracing::debug!(message, "Codex does not end commands");
                return !self.parser.commands_run();
            }
            Err(_) => return self.is_lost,
        }
        loop {
            match self.call("thread/backgroundTerminals/list", thread.clone(), deadline).await {
                Ok(list) if is_empty(&list) => break,
                Ok(_) => {}
                Err(_) => return self.is_lost,
            }
            if self.during(tokio::time::sleep(AGAIN), Some(deadline)).await.is_none() {
                return false;
            }
        }
        let deadline = deadline.min(Instant::now() + RESULTS);
        while self.parser.commands_run() && !self.is_lost && self.step_until(deadline).await {}
        true
    }

    /// Whether nothing that a command of the thread started runs any more, by force after a moment.
    async fn sweep(&mut self, deadline: Instant) -> bool {
        let patience = deadline.min(Instant::now() + TEARDOWN);
        let mut killed = BTreeSet::new();
        let is_swept = loop {
            let (thread, by_force) = (self.thread.clone(), Instant::now() >= patience);
            let look = move || match by_force {
                true => (leftovers::kill(&thread), leftovers::count(&thread)),
                false => (Vec::new(), leftovers::count(&thread)),
            };
            let look = self.during(tokio::task::spawn_blocking(look), Some(deadline)).await;
            let Some(Ok((ended, left))) = look else { break false };
            killed.extend(ended);
            if left == 0 {
                break true;
            }
            if self.during(tokio::time::sleep(TEARDOWN / 10), Some(deadline)).await.is_none() {
                break false;
            }
        };
        if !killed.is_empty() {
            self.killed = u32::try_from(killed.len()).unwrap_or(u32::MAX);
            program::strays_ended(killed.len()).into_iter().for_each(|status| self.room.say(status));
        }
        is_swept
    }

    async fn kill(&mut self, why: &str) -> Option<Arc<Lost>> {
        if self.is_lost {
            return None;
        }
        let lost = self.instance.end(&format!("Codex was stopped with all its turns: {why}.")).await;
        self.is_lost = true;
        Some(lost)
    }

    async fn call(&mut self, method: &'static str, params: Value, deadline: Instant) -> Result<Value, CallError> {
        let peer = self.instance.peer.clone();
        let time = deadline.saturating_duration_since(Instant::now());
        let call = async move { peer.request(method, params, time).await };
        let answer = self.during(call, Some(deadline)).await.unwrap_or(Err(CallError::Timeout));
        self.is_lost |= matches!(answer, Err(CallError::Closed(_)));
        answer
    }

    /// Whether something came before the deadline.
    async fn step_until(&mut self, deadline: Instant) -> bool {
        tokio::time::timeout_at(deadline, self.step()).await.is_ok()
    }
}

fn is_empty(list: &Value) -> bool {
    list.get("data").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

//! The messages that are added to a running turn. The program answers a message that arrives during a tool call in the
//! turn itself, and any other in a turn of its own, right after the running one. So a run that has taken messages ends
//! when the program has answered all of them. Pure.

use super::parse::ClaudeMessageState;
use domain::ids::MessageId;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How long the program may take to confirm a message: less than the engine waits.
pub(super) const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct ClaudeSteering {
    /// By the uuid under which the program knows them.
    open: BTreeMap<String, OpenMessage>,
}

#[derive(Debug)]
struct OpenMessage {
    message: MessageId,
    /// Until when the program must confirm the message; `None` when it has.
    confirm_by: Option<Instant>,
    is_started: bool,
}

/// The answer to the engine.
#[derive(Debug, PartialEq)]
pub(super) enum SteerReply {
    Taken(MessageId),
    Declined(MessageId),
}

impl ClaudeSteering {
    /// Returns the uuid to send the message with.
    pub fn add(&mut self, message: MessageId, now: Instant) -> String {
        let uuid = message.to_string();
        self.open
            .insert(uuid.clone(), OpenMessage { message, confirm_by: Some(now + CONFIRM_TIMEOUT), is_started: false });
        uuid
    }

    /// The program reports the state of a message.
    pub fn report(&mut self, uuid: &str, state: ClaudeMessageState) -> Option<SteerReply> {
        let open = self.open.get_mut(uuid)?;
        let (message, is_new) = (open.message, open.confirm_by.take().is_some());
        match state {
            ClaudeMessageState::Queued => {}
            ClaudeMessageState::Taken => open.is_started = true,
            ClaudeMessageState::Cancelled => {
                self.open.remove(uuid);
                return is_new.then_some(SteerReply::Declined(message));
            }
        }
        is_new.then_some(SteerReply::Taken(message))
    }

    /// The program has answered these messages. Returns those that it had not confirmed.
    pub fn answered(&mut self, uuids: &[String]) -> Vec<SteerReply> {
        let answered = uuids.iter().filter_map(|uuid| self.open.remove(uuid));
        answered.filter(|open| open.confirm_by.is_some()).map(|open| SteerReply::Taken(open.message)).collect()
    }

    /// Removes the messages that the program did not confirm in time, with their uuids.
    pub fn expire(&mut self, now: Instant) -> Vec<(String, MessageId)> {
        let is_late = |open: &OpenMessage| open.confirm_by.is_some_and(|deadline| deadline <= now);
        self.open.extract_if(.., |_, open| is_late(open)).map(|(uuid, open)| (uuid, open.message)).collect()
    }

    /// The turn is being stopped: messages that wait in the program's queue are not awaited any more. Returns those that
    /// were not confirmed.
    pub fn remove_waiting(&mut self) -> Vec<SteerReply> {
        let waiting = self.open.extract_if(.., |_, open| !open.is_started).map(|(_, open)| open);
        waiting.filter(|open| open.confirm_by.is_some()).map(|open| SteerReply::Declined(open.message)).collect()
    }

    pub fn contains_any(&self, uuids: &[String]) -> bool {
        uuids.iter().any(|uuid| self.open.contains_key(uuid))
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|open| open.confirm_by).min()
    }
}

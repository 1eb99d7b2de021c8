//! The items a reader receives: events with their exact bytes, heartbeats and resets.

use super::TestClientError;
use domain::{
    event::{EventBody, EventType},
    ids::{AgentId, EventId, RoomId, RunId},
    position::{Epoch, Position, Seq},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One event as received from the server.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenEvent {
    pub id: EventId,
    pub room_id: RoomId,
    pub seq: Seq,
    pub kind: EventType,
    pub run_id: Option<RunId>,
    pub agent_id: Option<AgentId>,
    /// JSON text.
    pub data: Box<str>,
    /// The whole event, byte for byte.
    pub json: Box<str>,
}

#[derive(Deserialize)]
struct EventEnvelope<'a> {
    id: EventId,
    room_id: RoomId,
    seq: Seq,
    #[serde(rename = "type")]
    kind: EventType,
    run_id: Option<RunId>,
    agent_id: Option<AgentId>,
    #[serde(borrow)]
    data: &'a RawValue,
}

impl SeenEvent {
    pub fn parse(json: &str) -> Result<Self, TestClientError> {
        let envelope: EventEnvelope<'_> = serde_json::from_str(json)
            .map_err(|error| TestClientError::unexpected(format!("event {json}: {error}")))?;
        Ok(Self {
            id: envelope.id,
            room_id: envelope.room_id,
            seq: envelope.seq,
            kind: envelope.kind,
            run_id: envelope.run_id,
            agent_id: envelope.agent_id,
            data: envelope.data.get().into(),
            json: json.into(),
        })
    }

    pub fn body(&self) -> Result<EventBody, TestClientError> {
        EventBody::parse(self.kind, &self.data)
            .map_err(|error| TestClientError::unexpected(format!("{}: {error}", self.json)))
    }
}

/// The current end of the journal: the data of heartbeats and resets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SeenHead {
    pub epoch: Epoch,
    pub head: Seq,
}

/// One item received about a room.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenItem {
    Event(SeenEvent),
    Heartbeat(SeenHead),
    /// The position is no longer valid; the journal follows from its first event.
    Reset(SeenHead),
}

/// Formats a position for `Last-Event-ID` and `after`.
pub(super) fn position_text(position: &Position) -> String {
    match &position.epoch {
        Some(epoch) => format!("{epoch}-{}", position.seq),
        None => position.seq.to_string(),
    }
}

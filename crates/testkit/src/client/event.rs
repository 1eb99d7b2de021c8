//! What a reader is shown: events with the exact bytes they came in, heartbeats and resets.

use super::Error;
use domain::{
    event::{EventBody, EventType},
    ids::{AgentId, EventId, RoomId, RunId},
    position::{Epoch, Position, Seq},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One event as a door showed it.
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
struct Envelope<'a> {
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
    pub fn parse(json: &str) -> Result<Self, Error> {
        let envelope: Envelope<'_> =
            serde_json::from_str(json).map_err(|error| Error::shape(format!("event {json}: {error}")))?;
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

    pub fn body(&self) -> Result<EventBody, Error> {
        EventBody::parse(self.kind, &self.data).map_err(|error| Error::shape(format!("{}: {error}", self.json)))
    }
}

/// Where the server says it is: the data of heartbeats and resets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Place {
    pub epoch: Epoch,
    pub head: Seq,
}

/// One thing a reader is told about a room.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    Event(SeenEvent),
    Heartbeat(Place),
    /// The position is of no use any more; the journal follows from its first event.
    Reset(Place),
}

/// As `Last-Event-ID` and `after` take it.
pub(super) fn written(position: &Position) -> String {
    match &position.epoch {
        Some(epoch) => format!("{epoch}-{}", position.seq),
        None => position.seq.to_string(),
    }
}

//! One entry of a journal: an event to append, a stored event, and the one function that writes its public JSON.

use super::{EventBody, EventType};
use crate::{
    ids::{AgentId, EventId, RoomId, RunId},
    position::Seq,
    time::Timestamp,
};
use std::io::Write as _;

/// An event that has no seq yet. Its id is assigned here, so appending it twice stores it once (invariant 7).
#[derive(Clone, PartialEq, Debug)]
pub struct NewEvent {
    pub id: EventId,
    pub kind: EventType,
    pub run_id: Option<RunId>,
    pub agent_id: Option<AgentId>,
    /// JSON text.
    pub data: String,
    /// The provider's raw data as JSON text. Stored, and returned only on request.
    pub raw: Option<String>,
}

impl NewEvent {
    pub fn new(body: impl Into<EventBody>) -> Self {
        let body = body.into();
        Self { id: EventId::generate(), kind: body.kind(), run_id: None, agent_id: None, data: body.data(), raw: None }
    }

    #[must_use]
    pub fn of_run(mut self, run_id: RunId, agent_id: AgentId) -> Self {
        self.run_id = Some(run_id);
        self.agent_id = Some(agent_id);
        self
    }

    #[must_use]
    pub fn with_raw(mut self, raw: Option<String>) -> Self {
        self.raw = raw;
        self
    }

    /// The bytes that count as stored: the event's data and the provider's.
    pub fn stored_bytes(&self) -> usize {
        self.data.len() + self.raw.as_ref().map_or(0, String::len)
    }
}

/// An event in the journal.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    pub id: EventId,
    pub room_id: RoomId,
    pub seq: Seq,
    pub kind: EventType,
    pub run_id: Option<RunId>,
    pub agent_id: Option<AgentId>,
    /// JSON text, byte for byte as it was appended.
    pub data: String,
    pub raw: Option<String>,
    pub created_at: Timestamp,
}

impl Event {
    pub fn body(&self) -> Result<EventBody, serde_json::Error> {
        EventBody::parse(self.kind, &self.data)
    }

    /// Appends the public JSON. Written by hand because `data` is already JSON text and should not be parsed again; no
    /// other field can contain a character that JSON escapes.
    pub fn write_json(&self, out: &mut Vec<u8>, with_raw: bool) {
        let wrote = self.try_write_json(out, with_raw);
        debug_assert!(wrote.is_ok(), "writing to memory does not fail");
    }

    fn try_write_json(&self, out: &mut Vec<u8>, with_raw: bool) -> std::io::Result<()> {
        write!(out, r#"{{"id":"{}","room_id":"{}","seq":{},"type":"{}""#, self.id, self.room_id, self.seq, self.kind)?;
        match self.run_id {
            Some(id) => write!(out, r#","run_id":"{id}""#)?,
            None => out.extend_from_slice(br#","run_id":null"#),
        }
        match self.agent_id {
            Some(id) => write!(out, r#","agent_id":"{id}""#)?,
            None => out.extend_from_slice(br#","agent_id":null"#),
        }
        write!(out, r#","data":{},"created_at":"{}""#, self.data, self.created_at)?;
        if with_raw {
            write!(out, r#","raw":{}"#, self.raw.as_deref().unwrap_or("null"))?;
        }
        out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, NewEvent};
    use crate::{
        event::{ContentDelta, EventBody, EventType},
        ids::{EventId, MessageId, RoomId},
        time::Timestamp,
    };
    use uuid::Uuid;

    fn sample(delta: &str) -> Event {
        let new = NewEvent::new(ContentDelta { stream_id: MessageId(Uuid::nil()), delta: delta.into(), item: None });
        Event {
            id: EventId(Uuid::nil()),
            room_id: RoomId(Uuid::nil()),
            seq: 7,
            kind: new.kind,
            run_id: None,
            agent_id: None,
            data: new.data,
            raw: Some(r#"{"a":1}"#.into()),
            created_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn invariant_16_content_is_data_and_cannot_break_out_of_its_line() {
        let hostile = "a\r\n\r\nevent: forged\ndata: {}\u{0}\u{2028}\"}";
        let mut json = Vec::new();
        sample(hostile).write_json(&mut json, false);
        assert!(!json.iter().any(|&b| b < 0x20), "no control byte in a frame");
        let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(value["data"]["delta"], hostile);
        assert_eq!(value["seq"], 7);
        assert!(value.get("raw").is_none());
    }

    #[test]
    fn raw_data_is_included_only_on_request() {
        let mut json = Vec::new();
        sample("x").write_json(&mut json, true);
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&json).unwrap()["raw"]["a"], 1);
    }

    #[test]
    fn every_event_type_parses_from_its_name() {
        for kind in EventType::ALL {
            assert_eq!(kind.as_str().parse::<EventType>().unwrap(), *kind);
        }
        assert!("nonsense".parse::<EventType>().is_err());
    }

    #[test]
    fn event_bodies_parse_from_their_json() {
        let body = sample("hé").body().unwrap();
        assert!(matches!(&body, EventBody::ContentDelta(d) if d.delta == "hé"));
        assert_eq!(EventBody::parse(body.kind(), &body.data()).unwrap(), body);
    }
}

//! A page of events as JSON, assembled from the stored bytes of each event.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use store::journal::Page;

pub const DEFAULT_LIMIT: u32 = 500;
pub const MAX_LIMIT: u32 = 10_000;

pub fn respond(page: &Page, with_raw: bool) -> Response {
    let size: usize = page.events.iter().map(|event| event.data.len() + 320).sum();
    let mut body = Vec::with_capacity(size + 64);
    body.extend_from_slice(format!(r#"{{"epoch":"{}","head":{},"events":["#, page.epoch, page.head).as_bytes());
    for (index, event) in page.events.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        event.write_json(&mut body, with_raw);
    }
    body.extend_from_slice(b"]}");
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}

/// A page of a room's events.
#[derive(Serialize, utoipa::ToSchema)]
pub struct EventPage {
    pub epoch: String,
    /// The seq of the room's newest event when the page was read.
    pub head: u64,
    pub events: Vec<EventView>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    pub id: uuid::Uuid,
    pub room_id: uuid::Uuid,
    /// 1, 2, 3 … without gaps.
    pub seq: u64,
    #[serde(rename = "type")]
    pub kind: domain::event::EventType,
    pub run_id: Option<uuid::Uuid>,
    pub agent_id: Option<uuid::Uuid>,
    /// Depends on the type; see the events guide.
    pub data: serde_json::Value,
    pub created_at: domain::time::Timestamp,
    /// The provider's original data; only with `raw=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<serde_json::Value>,
}

/// The bytes of one event as a stream sends them.
#[cfg(test)]
fn json(event: &domain::event::Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    event.write_json(&mut bytes, false);
    bytes
}

#[cfg(test)]
mod tests {
    use super::{EventView, json};
    use domain::{
        event::{Event, NewEvent, ParticipantLeft},
        ids::{AgentId, RoomId},
        time::Timestamp,
    };

    #[test]
    fn the_schema_has_exactly_the_fields_that_are_sent() {
        let new = NewEvent::new(ParticipantLeft { agent_id: AgentId::generate() });
        let event = Event {
            id: new.id,
            room_id: RoomId::generate(),
            seq: 1,
            kind: new.kind,
            run_id: None,
            agent_id: None,
            data: new.data,
            raw: None,
            created_at: Timestamp::from_millis(0),
        };
        let sent: serde_json::Value = serde_json::from_slice(&json(&event)).unwrap();
        let described = serde_json::to_value(EventView {
            id: event.id.0,
            room_id: event.room_id.0,
            seq: event.seq,
            kind: event.kind,
            run_id: None,
            agent_id: None,
            data: sent["data"].clone(),
            created_at: event.created_at,
            raw: None,
        })
        .unwrap();
        assert_eq!(sent, described);
    }
}

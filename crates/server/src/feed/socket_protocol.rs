//! The messages of the WebSocket, in both directions. Their schemas are part of the OpenAPI document.

use crate::error::Code;
use axum::extract::ws::Message;
use domain::{
    event::Event,
    ids::RoomId,
    position::{Epoch, Position},
    room::RoomSummary,
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use utoipa::openapi::{ObjectBuilder, Schema, Type, schema::SchemaType};

/// A message of a client.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketRequest {
    /// Follow a room. Following it again moves its position.
    Subscribe {
        room: RoomId,
        #[serde(default = "start", deserialize_with = "position")]
        #[schema(schema_with = position_schema)]
        after: Position,
    },
    Unsubscribe {
        room: RoomId,
    },
    /// Get the list of rooms, and then its changes.
    WatchRooms {},
    UnwatchRooms {},
    Ping {},
}

/// A message of the server. Messages and fields may be added: ignore those that you do not know.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SocketMessage {
    Subscribed {
        room: RoomId,
        epoch: Epoch,
        head: u64,
    },
    Unsubscribed {
        room: RoomId,
    },
    // Not sent from here: the journal writes the bytes of this message, once for all connections.
    Event {
        #[schema(value_type = Event)]
        event: Box<RawValue>,
    },
    /// The position is not in this journal: discard all events of the room. The journal follows from its beginning.
    Reset {
        room: RoomId,
        epoch: Epoch,
        head: u64,
    },
    /// The newest seq of every followed room. A client that has less has lost events.
    Heartbeat {
        epoch: Epoch,
        heads: BTreeMap<RoomId, u64>,
    },
    Rooms {
        rooms: Vec<RoomSummary>,
    },
    Room {
        room: Box<RoomSummary>,
    },
    RoomGone {
        id: RoomId,
    },
    UnwatchedRooms {},
    Pong {},
    Error {
        code: Code,
        /// For people: what is wrong and what to do.
        detail: String,
        /// The room that the error is about, if it is about one.
        room: Option<RoomId>,
    },
}

impl From<SocketMessage> for Message {
    /// Plain structs with string keys always serialize. An empty object would make a bug visible.
    fn from(message: SocketMessage) -> Self {
        Self::text(serde_json::to_string(&message).unwrap_or_else(|_| "{}".to_owned()))
    }
}

fn start() -> Position {
    Position::START
}

/// `17`, `"17"` or `"7c9e6f2a-17"`.
fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Position, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return Err(de::Error::custom("after: a number or a string")),
    };
    text.parse().map_err(de::Error::custom)
}

fn position_schema() -> Schema {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::String]))
        .description(Some(
            "The last event that the client has: `17`, or `7c9e6f2a-17` with the epoch. 0 is the beginning.",
        ))
        .into()
}

#[cfg(test)]
mod tests {
    use super::{SocketMessage, SocketRequest};
    use axum::extract::ws::Message;
    use domain::ids::RoomId;
    use serde_json::{Value, json, value::to_raw_value};

    #[test]
    fn messages_have_their_type_in_them() {
        let event = to_raw_value(&json!({"seq": 1})).unwrap();
        let id = RoomId(uuid::Uuid::nil());
        for (message, expected) in [
            (SocketMessage::Event { event }, json!({"type": "event", "event": {"seq": 1}})),
            (SocketMessage::Pong {}, json!({"type": "pong"})),
            (SocketMessage::RoomGone { id }, json!({"type": "room_gone", "id": id})),
        ] {
            let Message::Text(text) = Message::from(message) else { panic!("not a text") };
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        }
    }

    #[test]
    fn a_position_is_a_number_or_a_string() {
        let room = RoomId(uuid::Uuid::nil());
        let subscribe = |after: Value| {
            let request = json!({"type": "subscribe", "room": room, "after": after}).to_string();
            match serde_json::from_str(&request) {
                Ok(SocketRequest::Subscribe { after, .. }) => Some(after.seq),
                _ => None,
            }
        };
        assert_eq!(subscribe(json!(17)), Some(17));
        assert_eq!(subscribe(json!("17")), Some(17));
        assert_eq!(subscribe(json!("7c9e6f2a-17")), Some(17));
        assert_eq!(subscribe(json!([17])), None);
    }
}

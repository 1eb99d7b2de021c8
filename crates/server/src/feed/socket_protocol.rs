//! The messages of the WebSocket, in both directions. Their schemas are part of the OpenAPI document.

use crate::error::Code;
use bytes::Bytes;
use domain::{
    agent::Agent,
    event::Event,
    ids::{AgentId, RoomId, RunId},
    position::{Epoch, Position},
    room::RoomSummary,
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Value, value::RawValue};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Get what these agents say from now on, in all rooms, and how they change. Another request replaces the first one.
    SubscribeAgents {
        /// All agents by default, also those that are created later.
        #[serde(default)]
        agents: Option<BTreeSet<AgentId>>,
    },
    UnsubscribeAgents {},
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
    SubscribedAgents {
        agents: Vec<Agent>,
    },
    UnsubscribedAgents {},
    /// A text, a thought, a tool call or a tool result, as `content` of a `message` in the dialect `messages`.
    #[serde(rename = "agent:message", rename_all = "camelCase")]
    AgentMessage {
        agent_id: AgentId,
        room_id: RoomId,
        run_id: RunId,
        #[schema(value_type = Object)]
        content: Value,
    },
    /// The run has completed.
    #[serde(rename = "agent:complete", rename_all = "camelCase")]
    AgentComplete {
        agent_id: AgentId,
        room_id: RoomId,
        run_id: RunId,
        /// `input` and `output`.
        #[schema(value_type = Object)]
        tokens: Value,
        /// In US dollars; `null` if the price of the model is unknown.
        #[schema(value_type = Option<f64>)]
        cost: Value,
        /// In seconds.
        #[schema(value_type = f64)]
        duration: Value,
    },
    /// The run has failed.
    #[serde(rename = "agent:error", rename_all = "camelCase")]
    AgentError {
        agent_id: AgentId,
        room_id: RoomId,
        run_id: RunId,
        #[schema(value_type = String)]
        error: Value,
        /// A stable code, for programs.
        #[schema(value_type = String)]
        details: Value,
    },
    /// The run was cancelled or interrupted.
    #[serde(rename = "agent:cancelled", rename_all = "camelCase")]
    AgentCancelled {
        agent_id: AgentId,
        room_id: RoomId,
        run_id: RunId,
    },
    #[serde(rename = "agent:created")]
    AgentCreated {
        agent: Box<Agent>,
    },
    #[serde(rename = "agent:updated")]
    AgentUpdated {
        agent: Box<Agent>,
    },
    #[serde(rename = "agent:deleted", rename_all = "camelCase")]
    AgentDeleted {
        agent_id: AgentId,
    },
    Pong {},
    Error {
        code: Code,
        /// For people: what is wrong and what to do.
        detail: String,
        /// The room that the error is about, if it is about one.
        room: Option<RoomId>,
    },
}

impl From<SocketMessage> for Bytes {
    /// Plain structs with string keys always serialize. An empty object would make a bug visible.
    fn from(message: SocketMessage) -> Self {
        serde_json::to_vec(&message).map_or_else(|_| Self::from_static(b"{}"), Self::from)
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
    use bytes::Bytes;
    use domain::ids::{AgentId, RoomId, RunId};
    use serde_json::{Value, json, value::to_raw_value};

    #[test]
    fn messages_have_their_type_in_them() {
        let event = to_raw_value(&json!({"seq": 1})).unwrap();
        let (id, agent_id) = (RoomId(uuid::Uuid::nil()), AgentId(uuid::Uuid::nil()));
        let run_id = RunId(uuid::Uuid::nil());
        for (message, expected) in [
            (SocketMessage::Event { event }, json!({"type": "event", "event": {"seq": 1}})),
            (SocketMessage::Pong {}, json!({"type": "pong"})),
            (SocketMessage::RoomGone { id }, json!({"type": "room_gone", "id": id})),
            (SocketMessage::AgentDeleted { agent_id }, json!({"type": "agent:deleted", "agentId": agent_id})),
            (
                SocketMessage::AgentCancelled { agent_id, room_id: id, run_id },
                json!({"type": "agent:cancelled", "agentId": agent_id, "roomId": id, "runId": run_id}),
            ),
        ] {
            assert_eq!(serde_json::from_slice::<Value>(&Bytes::from(message)).unwrap(), expected);
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

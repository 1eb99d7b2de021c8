//! The row of an event. Only `journal` writes events.

use crate::{StoreError, error::unsigned, row::row};
use domain::{
    event::Event,
    ids::{AgentId, EventId, RoomId, RunId},
    time::Timestamp,
};
use uuid::Uuid;

row! {
    pub(crate) struct EventRow {
        room_id: Uuid,
        seq: i64,
        id: Uuid,
        kind: String,
        run_id: Option<Uuid>,
        agent_id: Option<Uuid>,
        created_at: i64,
        pub data: String,
        pub raw: Option<String>,
    }
}

impl TryFrom<EventRow> for Event {
    type Error = StoreError;
    fn try_from(row: EventRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: EventId(row.id),
            room_id: RoomId(row.room_id),
            seq: unsigned(row.seq)?,
            kind: row.kind.parse().map_err(StoreError::unreadable)?,
            run_id: row.run_id.map(RunId),
            agent_id: row.agent_id.map(AgentId),
            data: row.data,
            raw: row.raw,
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

//! What is planned in a room behind its queued runs. Most rooms have no row: their runs are queued when a message is
//! posted. The caller must have checked the room's owner.

use crate::{
    Store,
    commit::{ChangeContext, Statement},
    database::reading,
    error::{Result, signed, unsigned},
};
use domain::{ids::RoomId, position::Seq};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeRecord {
    /// The seq of the commit that stored it. A change names the version that it is based on.
    pub version: Seq,
    pub state: String,
}

impl Store {
    pub async fn tape(&self, room: RoomId) -> Result<Option<TapeRecord>> {
        let row: Option<(i64, String)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT version, state FROM tapes WHERE room_id = $1")
                .bind(room.0)
                .fetch_optional(pool)
                .await
        })?;
        row.map(|(version, state)| Ok(TapeRecord { version: unsigned(version)?, state })).transpose()
    }
}

pub(crate) fn put(context: &ChangeContext, state: Option<&str>) -> Statement {
    match state {
        Some(state) => Statement::new(
            "INSERT INTO tapes (room_id, version, state) VALUES ($1, $2, $3) \
             ON CONFLICT (room_id) DO UPDATE SET version = excluded.version, state = excluded.state",
        )
        .with(context.room.0)
        .with(signed(context.first_seq))
        .with(state),
        None => Statement::new("DELETE FROM tapes WHERE room_id = $1").with(context.room.0),
    }
}

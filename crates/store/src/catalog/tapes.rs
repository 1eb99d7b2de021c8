//! What is planned in a room behind its queued runs. Most rooms have no row: their runs are queued when a message is
//! posted. The caller must have checked the room's owner.

use crate::{
    Store, StoreError,
    commit::{ChangeContext, Statement, TapeHold},
    database::reading,
    error::{Result, signed, unsigned},
};
use domain::{
    ids::{AgentId, RoomId, RunId},
    position::Seq,
    run::RunStatus,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeRecord {
    /// The seq of the commit that stored it. A change names the version that it is based on.
    pub version: Seq,
    pub state: String,
    /// The cell whose runs may be claimed although the room is paused.
    pub released_cell: Option<Seq>,
}

impl Store {
    pub async fn tape(&self, room: RoomId) -> Result<Option<TapeRecord>> {
        let row: Option<(i64, String, Option<i64>)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT version, state, released_cell FROM tapes WHERE room_id = $1")
                .bind(room.0)
                .fetch_optional(pool)
                .await
        })?;
        row.map(|(version, state, released)| {
            let released_cell = released.map(unsigned).transpose()?;
            Ok(TapeRecord { version: unsigned(version)?, state, released_cell })
        })
        .transpose()
    }
}

/// An unfinished run of a room, with its cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRun {
    pub run_id: RunId,
    pub agent_id: AgentId,
    pub cell: Seq,
    pub status: RunStatus,
}

impl Store {
    /// Returns the unfinished runs of a room by cell, lowest first.
    pub async fn cell_runs(&self, room: RoomId) -> Result<Vec<CellRun>> {
        let rows: Vec<(Uuid, Uuid, i64, String)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT q.run_id, u.agent_id, q.cell, u.status FROM queue q JOIN runs u ON u.id = q.run_id \
                 WHERE q.room_id = $1 ORDER BY q.cell, q.queued_seq",
            )
            .bind(room.0)
            .fetch_all(pool)
            .await
        })?;
        let cell_run = |(run, agent, cell, status): (Uuid, Uuid, i64, String)| {
            let (run_id, agent_id) = (RunId(run), AgentId(agent));
            Ok(CellRun {
                run_id,
                agent_id,
                cell: unsigned(cell)?,
                status: status.parse().map_err(StoreError::unreadable)?,
            })
        };
        rows.into_iter().map(cell_run).collect()
    }
}

/// The worker claims no run of a held room, except those of a released cell.
pub(crate) fn put(context: &ChangeContext, state: Option<&str>, hold: TapeHold) -> Statement {
    let (held, released) = match hold {
        TapeHold::Nothing => (0, None),
        TapeHold::All => (1, None),
        TapeHold::AllBut(cell) => (1, Some(signed(context.seq(cell)))),
    };
    match state {
        Some(state) => Statement::new(
            "INSERT INTO tapes (room_id, version, state, held, released_cell) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (room_id) DO UPDATE SET version = excluded.version, state = excluded.state, \
             held = excluded.held, released_cell = excluded.released_cell",
        )
        .with(context.room.0)
        .with(signed(context.first_seq))
        .with(state)
        .with(held)
        .with(released),
        None => Statement::new("DELETE FROM tapes WHERE room_id = $1").with(context.room.0),
    }
}

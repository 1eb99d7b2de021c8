//! What is planned in a room behind its queued runs. Most rooms have no row: their runs are queued when a message is
//! posted. The caller must have checked the room's owner.

use crate::{
    Store, StoreError,
    commit::{ChangeContext, Statement, TapeHold},
    database::{reading, snapshot},
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
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

row! {
    struct TapeRow {
        version: i64,
        state: String,
        released_cell: Option<i64>,
    }
}

impl TryFrom<TapeRow> for TapeRecord {
    type Error = StoreError;
    fn try_from(row: TapeRow) -> Result<Self> {
        let released_cell = row.released_cell.map(unsigned).transpose()?;
        Ok(Self { version: unsigned(row.version)?, state: row.state, released_cell })
    }
}

/// An unfinished run of a room, with its cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRun {
    pub run_id: RunId,
    pub agent_id: AgentId,
    /// The message that it answers.
    pub message_id: MessageId,
    pub cell: Seq,
    pub status: RunStatus,
}

row! {
    struct CellRunRow {
        run_id: Uuid,
        agent_id: Uuid,
        message_id: Uuid,
        cell: i64,
        status: String,
    }
}

impl TryFrom<CellRunRow> for CellRun {
    type Error = StoreError;
    fn try_from(row: CellRunRow) -> Result<Self> {
        let status = row.status.parse().map_err(StoreError::unreadable)?;
        let (run_id, agent_id, message_id) = (RunId(row.run_id), AgentId(row.agent_id), MessageId(row.message_id));
        Ok(Self { run_id, agent_id, message_id, cell: unsigned(row.cell)?, status })
    }
}

const TAPE: &str = "SELECT version, state, released_cell FROM tapes WHERE room_id = $1";

impl Store {
    pub async fn tape(&self, room: RoomId) -> Result<Option<TapeRecord>> {
        let row: Option<TapeRow> =
            reading!(self.database(), |pool| sqlx::query_as(TAPE).bind(room.0).fetch_optional(pool).await)?;
        row.map(TapeRecord::try_from).transpose()
    }

    /// Returns the plan with the unfinished runs of the room by cell, lowest first. Of one moment: the end of a run removes
    /// the run and takes the next cell from the plan at the same time.
    pub async fn tape_with_runs(&self, room: RoomId) -> Result<(Option<TapeRecord>, Vec<CellRun>)> {
        const RUNS: &str = "SELECT q.run_id, u.agent_id, u.message_id, q.cell, u.status FROM queue q JOIN runs u ON u.id = q.run_id \
             WHERE q.room_id = $1 ORDER BY q.cell, q.queued_seq";
        let (tape, runs): (Option<TapeRow>, Vec<CellRunRow>) = snapshot!(self.database(), |transaction| {
            let tape = sqlx::query_as(TAPE).bind(room.0).fetch_optional(&mut *transaction).await?;
            (tape, sqlx::query_as(RUNS).bind(room.0).fetch_all(&mut *transaction).await?)
        });
        let runs = runs.into_iter().map(CellRun::try_from).collect::<Result<_>>()?;
        Ok((tape.map(TapeRecord::try_from).transpose()?, runs))
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

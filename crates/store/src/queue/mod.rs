//! The queue: claim a run ([`Store::claim_runs`]), renew its lease, request a stop, take over the runs of a crashed server.
//!
//! `journal` commits add and remove runs together with their events; a worker of the same server can claim a run in the
//! commit that adds it (`engine::work::handoff`). A claim increments the fence; from then on only commits with the new number are accepted
//! (invariant 11). The runs of a cell are claimed side by side, the cells of a room one after another: the tape decides the
//! cells, the queue keeps their order.

mod changes;

pub(crate) use changes::{admit_child, insert, move_to, remove, stop_children, stop_earlier};

use crate::{
    Store, StoreError,
    catalog::audit::store_audit,
    commit::StopRequest,
    database::{Database, reading, writing},
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{AgentId, RoomId, RunId},
    name::Name,
    owner::Owner,
    position::Seq,
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// A run claimed by this worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub run_id: RunId,
    pub room_id: RoomId,
    pub owner: Owner,
    pub queued_seq: Seq,
    /// Where the run is in the queue: the seq at which its cell was queued, or that of another cell, if a person moved it.
    pub cell: Seq,
    pub fence: u64,
    pub stop: Option<StopRequest>,
}

impl Claim {
    /// The run reads the posts before this seq: also those that a person moved before it.
    pub fn posts_before(&self) -> Seq {
        self.queued_seq.max(self.cell)
    }
}

/// How many runs a worker claims at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    pub total: usize,
    /// How many runs of one workspace the worker may hold, those that it holds already included.
    pub per_workspace: usize,
    /// Only runs at this depth of their trees: each level has slots of its own.
    pub depth: u32,
}

/// How many runs of all workspaces are unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    pub waiting: u64,
    /// Held by a worker.
    pub held: u64,
}

impl Store {
    pub async fn queue_depth(&self) -> Result<QueueDepth> {
        const SQL: &str = "SELECT COUNT(*), COUNT(holder) FROM queue";
        let (all, held): (i64, i64) = reading!(self.database(), |pool| sqlx::query_as(SQL).fetch_one(pool).await)?;
        Ok(QueueDepth { waiting: unsigned(all - held)?, held: unsigned(held)? })
    }
}

impl From<usize> for ClaimLimits {
    fn from(total: usize) -> Self {
        Self { total, per_workspace: i64::MAX as usize, depth: 0 }
    }
}

/// Which leases count as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLeases {
    /// Expired leases.
    Expired,
    /// Expired leases and all leases of other holders: no other server can use this database.
    ExpiredOrOfOtherHolders,
}

row! {
    struct QueueRow {
        run_id: Uuid,
        room_id: Uuid,
        owner: String,
        queued_seq: i64,
        cell: i64,
        fence: i64,
        stop: Option<String>,
    }
}

impl TryFrom<QueueRow> for Claim {
    type Error = StoreError;
    fn try_from(row: QueueRow) -> Result<Self> {
        let owner = Name::parse(&row.owner).map_err(|error| StoreError::unreadable("a name").caused_by(error))?;
        Ok(Self {
            run_id: RunId(row.run_id),
            room_id: RoomId(row.room_id),
            owner: Owner::new(owner),
            queued_seq: unsigned(row.queued_seq)?,
            cell: unsigned(row.cell)?,
            fence: unsigned(row.fence)?,
            stop: row.stop.as_deref().and_then(StopRequest::parse),
        })
    }
}

/// Updates the selected runs. PostgreSQL selects them once and locks them in the order of their ids, as commits do, to
/// avoid deadlocks.
macro_rules! change_picked {
    ($database:expr, set $set:literal, where $pick:literal, lock $lock:literal) => {
        match $database {
            Database::Sqlite { .. } => change_picked!(@ $set, $pick, ""),
            Database::Postgres(_) => change_picked!(@ $set, $pick, $lock),
        }
    };
    (@ $set:literal, $pick:literal, $lock:literal) => {
        concat!(
            "WITH picked AS (SELECT q.run_id FROM queue q WHERE ", $pick, " ", $lock, ") ",
            "UPDATE queue SET ", $set, " WHERE run_id IN (SELECT run_id FROM picked) ",
            "RETURNING run_id, room_id, owner, queued_seq, cell, fence, stop"
        )
    };
}

/// Claims runs of the first cell of each room that are neither held nor requested to stop, except in a paused room. `share` is the number of runs
/// that the workspace would have on this worker with this one.
macro_rules! claim_fairly {
    ($lock:literal) => {
        concat!(
            "WITH held AS (SELECT owner, COUNT(*) AS runs FROM queue WHERE holder = $1 AND depth = $5 GROUP BY owner), \
             waiting AS (SELECT q.run_id, COALESCE(h.runs, 0) + ROW_NUMBER() OVER (PARTITION BY q.owner ORDER BY q.run_id) \
                 AS share FROM queue q LEFT JOIN held h ON h.owner = q.owner \
                 WHERE q.holder IS NULL AND q.stop IS NULL AND q.depth = $5 AND NOT EXISTS \
                     (SELECT 1 FROM queue e WHERE e.room_id = q.room_id AND e.cell < q.cell) AND NOT EXISTS \
                     (SELECT 1 FROM tapes t WHERE t.room_id = q.room_id AND t.held = 1 \
                      AND q.cell <> COALESCE(t.released_cell, 0))), \
             picked AS (SELECT q.run_id FROM queue q JOIN waiting w ON w.run_id = q.run_id \
                 WHERE q.holder IS NULL AND q.stop IS NULL AND w.share <= $4 ORDER BY w.share, q.run_id LIMIT $3 ",
            $lock,
            ") UPDATE queue SET holder = $1, lease_until = $2, fence = fence + 1 \
             WHERE run_id IN (SELECT run_id FROM picked) RETURNING run_id, room_id, owner, queued_seq, cell, fence, stop"
        )
    };
}

impl Store {
    /// Returns the depths at which runs wait to be claimed. Reads only, so that an idle server does not write.
    pub async fn waiting_depths(&self) -> Result<Vec<u32>> {
        let waiting: Vec<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT DISTINCT depth FROM queue WHERE holder IS NULL AND stop IS NULL")
                .fetch_all(pool)
                .await
        })?;
        waiting.into_iter().map(|depth| Ok(u32::try_from(unsigned(depth)?).unwrap_or(u32::MAX))).collect()
    }

    /// Claims runs for `holder`. Workspaces take turns: the one that has the fewest runs on this worker comes first, so
    /// that a long queue of one does not hold up the others (invariant 28).
    pub async fn claim_runs(
        &self,
        holder: &str,
        limits: impl Into<ClaimLimits>,
        lease: Duration,
    ) -> Result<Vec<Claim>> {
        let ClaimLimits { total, per_workspace, depth } = limits.into();
        if total == 0 {
            return Ok(Vec::new());
        }
        let until = (Timestamp::now() + lease).as_millis();
        let sql = match self.database() {
            Database::Sqlite { .. } => claim_fairly!(""),
            Database::Postgres(_) => claim_fairly!("FOR UPDATE OF q SKIP LOCKED"),
        };
        let rows: Vec<QueueRow> = writing!(self.database(), |transaction| {
            sqlx::query_as(sql)
                .bind(holder)
                .bind(until)
                .bind(signed(total as u64))
                .bind(signed(per_workspace as u64))
                .bind(i64::from(depth))
                .fetch_all(&mut *transaction)
                .await?
        });
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Extends all leases of this holder. Returns the runs it still holds, with their stop requests.
    pub async fn renew_leases(&self, holder: &str, lease: Duration) -> Result<Vec<Claim>> {
        let until = (Timestamp::now() + lease).as_millis();
        let sql = change_picked!(
            self.database(),
            set "lease_until = $2",
            where "q.holder = $1 ORDER BY q.run_id",
            lock "FOR UPDATE OF q"
        );
        let rows: Vec<QueueRow> = writing!(self.database(), |transaction| {
            sqlx::query_as(sql).bind(holder).bind(until).fetch_all(&mut *transaction).await?
        });
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Takes over the runs of dead workers, so that they can be ended.
    pub async fn take_over(&self, holder: &str, dead: DeadLeases, lease: Duration) -> Result<Vec<Claim>> {
        let now = Timestamp::now();
        let others = i64::from(dead == DeadLeases::ExpiredOrOfOtherHolders);
        let sql = change_picked!(
            self.database(),
            set "holder = $1, lease_until = $2, fence = fence + 1",
            where "q.holder IS NOT NULL AND (q.lease_until < $3 OR ($4 = 1 AND q.holder <> $1)) ORDER BY q.run_id",
            lock "FOR UPDATE OF q"
        );
        let rows: Vec<QueueRow> = writing!(self.database(), |transaction| {
            sqlx::query_as(sql)
                .bind(holder)
                .bind((now + lease).as_millis())
                .bind(now.as_millis())
                .bind(others)
                .fetch_all(&mut *transaction)
                .await?
        });
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Requests unfinished runs and all runs below them to stop, durably. Their holders are notified at once or with their
    /// next renewal. Returns those that are unfinished. Level by level: a run that another one starts meanwhile is stored
    /// before its parent is asked to stop, and is found, or it is refused.
    pub async fn request_stop(&self, actor: &Actor, runs: &[RunId], stop: StopRequest) -> Result<Vec<RunId>> {
        let (level, now) = (runs.to_vec(), Timestamp::now());
        let unfinished = writing!(self.database(), |transaction| {
            let (mut level, mut unfinished) = (level.clone(), Vec::new());
            while !level.is_empty() {
                level.sort_unstable();
                let mut below = Vec::new();
                for run in &level {
                    let room: Option<Uuid> = sqlx::query_scalar(
                        "UPDATE queue SET stop = $2 WHERE run_id = $1 AND stop IS NULL RETURNING room_id",
                    )
                    .bind(run.0)
                    .bind(stop.as_str())
                    .fetch_optional(&mut *transaction)
                    .await?;
                    if let Some(room) = room {
                        let entry = AuditEntry::new(actor, AuditAction::Cancel, AuditedObject::Run, run);
                        store_audit!(transaction, entry.in_room(RoomId(room)), now);
                    }
                    let found: Vec<Uuid> = sqlx::query_scalar(
                        "SELECT run_id FROM queue WHERE run_id = $1 \
                         UNION ALL SELECT q.run_id FROM runs u JOIN queue q ON q.run_id = u.id WHERE u.parent_id = $1",
                    )
                    .bind(run.0)
                    .fetch_all(&mut *transaction)
                    .await?;
                    unfinished.extend(found.iter().filter(|id| **id == run.0).map(|id| RunId(*id)));
                    below.extend(found.into_iter().filter(|id| *id != run.0).map(RunId));
                }
                level = below;
            }
            unfinished
        });
        self.notify_queue();
        Ok(unfinished)
    }

    /// Returns the runs of this holder that are requested to stop.
    pub async fn stop_requests(&self, holder: &str) -> Result<Vec<Claim>> {
        let rows: Vec<QueueRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT run_id, room_id, owner, queued_seq, cell, fence, stop FROM queue \
                 WHERE holder = $1 AND stop IS NOT NULL",
            )
            .bind(holder)
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Returns the runs that were requested to stop before they were claimed.
    pub async fn stopped_before_claim(&self) -> Result<Vec<Claim>> {
        let rows: Vec<QueueRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT run_id, room_id, owner, queued_seq, cell, fence, stop FROM queue \
                 WHERE holder IS NULL AND stop IS NOT NULL",
            )
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Returns the runs of a room that a worker holds, with their agents, in order.
    pub async fn held_runs(&self, owner: &Owner, room: RoomId) -> Result<Vec<(RunId, AgentId)>> {
        let rows: Vec<(Uuid, Uuid)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT q.run_id, r.agent_id FROM queue q JOIN runs r ON r.id = q.run_id \
                 WHERE q.room_id = $1 AND q.owner = $2 AND q.holder IS NOT NULL ORDER BY q.queued_seq",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        Ok(rows.into_iter().map(|(run, agent)| (RunId(run), AgentId(agent))).collect())
    }

    /// Returns the unfinished runs of a room, in order.
    pub async fn unfinished_runs(&self, owner: &Owner, room: RoomId) -> Result<Vec<RunId>> {
        let rows: Vec<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT run_id FROM queue WHERE room_id = $1 AND owner = $2 ORDER BY queued_seq")
                .bind(room.0)
                .bind(owner.as_str())
                .fetch_all(pool)
                .await
        })?;
        Ok(rows.into_iter().map(RunId).collect())
    }
}

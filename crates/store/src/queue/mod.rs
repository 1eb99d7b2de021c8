//! The queue of unfinished runs: claim, renew, ask to stop, take over what a dead worker held.
//!
//! A run is put in and taken out by `journal` commits, with the events that say so; a worker of the same server can claim
//! it in the commit that puts it in. A claim counts the fence up; from
//! then on only commits that name the new number are accepted (invariant 11). Within a room, runs are claimed one after
//! another in the order they were queued: the tape decides that order, the queue keeps it.

use crate::{
    Error, Store,
    database::{Database, reading, writing},
    error::{Result, signed, unsigned},
    journal::Stop,
};
use domain::{
    ids::{RoomId, RunId},
    name::Name,
    owner::Owner,
    position::Seq,
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// A run that this worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub run_id: RunId,
    pub room_id: RoomId,
    pub owner: Owner,
    pub queued_seq: Seq,
    pub fence: u64,
    pub stop: Option<Stop>,
}

/// Whose leases count as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dead {
    /// Those that have run out.
    Expired,
    /// Those and every other holder's: nobody else can be alive on this database.
    AllOthers,
}

#[derive(sqlx::FromRow)]
struct Row {
    run_id: Uuid,
    room_id: Uuid,
    owner: String,
    queued_seq: i64,
    fence: i64,
    stop: Option<String>,
}

impl TryFrom<Row> for Claim {
    type Error = Error;
    fn try_from(row: Row) -> Result<Self> {
        let owner = Name::parse(&row.owner).map_err(|error| Error::Unreadable(error.to_string()))?;
        Ok(Self {
            run_id: RunId(row.run_id),
            room_id: RoomId(row.room_id),
            owner: Owner::new(owner),
            queued_seq: unsigned(row.queued_seq)?,
            fence: unsigned(row.fence)?,
            stop: row.stop.as_deref().and_then(Stop::parse),
        })
    }
}

/// Changes the runs that are picked. PostgreSQL picks them once and locks them in the order of their ids, as commits do:
/// two that want several runs cannot wait for each other in a ring.
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
            "RETURNING run_id, room_id, owner, queued_seq, fence, stop"
        )
    };
}

impl Store {
    /// A look costs no transaction: an idle server does not write.
    pub async fn has_waiting_runs(&self) -> Result<bool> {
        let waiting: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT queued_seq FROM queue WHERE holder IS NULL AND stop IS NULL LIMIT 1")
                .fetch_optional(pool)
                .await
        })?;
        Ok(waiting.is_some())
    }

    pub async fn claim(&self, holder: &str, limit: usize, lease: Duration) -> Result<Vec<Claim>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let until = (Timestamp::now() + lease).as_millis();
        // The first of each room that nobody holds and nobody asked to stop.
        let sql = change_picked!(
            self.database(),
            set "holder = $1, lease_until = $2, fence = fence + 1",
            where "q.holder IS NULL AND q.stop IS NULL AND NOT EXISTS (SELECT 1 FROM queue e \
                   WHERE e.room_id = q.room_id AND e.queued_seq < q.queued_seq) ORDER BY q.run_id LIMIT $3",
            lock "FOR UPDATE OF q SKIP LOCKED"
        );
        let rows: Vec<Row> = writing!(self.database(), |transaction| {
            sqlx::query_as(sql).bind(holder).bind(until).bind(signed(limit as u64)).fetch_all(&mut *transaction).await?
        });
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Extends every lease of this holder and tells which runs it still holds, and which of them are asked to stop.
    pub async fn renew(&self, holder: &str, lease: Duration) -> Result<Vec<Claim>> {
        let until = (Timestamp::now() + lease).as_millis();
        let sql = change_picked!(
            self.database(),
            set "lease_until = $2",
            where "q.holder = $1 ORDER BY q.run_id",
            lock "FOR UPDATE OF q"
        );
        let rows: Vec<Row> = writing!(self.database(), |transaction| {
            sqlx::query_as(sql).bind(holder).bind(until).fetch_all(&mut *transaction).await?
        });
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Takes over the runs of dead workers, so that they can be brought to an end.
    pub async fn take_over(&self, holder: &str, dead: Dead, lease: Duration) -> Result<Vec<Claim>> {
        let now = Timestamp::now();
        let others = i64::from(dead == Dead::AllOthers);
        let sql = change_picked!(
            self.database(),
            set "holder = $1, lease_until = $2, fence = fence + 1",
            where "q.holder IS NOT NULL AND (q.lease_until < $3 OR ($4 = 1 AND q.holder <> $1)) ORDER BY q.run_id",
            lock "FOR UPDATE OF q"
        );
        let rows: Vec<Row> = writing!(self.database(), |transaction| {
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

    /// Asks unfinished runs to stop, durably; whoever holds them learns of it at once or with the next renewal.
    pub async fn ask_to_stop(&self, runs: &[RunId], stop: Stop) -> Result<()> {
        let mut runs = runs.to_vec();
        runs.sort_unstable();
        writing!(self.database(), |transaction| {
            for run in &runs {
                sqlx::query("UPDATE queue SET stop = $2 WHERE run_id = $1 AND stop IS NULL")
                    .bind(run.0)
                    .bind(stop.as_str())
                    .execute(&mut *transaction)
                    .await?;
            }
        });
        self.queue_bell().notify_one();
        Ok::<(), Error>(())
    }

    /// Runs of this holder that were asked to stop.
    pub async fn asked_to_stop(&self, holder: &str) -> Result<Vec<Claim>> {
        let rows: Vec<Row> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT run_id, room_id, owner, queued_seq, fence, stop FROM queue \
                 WHERE holder = $1 AND stop IS NOT NULL",
            )
            .bind(holder)
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Runs that were asked to stop before anyone claimed them.
    pub async fn stopped_in_queue(&self) -> Result<Vec<Claim>> {
        let rows: Vec<Row> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT run_id, room_id, owner, queued_seq, fence, stop FROM queue \
                 WHERE holder IS NULL AND stop IS NOT NULL",
            )
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Claim::try_from).collect()
    }

    /// Unfinished runs of a room, in order.
    pub async fn unfinished(&self, owner: &Owner, room: RoomId) -> Result<Vec<RunId>> {
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

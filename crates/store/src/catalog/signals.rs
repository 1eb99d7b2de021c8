//! Signals: requests to unfinished runs, stored before the holder of the run is woken. `journal` commits store and
//! settle them; the reads are here. The caller must have checked the run's owner.
//!
//! A settled signal is read by its sender only, and deleted after a day: what it has caused is in the journal. The column
//! `actor` is not used: who sent a signal is in the audit entry of the same commit, or in the message to steer with.

use crate::{
    Store, StoreError,
    commit::{ChangeContext, Statement},
    database::{reading, writing},
    error::Result,
};
use domain::{
    ids::{RunId, SignalId},
    signal::{Signal, SignalOutcome},
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// How many settled signals are deleted in one transaction: commits wait for it.
pub const SETTLED_SIGNALS_PER_DELETE: u64 = 500;

impl Store {
    /// Returns the signals of a run that are not settled, oldest first.
    pub async fn pending_signals(&self, run: RunId) -> Result<Vec<Signal>> {
        let rows: Vec<(Uuid, String)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, body FROM signals WHERE run_id = $1 AND outcome IS NULL ORDER BY id")
                .bind(run.0)
                .fetch_all(pool)
                .await
        })?;
        let signal = |(id, body): (Uuid, String)| match serde_json::from_str(&body) {
            Ok(body) => Some(Signal { id: SignalId(id), run_id: run, body }),
            Err(error) => {
                // Stored by a newer server. It is settled with the run, and must not hold up the others.
                tracing::warn!(%run, signal = %id, %error, "a signal that this version cannot read");
                None
            }
        };
        Ok(rows.into_iter().filter_map(signal).collect())
    }

    /// Returns `None` while the signal is not settled.
    pub async fn signal_outcome(&self, signal: SignalId) -> Result<Option<SignalOutcome>> {
        let outcome: Option<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT outcome FROM signals WHERE id = $1").bind(signal.0).fetch_one(pool).await
        })?;
        let parse = |text: String| {
            SignalOutcome::parse(&text).ok_or_else(|| StoreError::unreadable(format!("the signal outcome {text:?}")))
        };
        outcome.map(parse).transpose()
    }

    /// Returns the runs of this holder that have a signal to carry out.
    pub async fn runs_with_signals(&self, holder: &str) -> Result<Vec<RunId>> {
        let rows: Vec<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT q.run_id FROM queue q WHERE q.holder = $1 \
                 AND EXISTS (SELECT 1 FROM signals s WHERE s.run_id = q.run_id AND s.outcome IS NULL)",
            )
            .bind(holder)
            .fetch_all(pool)
            .await
        })?;
        Ok(rows.into_iter().map(RunId).collect())
    }

    /// Deletes signals that were settled longer than `age` ago, at most [`SETTLED_SIGNALS_PER_DELETE`]. Returns how many.
    pub async fn delete_settled_signals(&self, age: Duration) -> Result<u64> {
        let before = Timestamp::now().as_millis() - i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let limit = i64::try_from(SETTLED_SIGNALS_PER_DELETE).unwrap_or(i64::MAX);
        let deleted = writing!(self.database(), |transaction| {
            sqlx::query(
                "DELETE FROM signals WHERE id IN \
                 (SELECT id FROM signals WHERE settled_at <= $1 ORDER BY settled_at LIMIT $2)",
            )
            .bind(before)
            .bind(limit)
            .execute(&mut *transaction)
            .await?
            .rows_affected()
        });
        Ok(deleted)
    }
}

/// A commit without events is repeated after a lost reply, so the row may be there already.
pub(crate) fn insert(context: &ChangeContext, signal: &Signal) -> Result<Statement> {
    Ok(Statement::new(
        "INSERT INTO signals (id, run_id, room_id, kind, body, created_at) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (id) DO NOTHING",
    )
    .with(signal.id.0)
    .with(signal.run_id.0)
    .with(context.room.0)
    .with(signal.body.kind().as_str())
    .with(serde_json::to_string(&signal.body)?)
    .with(context.now.as_millis()))
}

pub(crate) fn settle(context: &ChangeContext, signal: SignalId, outcome: SignalOutcome) -> Statement {
    Statement::new("UPDATE signals SET outcome = $2, settled_at = $3 WHERE id = $1 AND outcome IS NULL")
        .with(signal.0)
        .with(outcome.as_str())
        .with(context.now.as_millis())
}

/// Settles what is left when a run ends: no signal stays open.
pub(crate) fn settle_all(context: &ChangeContext, run: RunId) -> Statement {
    Statement::new("UPDATE signals SET outcome = $2, settled_at = $3 WHERE run_id = $1 AND outcome IS NULL")
        .with(run.0)
        .with(SignalOutcome::RunEnded.as_str())
        .with(context.now.as_millis())
}

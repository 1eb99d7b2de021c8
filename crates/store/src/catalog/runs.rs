//! Runs: what became of each attempt to answer.

use crate::{
    Error, Store,
    database::reading,
    error::{Result, unsigned},
};
use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
    owner::Owner,
    run::{Run, RunStatus},
    time::Timestamp,
    usage::Cost,
};
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub room_id: Option<RoomId>,
    pub message_id: Option<MessageId>,
    pub status: Option<RunStatus>,
    pub limit: u32,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    room_id: Uuid,
    agent_id: Uuid,
    message_id: Uuid,
    status: String,
    queued_seq: i64,
    usage: String,
    cost: Option<i64>,
    model: Option<String>,
    duration_ms: Option<i64>,
    error: Option<String>,
    receipt: Option<String>,
    created_at: i64,
    started_at: Option<i64>,
    ended_at: Option<i64>,
}

impl TryFrom<Row> for Run {
    type Error = Error;
    fn try_from(row: Row) -> Result<Self> {
        Ok(Self {
            id: RunId(row.id),
            room_id: RoomId(row.room_id),
            agent_id: AgentId(row.agent_id),
            message_id: MessageId(row.message_id),
            status: row.status.parse().map_err(|error| Error::Unreadable(format!("{error}")))?,
            queued_seq: unsigned(row.queued_seq)?,
            usage: serde_json::from_str(&row.usage)?,
            cost: row.cost.map(Cost::from_nanos),
            model: row.model,
            duration_ms: row.duration_ms.map(unsigned).transpose()?,
            error: row.error.as_deref().map(serde_json::from_str).transpose()?,
            receipt: row.receipt.as_deref().map(serde_json::from_str).transpose()?,
            created_at: Timestamp::from_millis(row.created_at),
            started_at: row.started_at.map(Timestamp::from_millis),
            ended_at: row.ended_at.map(Timestamp::from_millis),
        })
    }
}

macro_rules! select_runs {
    ($rest:literal) => {
        concat!(
            "SELECT id, room_id, agent_id, message_id, status, queued_seq, usage, cost, model, duration_ms, error, ",
            "receipt, created_at, started_at, ended_at FROM runs WHERE owner = $1 AND ",
            $rest
        )
    };
}

impl Store {
    pub async fn run(&self, owner: &Owner, id: RunId) -> Result<Run> {
        let row: Row = reading!(self.database(), |pool| {
            sqlx::query_as(select_runs!("id = $2")).bind(owner.as_str()).bind(id.0).fetch_one(pool).await
        })?;
        row.try_into()
    }

    /// Newest first.
    pub async fn runs(&self, owner: &Owner, filter: &RunFilter) -> Result<Vec<Run>> {
        // One statement for every combination: a filter that is not set matches everything.
        let rows: Vec<Row> = reading!(self.database(), |pool| {
            sqlx::query_as(select_runs!(
                "($2 IS NULL OR room_id = $2) AND ($3 IS NULL OR message_id = $3) AND ($4 IS NULL OR status = $4) \
                 ORDER BY created_at DESC, queued_seq DESC LIMIT $5"
            ))
            .bind(owner.as_str())
            .bind(filter.room_id.map(|id| id.0))
            .bind(filter.message_id.map(|id| id.0))
            .bind(filter.status.map(RunStatus::as_str))
            .bind(i64::from(filter.limit))
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Run::try_from).collect()
    }
}

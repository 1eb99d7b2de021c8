//! Runs: what became of each attempt to answer.

use crate::{
    Error, Store,
    database::reading,
    error::{Result, signed, unsigned},
    journal::EventRow,
};
use domain::{
    event::Event,
    ids::{AgentId, MessageId, RoomId, RunId},
    owner::Owner,
    run::{Run, RunStatus},
    time::Timestamp,
    usage::Cost,
};
use std::{fmt, str::FromStr};
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub room_id: Option<RoomId>,
    pub agent_id: Option<AgentId>,
    pub message_id: Option<MessageId>,
    pub status: Option<RunStatus>,
    /// Only what comes after this one in the list.
    pub before: Option<RunCursor>,
    pub limit: u32,
}

/// A place in the list of runs, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCursor {
    created_at: Timestamp,
    id: RunId,
}

impl RunCursor {
    /// The place of this run.
    pub fn of(run: &Run) -> Self {
        Self { created_at: run.created_at, id: run.id }
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created_at.as_millis(), self.id.0.simple())
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it is not the `next` of a page of runs")]
pub struct NoCursor;

impl FromStr for RunCursor {
    type Err = NoCursor;
    fn from_str(text: &str) -> std::result::Result<Self, NoCursor> {
        let (millis, id) = text.split_once('.').ok_or(NoCursor)?;
        let created_at = Timestamp::from_millis(millis.parse().map_err(|_| NoCursor)?);
        Ok(Self { created_at, id: RunId(id.parse().map_err(|_| NoCursor)?) })
    }
}

/// A run, and what its room and its agent are called.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRun {
    pub run: Run,
    pub room_name: String,
    pub agent_name: String,
}

#[derive(sqlx::FromRow)]
struct NamedRow {
    #[sqlx(flatten)]
    run: Row,
    room_name: Option<String>,
    agent_name: Option<String>,
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
        select_runs!("", "", $rest)
    };
    ($columns:literal, $joins:literal, $rest:literal) => {
        concat!(
            "SELECT u.id, u.room_id, u.agent_id, u.message_id, u.status, u.queued_seq, u.usage, u.cost, u.model, ",
            "u.duration_ms, u.error, u.receipt, u.created_at, u.started_at, u.ended_at",
            $columns,
            " FROM runs u ",
            $joins,
            "WHERE u.owner = $1 AND ",
            $rest
        )
    };
}

/// Seqs looked through at once for the events of one run: an old run of a long journal is not to read all that came after.
const STRETCH: u64 = 5000;
/// No timeline is made of more events than this.
const MAX_MILESTONES: usize = 100_000;

impl Store {
    pub async fn run(&self, owner: &Owner, id: RunId) -> Result<Run> {
        let row: Row = reading!(self.database(), |pool| {
            sqlx::query_as(select_runs!("u.id = $2")).bind(owner.as_str()).bind(id.0).fetch_one(pool).await
        })?;
        row.try_into()
    }

    /// Newest first.
    pub async fn runs(&self, owner: &Owner, filter: &RunFilter) -> Result<Vec<Run>> {
        Ok(self.named_runs(owner, filter).await?.into_iter().map(|named| named.run).collect())
    }

    /// Newest first, with the names that rooms and agents have now.
    pub async fn named_runs(&self, owner: &Owner, filter: &RunFilter) -> Result<Vec<NamedRun>> {
        let (before, last) = match filter.before {
            Some(cursor) => (cursor.created_at.as_millis(), cursor.id.0),
            None => (i64::MAX, Uuid::max()),
        };
        // One statement for every combination: a filter that is not set matches everything.
        let rows: Vec<NamedRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_runs!(
                ", r.name AS room_name, a.name AS agent_name",
                "LEFT JOIN rooms r ON r.id = u.room_id LEFT JOIN agents a ON a.id = u.agent_id ",
                "($2 IS NULL OR u.room_id = $2) AND ($3 IS NULL OR u.message_id = $3) AND ($4 IS NULL OR u.status = $4) \
                 AND ($5 IS NULL OR u.agent_id = $5) AND u.created_at <= $6 AND (u.created_at < $6 OR u.id < $7) \
                 ORDER BY u.created_at DESC, u.id DESC LIMIT $8"
            ))
            .bind(owner.as_str())
            .bind(filter.room_id.map(|id| id.0))
            .bind(filter.message_id.map(|id| id.0))
            .bind(filter.status.map(RunStatus::as_str))
            .bind(filter.agent_id.map(|id| id.0))
            .bind(before)
            .bind(last)
            .bind(i64::from(filter.limit))
            .fetch_all(pool)
            .await
        })?;
        let named = |row: NamedRow| {
            let (room_name, agent_name) = (row.room_name.unwrap_or_default(), row.agent_name.unwrap_or_default());
            Ok(NamedRun { run: row.run.try_into()?, room_name, agent_name })
        };
        rows.into_iter().map(named).collect()
    }

    /// The events that say what a run spent its time on, without the text of its deltas. The run must have been checked
    /// against its owner.
    pub async fn run_milestones(&self, run: &Run) -> Result<Vec<Event>> {
        const SQL: &str = "SELECT room_id, seq, id, kind, run_id, agent_id, created_at, \
             CASE WHEN kind IN ('content_delta', 'thinking_delta', 'tool_output_delta', 'stream_end') THEN '{}' \
             ELSE data END AS data, CAST(NULL AS TEXT) AS raw \
             FROM events WHERE room_id = $1 AND seq >= $2 AND seq < $3 AND run_id = $4 ORDER BY seq";
        let head: i64 = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT head FROM journals WHERE room_id = $1").bind(run.room_id.0).fetch_one(pool).await
        })?;
        let (mut events, mut from): (Vec<Event>, u64) = (Vec::new(), run.queued_seq);
        while from <= unsigned(head)? && events.len() < MAX_MILESTONES {
            let until = from.saturating_add(STRETCH);
            let rows: Vec<EventRow> = reading!(self.database(), |pool| {
                sqlx::query_as(SQL)
                    .bind(run.room_id.0)
                    .bind(signed(from))
                    .bind(signed(until))
                    .bind(run.id.0)
                    .fetch_all(pool)
                    .await
            })?;
            for row in rows {
                events.push(Event::try_from(row)?);
            }
            if events.last().is_some_and(|event| event.kind.ends_a_run()) {
                break;
            }
            from = until;
        }
        Ok(events)
    }
}

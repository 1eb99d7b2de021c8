//! Runs and their outcomes.

use super::{events::EventRow, list_cursor::ListCursor, messages};
use crate::{
    Store, StoreError,
    commit::{ChangeContext, Refusal, RunEnding, Statement, without_nul},
    database::reading,
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    event::Event,
    ids::{AgentId, MessageId, RoomId, RunId},
    owner::Owner,
    position::Seq,
    run::{Run, RunStatus},
    run_tree::TreePlace,
    time::Timestamp,
    usage::{Cost, Usage},
};
use uuid::Uuid;

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub room_id: Option<RoomId>,
    pub agent_id: Option<AgentId>,
    pub message_id: Option<MessageId>,
    pub status: Option<RunStatus>,
    /// Only runs after this position in the list.
    pub before: Option<ListCursor>,
    pub limit: u32,
}

/// A run with the names of its room and its agent.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRun {
    pub workspace: Owner,
    pub run: Run,
    pub room_name: String,
    pub agent_name: String,
    /// How the message begins that it answers.
    pub question: Option<String>,
}

row! {
    pub(super) struct NamedRunRow {
        ..run: RunRow,
        owner: String,
        room_name: Option<String>,
        agent_name: Option<String>,
        question_body: Option<String>,
    }
}

impl TryFrom<NamedRunRow> for NamedRun {
    type Error = StoreError;
    fn try_from(row: NamedRunRow) -> Result<Self> {
        let (room_name, agent_name) = (row.room_name.unwrap_or_default(), row.agent_name.unwrap_or_default());
        let workspace = super::tokens::parse_owner(&row.owner)?;
        let question = row.question_body.as_deref().and_then(messages::text_start).filter(|text| !text.is_empty());
        Ok(Self { workspace, run: row.run.try_into()?, room_name, agent_name, question })
    }
}

row! {
    pub(super) struct RunRow {
        id: Uuid,
        room_id: Uuid,
        agent_id: Uuid,
        message_id: Uuid,
        parent_id: Option<Uuid>,
        root_id: Option<Uuid>,
        depth: i64,
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
}

impl TryFrom<RunRow> for Run {
    type Error = StoreError;
    fn try_from(row: RunRow) -> Result<Self> {
        Ok(Self {
            id: RunId(row.id),
            room_id: RoomId(row.room_id),
            agent_id: AgentId(row.agent_id),
            message_id: MessageId(row.message_id),
            parent_id: row.parent_id.map(RunId),
            root_id: row.root_id.map(RunId),
            depth: u32::try_from(row.depth).map_err(|_| StoreError::unreadable("the depth of a run"))?,
            status: row.status.parse().map_err(StoreError::unreadable)?,
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

/// `$1` is the workspace.
macro_rules! select_runs {
    ($rest:literal) => {
        select_runs!("", "", $rest)
    };
    ($columns:literal, $joins:literal, $rest:literal) => {
        select_runs!($columns, $joins, "u.owner = $1 AND ", $rest)
    };
    ($columns:literal, $joins:literal, $workspace:literal, $rest:literal) => {
        concat!(
            "SELECT u.id, u.room_id, u.agent_id, u.message_id, u.parent_id, u.root_id, u.depth, u.status, u.queued_seq, u.usage, u.cost, u.model, ",
            "u.duration_ms, u.error, u.receipt, u.created_at, u.started_at, u.ended_at",
            $columns,
            " FROM runs u ",
            $joins,
            "WHERE u.erased_at IS NULL AND ",
            $workspace,
            $rest
        )
    };
}

/// Runs with the names of their rooms and agents.
macro_rules! select_named_runs {
    ($workspace:literal, $rest:literal) => {
        select_runs!(
            // Of a long question only the beginning is read.
            ", u.owner, r.name AS room_name, a.name AS agent_name, SUBSTR(m.body, 1, 2000) AS question_body",
            "LEFT JOIN rooms r ON r.id = u.room_id LEFT JOIN agents a ON a.id = u.agent_id LEFT JOIN messages m ON m.id = u.message_id ",
            $workspace,
            $rest
        )
    };
}
pub(super) use {select_named_runs, select_runs};

/// A run that its commit adds: it waits in the queue, or has started with the commit.
pub(crate) struct NewRun<'a> {
    pub owner: &'a Owner,
    pub run_id: RunId,
    pub agent_id: AgentId,
    pub message_id: MessageId,
    /// `None` for the first run of a tree.
    pub place: Option<TreePlace>,
    pub queued_seq: Seq,
    pub cell: Seq,
    pub has_started: bool,
}

pub(crate) fn insert(context: &ChangeContext, new: &NewRun<'_>) -> Result<Statement> {
    let status = if new.has_started { RunStatus::Running } else { RunStatus::Queued };
    Ok(Statement::new(
        "INSERT INTO runs (id, owner, room_id, agent_id, message_id, status, queued_seq, usage, created_at, started_at, \
         parent_id, root_id, depth, user_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .with(new.run_id.0)
    .with(new.owner.as_str())
    .with(context.room.0)
    .with(new.agent_id.0)
    .with(new.message_id.0)
    .with(status.as_str())
    .with(signed(new.queued_seq))
    .with(serde_json::to_string(&Usage::default())?)
    .with(context.now.as_millis())
    .with(new.has_started.then_some(context.now.as_millis()))
    .with(new.place.map(|place| place.parent_id.0))
    .with(new.place.map(|place| place.root_id.0))
    .with(new.place.map_or(0, |place| i64::from(place.depth)))
    .with(new.place.and_then(|place| place.user_id).map(|user| user.0)))
}

/// Changes the status of an unfinished run. Repeating the current status is allowed.
pub(crate) fn set_status(context: &ChangeContext, run_id: RunId, status: RunStatus) -> Statement {
    let update = Statement::new(
        "UPDATE runs SET status = $2, started_at = COALESCE(started_at, $3) \
         WHERE id = $1 AND status IN ($2, $4, $5, $6, $7)",
    )
    .with(run_id.0)
    .with(status.as_str())
    .with(context.now.as_millis());
    from_statuses_before(update, status)
}

/// Stores what an unfinished run has used so far.
pub(crate) fn meter(run_id: RunId, usage: &Usage, cost: Option<Cost>) -> Result<Statement> {
    Ok(Statement::new("UPDATE runs SET usage = $2, cost = $3 WHERE id = $1 AND ended_at IS NULL")
        .with(run_id.0)
        .with(serde_json::to_string(usage)?)
        .with(cost.map(Cost::as_nanos)))
}

/// Ends a run. A run ends once (invariant 3).
pub(crate) fn end(context: &ChangeContext, run_id: RunId, ending: &RunEnding) -> Result<Statement> {
    let RunEnding { status, usage, cost, model, duration_ms, error, receipt } = ending;
    let update = Statement::new(
        "UPDATE runs SET status = $2, usage = $3, cost = $4, model = $5, duration_ms = $6, error = $7, receipt = $8, \
         ended_at = $9 WHERE id = $1 AND status IN ($10, $11, $12, $13)",
    )
    .with(run_id.0)
    .with(status.as_str())
    .with(serde_json::to_string(usage)?)
    .with(cost.map(|cost| cost.as_nanos()))
    .with(model.as_deref().map(without_nul))
    .with(signed(*duration_ms))
    .with(error.as_ref().map(serde_json::to_string).transpose()?)
    .with(receipt.as_ref().map(serde_json::to_string).transpose()?)
    .with(context.now.as_millis());
    Ok(from_statuses_before(update, *status))
}

/// The number of statuses that may come before another one, at most: the unfinished ones.
const STATUSES_BEFORE: usize = 4;

/// Restricts the update to runs whose status may become `status`; any other rejects the commit.
fn from_statuses_before(mut update: Statement, status: RunStatus) -> Statement {
    let mut before = RunStatus::ALL.into_iter().filter(|before| before.may_become(status)).map(RunStatus::as_str);
    for _ in 0..STATUSES_BEFORE {
        update = update.with(before.next());
    }
    update.must_change_or(Refusal::RunStatus)
}

/// The number of seqs scanned per query for the events of one run, so that an old run of a long journal does not read
/// everything after it.
const SCAN_SEQS: u64 = 5000;
/// The maximum number of events in a timeline.
const MAX_MILESTONES: usize = 100_000;

impl Store {
    pub async fn run(&self, owner: &Owner, id: RunId) -> Result<Run> {
        let row: RunRow = reading!(self.database(), |pool| {
            sqlx::query_as(select_runs!("u.id = $2")).bind(owner.as_str()).bind(id.0).fetch_one(pool).await
        })?;
        row.try_into()
    }

    /// Returns runs, newest first.
    pub async fn runs(&self, owner: &Owner, filter: &RunFilter) -> Result<Vec<Run>> {
        Ok(self.named_runs(owner, filter).await?.into_iter().map(|named| named.run).collect())
    }

    /// Returns runs, newest first, with the current names of their rooms and agents.
    pub async fn named_runs(&self, owner: &Owner, filter: &RunFilter) -> Result<Vec<NamedRun>> {
        self.named_runs_of(Some(owner), filter).await
    }

    /// The same for the runs of all workspaces. For the operator.
    pub async fn named_runs_of_all(&self, filter: &RunFilter) -> Result<Vec<NamedRun>> {
        self.named_runs_of(None, filter).await
    }

    async fn named_runs_of(&self, owner: Option<&Owner>, filter: &RunFilter) -> Result<Vec<NamedRun>> {
        /// One statement for every combination: a filter that is not set matches everything.
        macro_rules! select_named {
            ($workspace:literal) => {
                select_named_runs!(
                    $workspace,
                    "($2 IS NULL OR u.room_id = $2) AND ($3 IS NULL OR u.message_id = $3) \
                     AND ($4 IS NULL OR u.status = $4) AND ($5 IS NULL OR u.agent_id = $5) \
                     AND u.created_at <= $6 AND (u.created_at < $6 OR u.id < $7) \
                     ORDER BY u.created_at DESC, u.id DESC LIMIT $8"
                )
            };
        }
        let sql = match owner {
            Some(_) => select_named!("u.owner = $1 AND "),
            None => select_named!("$1 = '' AND "),
        };
        let (before, last) = ListCursor::values(filter.before);
        let rows: Vec<NamedRunRow> = reading!(self.database(), |pool| {
            sqlx::query_as(sql)
                .bind(owner.map_or("", Owner::as_str))
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
        rows.into_iter().map(NamedRun::try_from).collect()
    }

    /// Returns the runs of an agent that ended with an answer after a time, in rooms that are not deleted, in the order of their
    /// ends. Runs that ended at the same time are on one page, so that the next page begins after the time of the last one; if
    /// these are more than `limit`, the page is longer.
    pub async fn ended_runs(&self, owner: &Owner, agent: AgentId, since: Timestamp, limit: u32) -> Result<Vec<Run>> {
        let mut limit = i64::from(limit);
        loop {
            let rows: Vec<RunRow> = reading!(self.database(), |pool| {
                sqlx::query_as(select_runs!(
                    "u.agent_id = $2 AND u.ended_at > $3 \
                     AND EXISTS (SELECT 1 FROM rooms r WHERE r.id = u.room_id AND r.deleted_at IS NULL) \
                     AND EXISTS (SELECT 1 FROM messages m WHERE m.room_id = u.room_id AND m.seq > u.queued_seq AND m.run_id = u.id) \
                     ORDER BY u.ended_at, u.id LIMIT $4"
                ))
                .bind(owner.as_str())
                .bind(agent.0)
                .bind(since.as_millis())
                .bind(limit + 1)
                .fetch_all(pool)
                .await
            })?;
            let is_full = rows.len() as i64 > limit;
            let next = rows.last().filter(|_| is_full).and_then(|row| row.ended_at);
            let runs = rows.into_iter().filter(|row| next.is_none() || row.ended_at != next).map(Run::try_from);
            let runs = runs.collect::<Result<Vec<_>>>()?;
            if !runs.is_empty() || next.is_none() {
                return Ok(runs);
            }
            limit *= 2;
        }
    }

    /// Returns the events for the timeline of a run, without the text of deltas. The caller must have checked the run's
    /// owner.
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
            let until = from.saturating_add(SCAN_SEQS);
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

#[cfg(test)]
mod tests {
    use super::{RunStatus, STATUSES_BEFORE};

    #[test]
    fn every_status_that_may_come_before_another_has_a_parameter() {
        for status in RunStatus::ALL {
            let before = RunStatus::ALL.into_iter().filter(|before| before.may_become(status));
            assert!(before.count() <= STATUSES_BEFORE, "{status}");
        }
    }
}

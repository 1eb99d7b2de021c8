//! Approvals that wait for a decision. They have no rows of their own: the events of the runs that wait say which they are.

use super::events::EventRow;
use crate::{
    Store,
    database::{Database, reading},
    error::{Result, signed},
};
use domain::{
    event::{ApprovalRequested, Event, EventBody},
    ids::{AgentId, EventId, RoomId, RunId},
    owner::Owner,
    run::RunStatus,
    time::Timestamp,
};
use uuid::Uuid;

/// A tool call or a question that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitingApproval {
    /// The event that asked for it. Its id is the approval's place in the list.
    pub event_id: EventId,
    pub run_id: RunId,
    pub room_id: RoomId,
    pub agent_id: AgentId,
    pub requested: ApprovalRequested,
    pub created_at: Timestamp,
}

/// A page of the list.
#[derive(Debug, Default)]
pub struct ApprovalPage {
    /// Oldest first.
    pub approvals: Vec<WaitingApproval>,
    /// The place of the last one, if there are more.
    pub next: Option<EventId>,
}

/// About how large a page may become. At least one approval is returned.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// $1 owner, $2 the status of a run that waits, $3 after which event, $4 how many, $5 how many bytes. By the queue, which has
/// the unfinished runs only.
macro_rules! select_waiting {
    ($id_before:literal, $id_after:literal) => {
        concat!(
            "SELECT room_id, seq, id, kind, run_id, agent_id, created_at, data, CAST(NULL AS TEXT) AS raw FROM ",
            "(SELECT e.room_id, e.seq, e.id, e.kind, e.run_id, e.agent_id, e.created_at, e.data, ",
            "SUM(octet_length(e.data)) OVER (ORDER BY e.id) - octet_length(e.data) AS before ",
            "FROM queue q JOIN runs u ON u.id = q.run_id ",
            "JOIN events e ON e.room_id = q.room_id AND e.seq >= q.queued_seq AND e.run_id = q.run_id ",
            "WHERE q.owner = $1 AND u.status = $2 AND e.kind = 'approval_requested' AND e.id > $3 AND NOT EXISTS ",
            "(SELECT 1 FROM events r WHERE r.room_id = e.room_id AND r.seq > e.seq AND r.run_id = e.run_id ",
            "AND r.kind = 'approval_resolved' AND ",
            $id_before,
            "r.data",
            $id_after,
            " = ",
            $id_before,
            "e.data",
            $id_after,
            ")) AS waiting WHERE before < $5 ORDER BY id LIMIT $4"
        )
    };
}

impl Store {
    /// Returns approvals of all rooms that wait for a decision, oldest first.
    pub async fn waiting_approvals(&self, owner: &Owner, after: Option<EventId>, limit: u32) -> Result<ApprovalPage> {
        let sql = match self.database() {
            Database::Sqlite { .. } => select_waiting!("json_extract(", ", '$.approval_id')"),
            Database::Postgres(_) => select_waiting!("(", "::json ->> 'approval_id')"),
        };
        let rows: Vec<EventRow> = reading!(self.database(), |pool| {
            sqlx::query_as(sql)
                .bind(owner.as_str())
                .bind(RunStatus::WaitingForApproval.as_str())
                .bind(after.map_or(Uuid::nil(), |after| after.0))
                .bind(i64::from(limit) + 1)
                .bind(PAGE_BYTES)
                .fetch_all(pool)
                .await
        })?;
        let mut page = ApprovalPage::default();
        let mut bytes = 0;
        for row in rows {
            let event = Event::try_from(row)?;
            if page.approvals.len() == limit as usize {
                page.next = page.approvals.last().map(|last| last.event_id);
                break;
            }
            bytes += signed(event.data.len() as u64);
            let (EventBody::ApprovalRequested(requested), Some(run_id), Some(agent_id)) =
                (event.body()?, event.run_id, event.agent_id)
            else {
                continue;
            };
            let Event { id: event_id, room_id, created_at, .. } = event;
            page.approvals.push(WaitingApproval { event_id, run_id, room_id, agent_id, requested, created_at });
        }
        if bytes >= PAGE_BYTES {
            page.next = page.approvals.last().map(|last| last.event_id);
        }
        Ok(page)
    }
}

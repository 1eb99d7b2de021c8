//! Approvals that wait for a decision. They have no rows of their own: the events of the runs that wait say which they are.

use super::events::EventRow;
use crate::{Store, database::reading, error::Result};
use domain::{
    event::{ApprovalRequested, Event, EventBody},
    ids::{AgentId, ApprovalId, EventId, RoomId, RunId},
    owner::Owner,
    run::RunStatus,
    time::Timestamp,
};

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

impl Store {
    /// Returns the approvals of all rooms that wait for a decision, oldest first. There are few: a run has a slot of a worker
    /// while it waits.
    pub async fn waiting_approvals(&self, owner: &Owner) -> Result<Vec<WaitingApproval>> {
        // By the queue, which has the unfinished runs only.
        const SQL: &str = "SELECT e.room_id, e.seq, e.id, e.kind, e.run_id, e.agent_id, e.created_at, e.data, \
             CAST(NULL AS TEXT) AS raw FROM queue q JOIN runs u ON u.id = q.run_id \
             JOIN events e ON e.room_id = q.room_id AND e.seq >= q.queued_seq AND e.run_id = q.run_id \
             WHERE q.owner = $1 AND u.status = $2 AND e.kind IN ('approval_requested', 'approval_resolved') \
             ORDER BY e.id";
        let rows: Vec<EventRow> = reading!(self.database(), |pool| {
            sqlx::query_as(SQL).bind(owner.as_str()).bind(RunStatus::WaitingForApproval.as_str()).fetch_all(pool).await
        })?;
        let mut waiting: Vec<WaitingApproval> = Vec::new();
        let mut resolved: Vec<ApprovalId> = Vec::new();
        for row in rows {
            let event = Event::try_from(row)?;
            match (event.body()?, event.run_id, event.agent_id) {
                (EventBody::ApprovalRequested(requested), Some(run_id), Some(agent_id)) => {
                    waiting.push(WaitingApproval {
                        event_id: event.id,
                        run_id,
                        room_id: event.room_id,
                        agent_id,
                        requested,
                        created_at: event.created_at,
                    });
                }
                (EventBody::ApprovalResolved(decided), ..) => resolved.push(decided.approval_id),
                _ => {}
            }
        }
        waiting.retain(|approval| !resolved.contains(&approval.requested.approval_id));
        Ok(waiting)
    }
}

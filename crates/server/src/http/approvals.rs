//! Approvals: what waits for a person, in all rooms. A run's own endpoint takes the answer.

use crate::{App, auth::Caller, error::Problem, extract::QueryParams};
use axum::{Json, extract::State};
use domain::{
    ids::{AgentId, ApprovalId, EventId, RoomId, RunId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::WaitingApproval;

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ApprovalListParams {
    /// Which approvals to list; those that are answered are in the events of their rooms.
    #[serde(default, rename = "status")]
    _status: ListedApprovals,
    /// The `next` of the previous page.
    after: Option<EventId>,
    /// Maximum number of approvals.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedApprovals {
    #[default]
    Pending,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct ApprovalList {
    /// Oldest first.
    approvals: Vec<ApprovalView>,
    /// Send it as `after` to get the next page; `null` on the last page.
    next: Option<EventId>,
}

/// A tool call that waits for a person's decision, or a question that waits for an answer
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Approval)]
pub struct ApprovalView {
    /// The id of the approval.
    id: ApprovalId,
    /// The run that waits.
    run_id: RunId,
    /// The room of the run.
    room_id: RoomId,
    /// The agent that asks.
    agent_id: AgentId,
    /// The name of the tool.
    tool: String,
    /// The exact input that the tool runs with if the call is allowed.
    input: Value,
    /// The agent asks a question; the answer is in the `input` of the decision.
    is_question: bool,
    /// What `remember: "pattern"` would allow from now on; `null` if the call has no pattern.
    pattern: Option<String>,
    /// When the agent asked.
    created_at: Timestamp,
    /// The call is denied automatically after this time.
    expires_at: Timestamp,
}

impl From<WaitingApproval> for ApprovalView {
    fn from(waiting: WaitingApproval) -> Self {
        let WaitingApproval { run_id, room_id, agent_id, requested, created_at, .. } = waiting;
        Self {
            id: requested.approval_id,
            run_id,
            room_id,
            agent_id,
            tool: requested.name,
            input: requested.input,
            is_question: requested.is_question,
            pattern: requested.pattern,
            created_at,
            expires_at: requested.expires_at,
        }
    }
}

/// List approvals
///
/// The tool calls and questions of all rooms that wait for a person, oldest first. Answer one with
/// `POST /api/runs/{id}/approvals/{approval}`.
#[utoipa::path(get, path = "/api/approvals", tag = "runs", operation_id = "list_approvals", params(ApprovalListParams),
               responses((status = 200, body = ApprovalList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(params): QueryParams<ApprovalListParams>,
) -> Result<Json<ApprovalList>, Problem> {
    let limit = match params.limit.unwrap_or(100) {
        limit @ 1..=1000 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 1000.")),
    };
    let _reading = app.shares.read_page(&caller).await?;
    let page = app.engine.queries().waiting_approvals(&caller.workspace, params.after, limit).await?;
    let approvals = page.approvals.into_iter().map(ApprovalView::from).collect();
    Ok(Json(ApprovalList { approvals, next: page.next }))
}

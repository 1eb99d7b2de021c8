//! Runs: what became of each attempt to answer, and how to stop or approve one.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Body, Id, Params},
    feed::{Live, sse},
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use domain::{
    event::Decision,
    ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
    position::Position,
    run::{Run, RunStatus},
    timeline::Timeline,
};
use engine::commands::{Approval, Stopped};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{NamedRun, NoCursor, RunCursor, RunFilter};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Also as `room_id`.
    #[serde(alias = "room_id")]
    room: Option<RoomId>,
    /// Also as `agent_id`.
    #[serde(alias = "agent_id")]
    agent: Option<AgentId>,
    message_id: Option<MessageId>,
    status: Option<RunStatus>,
    /// The `next` of the page before.
    before: Option<String>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct RunList {
    runs: Vec<NamedRunView>,
    /// Send it as `before` to go on; `null` at the end.
    next: Option<String>,
}

/// A run, and what its room and its agent are called.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = NamedRun)]
pub struct NamedRunView {
    #[serde(flatten)]
    run: Run,
    room_name: String,
    agent_name: String,
}

/// The runs there were
///
/// Newest first, a page at a time.
#[utoipa::path(get, path = "/api/runs", tag = "runs", params(Filter), responses((status = 200, body = RunList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(filter): Params<Filter>,
) -> Result<Json<RunList>, Problem> {
    let limit = match filter.limit.unwrap_or(100) {
        limit @ 1..=1000 => limit,
        _ => return Err(Problem::invalid("limit: a number from 1 to 1000.")),
    };
    let Filter { room: room_id, agent: agent_id, message_id, status, before, .. } = filter;
    let before = before.as_deref().map(str::parse).transpose();
    let before = before.map_err(|error: NoCursor| Problem::invalid(format!("before: {error}.")))?;
    // One more than wanted says whether there is a next page.
    let filter = RunFilter { room_id, agent_id, message_id, status, before, limit: limit + 1 };
    let mut found = app.engine.store().named_runs(&caller.owner, &filter).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| more).map(|last| RunCursor::of(&last.run).to_string());
    let view = |NamedRun { run, room_name, agent_name }| NamedRunView { run, room_name, agent_name };
    Ok(Json(RunList { runs: found.into_iter().map(view).collect(), next }))
}

/// One run
#[utoipa::path(get, path = "/api/runs/{id}", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = Run)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<Run>, Problem> {
    Ok(Json(app.engine.store().run(&caller.owner, id).await?))
}

/// What a run spent its time on
///
/// Spans in milliseconds since it was queued: waiting for its turn, the model, tools, people. Open ones have no end yet.
#[utoipa::path(get, path = "/api/runs/{id}/timeline", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = Timeline)))]
pub async fn timeline(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<Timeline>, Problem> {
    let store = app.engine.store();
    let run = store.run(&caller.owner, id).await?;
    Ok(Json(domain::timeline::timeline(id, &store.run_milestones(&run).await?)))
}

/// The events of one run
///
/// Server-sent events from the run's first on; ends after its last. Resumes by `Last-Event-ID`.
#[utoipa::path(get, path = "/api/runs/{id}/stream", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The run has ended and its last event was seen")))]
pub async fn stream(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let store = app.engine.store();
    let run = store.run(&caller.owner, id).await?;
    let mut position = sse::position(&headers, None)?;
    if position == Position::START {
        position.seq = run.queued_seq.saturating_sub(1);
    } else if run.status.is_terminal()
        && position.epoch.as_ref().is_none_or(|epoch| epoch == store.epoch())
        && store.run_events(run.room_id, id, position.seq.saturating_add(1)).await?.is_empty()
    {
        // There is nothing to wait for; this status tells a browser's EventSource not to come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let live = Live::open(&app, &caller, run.room_id, &position).await?;
    Ok(sse::run(&app, live, id))
}

/// Stop a run
///
/// Returns when the work has really stopped, with what that took. A run that has ended is answered with how it ended.
#[utoipa::path(post, path = "/api/runs/{id}/cancel", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = Stopped)))]
pub async fn cancel(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<Stopped>, Problem> {
    Ok(Json(app.engine.cancel_run(&caller.owner, id).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    decision: Choice,
    /// Run it with this input instead. To a question: the answer, such as `{"answer": "…"}`.
    #[serde(default)]
    input: Option<Value>,
    /// Allow this tool to this agent in this room from now on. Not for questions.
    #[serde(default)]
    remember: bool,
}

#[derive(Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    Allow,
    Deny,
}

/// Answer a tool call that waits for a person
#[utoipa::path(post, path = "/api/runs/{id}/approvals/{approval}", tag = "runs",
               params(("id" = RunId, Path), ("approval" = ApprovalId, Path)), request_body = Answer,
               responses((status = 204),
                         (status = 422, description = "It cannot be remembered: it is a no, or the answer to a question",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn approve(
    State(app): State<App>,
    caller: Caller,
    Id((run, approval)): Id<(RunId, ApprovalId)>,
    Body(answer, _): Body<Answer>,
) -> Result<StatusCode, Problem> {
    let decision = match answer.decision {
        Choice::Allow => Decision::Allow,
        Choice::Deny => Decision::Deny,
    };
    let answer = Approval { decision, input: answer.input, remember: answer.remember };
    app.engine.approve(&caller.owner, run, approval, answer).await?;
    Ok(StatusCode::NO_CONTENT)
}

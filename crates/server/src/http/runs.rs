//! Runs: list, inspect, follow, cancel, approve.

use crate::{
    App,
    auth::Caller,
    error::{Problem, ProblemSchema},
    extract::{Id, JsonBody, QueryParams},
    feed::{
        RoomReader,
        dialect::{Dialect, StreamFrom, StreamOptions, StreamPosition, open_run},
        sse,
    },
    http::named_page::page_limit,
};
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use domain::{
    actor::Actor,
    approval::RememberChoice,
    event::Decision,
    ids::{AgentId, ApprovalId, MessageId, RoomId, RunId},
    permission::Permission,
    position::Position,
    run::{Run, RunStatus},
    timeline::Timeline,
};
use engine::{
    RunContextView,
    commands::{ApprovalResponse, StoppedRun},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{InvalidCursor, ListCursor, NamedRun, RunFilter};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunFilterParams {
    /// Also as `room_id`.
    #[serde(alias = "room_id")]
    room: Option<RoomId>,
    /// Also as `agent_id`.
    #[serde(alias = "agent_id")]
    agent: Option<AgentId>,
    /// Only runs that answer this message.
    message_id: Option<MessageId>,
    /// Only runs with this status.
    status: Option<RunStatus>,
    /// The `next` of the previous page.
    #[param(pattern = "^[0-9]{1,15}[.][0-9a-f]{32}$", example = "1763371800000.0199c1de7d3f70008000000000000001")]
    before: Option<String>,
    /// Maximum number of runs.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// The runs of all workspaces; for the operator.
    all: Option<bool>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub struct RunList {
    runs: Vec<NamedRunView>,
    /// Send it as `before` to get the next page; `null` on the last page.
    next: Option<String>,
}

/// A run with the names of its room and its agent.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = NamedRun)]
pub struct NamedRunView {
    workspace: String,
    #[serde(flatten)]
    run: Run,
    room_name: String,
    agent_name: String,
    /// The first 200 characters of the message that it answers; `null` if that is erased or has no text.
    question: Option<String>,
}

/// List runs
///
/// Newest first, in pages. With `all=true` those of all workspaces, for the operator, who can cancel each of them.
#[utoipa::path(get, path = "/api/runs", tag = "runs", params(RunFilterParams), responses((status = 200, body = RunList)))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryParams(filter): QueryParams<RunFilterParams>,
) -> Result<Json<RunList>, Problem> {
    let limit = page_limit(filter.limit, 100)?;
    let RunFilterParams { room: room_id, agent: agent_id, message_id, status, before, all, .. } = filter;
    let before = before.as_deref().map(str::parse).transpose();
    let before = before
        .map_err(|error: InvalidCursor| Problem::invalid(format!("before: {error}.")).with("parameter", "before"))?;
    // One extra row shows whether there is a next page.
    let filter = RunFilter { room_id, agent_id, message_id, status, before, limit: limit + 1 };
    let queries = app.engine.queries();
    let mut found = match all {
        Some(true) => {
            caller.require(Permission::Operate)?;
            queries.named_runs_of_all(&filter).await?
        }
        Some(false) | None => queries.named_runs(&caller.workspace, &filter).await?,
    };
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| more).map(|last| ListCursor::of_run(&last.run).to_string());
    let view = |NamedRun { workspace, run, room_name, agent_name, question }| {
        let workspace = workspace.as_str().to_owned();
        NamedRunView { workspace, run, room_name, agent_name, question }
    };
    Ok(Json(RunList { runs: found.into_iter().map(view).collect(), next }))
}

/// A run with the runs that its agent has started.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = RunDetail)]
pub struct RunDetailView {
    #[serde(flatten)]
    run: Run,
    /// In the order they were started; `GET /api/runs/{id}/tree` returns all levels.
    children: Vec<RunId>,
}

/// Get a run
///
/// Its status, and its usage and cost so far.
#[utoipa::path(get, path = "/api/runs/{id}", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = RunDetailView)))]
pub async fn show(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<RunDetailView>, Problem> {
    let queries = app.engine.queries();
    let run = queries.run(&caller.workspace, id).await?;
    let children = queries.child_runs(&caller.workspace, id).await?;
    Ok(Json(RunDetailView { run, children: children.iter().map(|child| child.id).collect() }))
}

/// Get the context of a run
///
/// What the agent was told and which messages it received. Available from the first output of the run on.
#[utoipa::path(get, path = "/api/runs/{id}/context", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = RunContextView)))]
pub async fn context(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
) -> Result<Json<RunContextView>, Problem> {
    Ok(Json(app.engine.run_context(&caller, id).await?))
}

/// Get a run's timeline
///
/// Spans in milliseconds since the run was queued: queue, model, tools, approvals. Open spans have no end.
#[utoipa::path(get, path = "/api/runs/{id}/timeline", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = Timeline)))]
pub async fn timeline(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<Timeline>, Problem> {
    let queries = app.engine.queries();
    let run = queries.run(&caller.workspace, id).await?;
    Ok(Json(domain::timeline::timeline(id, &queries.run_milestones(&run).await?)))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunStreamParams {
    /// Another format than the journal's events: `deltas` or `messages`, as of `/api/execute/agent/{id}`.
    dialect: Option<Dialect>,
}

/// Stream a run's events
///
/// Server-sent events from the run's first to its last event, each with an `Event` as its `data`, or in another
/// `dialect`. Resumes with `Last-Event-ID`.
#[utoipa::path(get, path = "/api/runs/{id}/stream", tag = "runs", params(("id" = RunId, Path), RunStreamParams),
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The run has ended and the client has its last event")))]
pub async fn stream(
    State(app): State<App>,
    caller: Caller,
    Id(id): Id<RunId>,
    QueryParams(params): QueryParams<RunStreamParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let queries = app.engine.queries();
    let run = queries.run(&caller.workspace, id).await?;
    if let Some(dialect) = params.dialect {
        return stream_in_dialect(&app, &caller, &run, dialect, &headers).await;
    }
    if sse::last_event_id(&headers)?.is_some_and(|id| id.parse::<StreamPosition>().is_ok()) {
        return Err(of_another_stream());
    }
    let mut position = sse::position(&headers, None)?;
    if position == Position::START {
        position.seq = run.queued_seq.saturating_sub(1);
    } else if sse::is_complete(queries, &run, &position).await? {
        // Nothing more will come; this status tells a browser's EventSource not to reconnect.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let permit = app.shares.open_stream(&caller)?;
    let live = RoomReader::open(&app, &caller, permit, run.room_id, &position).await?;
    Ok(sse::stream_of(&app, live.of_run(id)))
}

pub(super) async fn stream_in_dialect(
    app: &App,
    actor: &Actor,
    run: &Run,
    dialect: Dialect,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let start = match sse::last_event_id(headers)? {
        None => StreamFrom::Run,
        Some(id) => match id.parse::<StreamPosition>() {
            Ok(at) if at.run == run.id => StreamFrom::After(at),
            _ => return Err(of_another_stream()),
        },
    };
    let permit = app.shares.open_stream(actor)?;
    open_run(app, actor, permit, run, start, StreamOptions { dialect, ..StreamOptions::default() }).await
}

/// A frame of another run, or of this run in another dialect.
fn of_another_stream() -> Problem {
    Problem::unprocessable("Last-Event-ID is not the id of a frame of this stream.")
}

/// Cancel a run
///
/// Returns when the run has stopped, with a receipt of what was stopped. For a finished run, returns how it ended. The
/// operator can cancel the runs of all workspaces.
#[utoipa::path(post, path = "/api/runs/{id}/cancel", tag = "runs", params(("id" = RunId, Path)),
               responses((status = 200, body = StoppedRun)))]
pub async fn cancel(State(app): State<App>, caller: Caller, Id(id): Id<RunId>) -> Result<Json<StoppedRun>, Problem> {
    Ok(Json(app.engine.cancel_run(&caller, id).await?))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Answer)]
pub struct ApproveRequest {
    decision: ApprovalChoice,
    /// Replaces the tool's input. For a question: the answer, such as `{"answer": "…"}`.
    #[serde(default)]
    input: Option<Value>,
    /// Always allow such calls for this agent in this room: with exactly this input (`exact`), that match the `pattern` of
    /// the request (`pattern`), or every call of the tool (`tool`; also `true`). Not for questions.
    #[serde(default)]
    remember: RememberChoice,
}

#[derive(Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Choice)]
pub enum ApprovalChoice {
    Allow,
    Deny,
}

/// Resolve an approval
///
/// Repeating the same answer succeeds; another decision, input or `remember` returns 409.
#[utoipa::path(post, path = "/api/runs/{id}/approvals/{approval}", tag = "runs",
               params(("id" = RunId, Path), ("approval" = ApprovalId, Path)), request_body = ApproveRequest,
               responses((status = 204),
                         (status = 422, description = "A denial or the answer to a question cannot be remembered",
                          content_type = "application/problem+json", body = ProblemSchema)))]
pub async fn approve(
    State(app): State<App>,
    caller: Caller,
    Id((run, approval)): Id<(RunId, ApprovalId)>,
    JsonBody(answer, _): JsonBody<ApproveRequest>,
) -> Result<StatusCode, Problem> {
    let decision = match answer.decision {
        ApprovalChoice::Allow => Decision::Allow,
        ApprovalChoice::Deny => Decision::Deny,
    };
    let answer = ApprovalResponse { decision, input: answer.input, remember: answer.remember.scope() };
    app.engine.approve(&caller, run, approval, answer).await?;
    Ok(StatusCode::NO_CONTENT)
}

//! Execute: sends one message to an agent and streams the answer.

use crate::{
    App,
    auth::{Caller, tickets::RedeemedTicket},
    error::Problem,
    extract::{Fingerprint, Id, IdempotencyKey, JsonBody, QueryParams},
    feed::{
        dialect::{Dialect, StreamFrom, StreamOptions, StreamPosition, open_run},
        sse,
    },
    http::attempt,
};
use axum::{
    extract::{FromRequestParts, State},
    http::{HeaderMap, StatusCode, request},
    response::{IntoResponse as _, Response},
};
use domain::{
    actor::Actor,
    ids::{AgentId, RoomId, RunId},
    room::WhenBusy,
};
use engine::commands::{ExecuteRequest, OnDisconnect};
use serde::Deserialize;
use store::IdempotentRequest;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Task)]
pub struct ExecuteParams {
    #[schema(examples("!count 20 100"), min_length = 1, pattern = "\\S")]
    message: String,
    /// The room to continue in; a new room by default.
    #[serde(default, rename = "conversationId")]
    conversation_id: Option<RoomId>,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    /// What happens to the run when the client disconnects.
    #[serde(default)]
    on_disconnect: OnDisconnect,
    /// The format of the stream.
    #[serde(default)]
    dialect: Dialect,
}

/// The same in a URL.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExecuteQuery {
    #[param(example = "!count 20 100", min_length = 1, pattern = "\\S")]
    message: String,
    /// The room to continue in; a new room by default.
    #[serde(default, rename = "conversationId")]
    conversation_id: Option<RoomId>,
    #[serde(default)]
    when_busy: Option<WhenBusy>,
    /// What happens to the run when the client disconnects.
    #[serde(default)]
    on_disconnect: OnDisconnect,
    /// The format of the stream.
    #[serde(default)]
    dialect: Dialect,
    /// A ticket, for clients that cannot send a header. It was checked before the handler.
    #[serde(default, rename = "ticket")]
    _ticket: Option<String>,
}

impl From<ExecuteQuery> for ExecuteParams {
    fn from(query: ExecuteQuery) -> Self {
        let ExecuteQuery { message, conversation_id, when_busy, on_disconnect, dialect, .. } = query;
        Self { message, conversation_id, when_busy, on_disconnect, dialect }
    }
}

/// Parameters of the URL, for a POST.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DialectParams {
    /// The format of the stream; it overrides the one of the body.
    dialect: Option<Dialect>,
}

/// Execute an agent
///
/// Returns server-sent events: `status`, `message` (assistant, thinking, tool_use, tool_result), `completion` with
/// tokens, cost and duration, `error` or `cancelled`, and finally `data: done`. A request with the `Last-Event-ID` of an
/// earlier stream continues its run and starts none.
#[utoipa::path(post, path = "/api/execute/agent/{id}", tag = "execute", params(("id" = AgentId, Path), DialectParams),
               request_body = ExecuteParams,
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The run has ended and the client has its last event")))]
pub async fn post(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    QueryParams(params): QueryParams<DialectParams>,
    key: IdempotencyKey,
    headers: HeaderMap,
    JsonBody(mut task, fingerprint): JsonBody<ExecuteParams>,
) -> Result<Response, Problem> {
    task.dialect = params.dialect.unwrap_or(task.dialect);
    let options = StreamOptions { dialect: task.dialect, on_disconnect: task.on_disconnect, ticket: None };
    match resumed_position(&headers)? {
        Some(at) => resume(&app, &caller, agent, at, options).await,
        None => execute(&app, &caller, agent, task, options, attempt(key, fingerprint).as_ref()).await,
    }
}

/// Execute an agent with a GET request
///
/// The same for clients that can only GET, such as a browser's EventSource. A cookie is not enough: send a token, or a
/// ticket. The same request with the same ticket, or with the `Last-Event-ID` of the stream, continues the run and never
/// starts another one.
#[utoipa::path(get, path = "/api/execute/agent/{id}", tag = "execute", params(("id" = AgentId, Path), ExecuteQuery),
               responses((status = 200, content_type = "text/event-stream", body = String),
                         (status = 204, description = "The run has ended and the client has its last event")))]
pub async fn get(
    State(app): State<App>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    QueryParams(query): QueryParams<ExecuteQuery>,
    RepeatedGet { ticket, at, attempt }: RepeatedGet,
) -> Result<Response, Problem> {
    let task = ExecuteParams::from(query);
    let options = StreamOptions { dialect: task.dialect, on_disconnect: task.on_disconnect, ticket };
    match (ticket.and_then(|ticket| ticket.run), at) {
        // A ticket gives access to no other run than the one that it started.
        (Some(run), Some(at)) if at.run != run => Err(not_of_this_stream()),
        (_, Some(at)) => resume(&app, &caller, agent, at, options).await,
        (Some(run), None) => repeat(&app, &caller, run, options).await,
        (None, None) => execute(&app, &caller, agent, task, options, attempt.as_ref()).await,
    }
}

/// What tells a GET that is repeated from a new one.
pub struct RepeatedGet {
    ticket: Option<RedeemedTicket>,
    /// The last frame that the client has.
    at: Option<StreamPosition>,
    attempt: Option<IdempotentRequest>,
}

impl FromRequestParts<App> for RepeatedGet {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, app: &App) -> Result<Self, Problem> {
        let ticket = parts.extensions.get::<RedeemedTicket>().copied();
        let key = match ticket {
            // Two requests with one ticket at the same time have the same key, so they start one run.
            Some(ticket) => IdempotencyKey(Some(ticket.idempotency_key())),
            None => IdempotencyKey::from_request_parts(parts, app).await?,
        };
        let attempt = attempt(key, Fingerprint::of(&parts.method, &parts.uri, &[]));
        Ok(Self { ticket, at: resumed_position(&parts.headers)?, attempt })
    }
}

async fn execute(
    app: &App,
    actor: &Actor,
    agent: AgentId,
    task: ExecuteParams,
    options: StreamOptions,
    attempt: Option<&IdempotentRequest>,
) -> Result<Response, Problem> {
    let ExecuteParams { message, conversation_id: conversation, when_busy, .. } = task;
    // Before the run, so that none is started for a stream that is refused.
    let permit = app.shares.open_stream(actor)?;
    let posted = app
        .engine
        .execute(actor, agent, ExecuteRequest { message, conversation, when_busy, caller: None }, attempt)
        .await?;
    let Some(run) = posted.runs.first() else {
        return Err(Problem::internal("execute created no run"));
    };
    if let Some(ticket) = &options.ticket {
        app.tickets.set_run(ticket, run.id);
    }
    let run = app.engine.queries().run(&actor.workspace, run.id).await?;
    open_run(app, actor, permit, &run, StreamFrom::Message(posted.message.seq), options).await
}

/// Continues the stream of a client that was disconnected. Starts nothing.
async fn resume(
    app: &App,
    actor: &Actor,
    agent: AgentId,
    at: StreamPosition,
    options: StreamOptions,
) -> Result<Response, Problem> {
    let run = app.engine.queries().run(&actor.workspace, at.run).await?;
    if run.agent_id != agent {
        return Err(Problem::not_found());
    }
    if let Some(ticket) = &options.ticket {
        app.tickets.set_run(ticket, run.id);
    }
    let permit = app.shares.open_stream(actor)?;
    open_run(app, actor, permit, &run, StreamFrom::After(at), options).await
}

/// The request of a ticket again, from a client that has no frame yet.
async fn repeat(app: &App, actor: &Actor, run: RunId, options: StreamOptions) -> Result<Response, Problem> {
    if options.ticket.is_some_and(|ticket| ticket.is_finished) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let run = app.engine.queries().run(&actor.workspace, run).await?;
    let permit = app.shares.open_stream(actor)?;
    open_run(app, actor, permit, &run, StreamFrom::Run, options).await
}

/// Anything else than a position of a run is refused: to start a run instead would repeat the task.
fn resumed_position(headers: &HeaderMap) -> Result<Option<StreamPosition>, Problem> {
    let parse = |id: &str| id.parse().map_err(|_| not_of_this_stream());
    sse::last_event_id(headers)?.map(parse).transpose()
}

fn not_of_this_stream() -> Problem {
    Problem::invalid("Last-Event-ID is not the id of a frame of this stream; leave it out to start a new run.")
}

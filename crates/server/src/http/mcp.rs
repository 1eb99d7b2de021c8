//! Endpoints for MCP clients: `/mcp` for every protocol revision, `/sse` and `/message` for the first one. An agent
//! inside a run uses `/mcp` with an agent token and gets its host tools. The protocol is implemented in `crates/mcp`;
//! authentication happens here, as for every other route.

use crate::{
    App, accept,
    auth::{Caller, Requester},
    error::{Code, Problem},
    extract::{BodyBytes, QueryParams},
    feed::sse,
    routing::{Policy, RouterBuilder},
};
use ::mcp::{AuxiliaryEventFormat, McpResponse};
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, request},
    response::Response,
    routing::{get, post},
};
use domain::permission::Permission;
use serde::Deserialize;

pub fn add_routes(builder: RouterBuilder) -> RouterBuilder {
    let streamable = get(streamable).post(streamable).delete(streamable);
    builder
        .add_undocumented(
            Policy::NeedsOrHostTools(Permission::Read),
            "/mcp",
            &[Method::GET, Method::POST, Method::DELETE],
            streamable,
        )
        .add_undocumented(
            Policy::Needs(Permission::Read),
            "/sse",
            &[Method::GET, Method::DELETE],
            get(stream).head(no_head).delete(end),
        )
        .add_undocumented(Policy::Needs(Permission::Read), "/message", &[Method::POST], post(message))
}

/// The host tools of the agents that run on this server; an agent token is valid only here.
pub fn add_worker_routes(builder: RouterBuilder) -> RouterBuilder {
    let tools = get(host_tools).post(host_tools).delete(host_tools);
    let policy = Policy::NeedsOrHostTools(Permission::Read);
    builder.add_undocumented(policy, "/mcp", &[Method::GET, Method::POST, Method::DELETE], tools)
}

async fn host_tools(
    app: State<App>,
    requester: Requester,
    parts: request::Parts,
    body: BodyBytes,
) -> Result<Response, Problem> {
    match &requester {
        Requester::Agent(_) => Ok(streamable(app, requester, parts, body).await),
        Requester::Owner(_) => {
            let detail = "This address is for the host tools of agents; other clients use the address of a web server.";
            Err(Problem::new(Code::NotFound, detail))
        }
    }
}

fn respond(reply: McpResponse) -> Response {
    reply.map(Body::new)
}

async fn streamable(
    State(app): State<App>,
    requester: Requester,
    mut parts: request::Parts,
    BodyBytes(body): BodyBytes,
) -> Response {
    // Not needed any more; the MCP library keeps whole requests and might show them.
    for secret in [header::AUTHORIZATION, header::COOKIE] {
        parts.headers.remove(secret);
    }
    respond(match requester {
        Requester::Owner(actor) => {
            parts.extensions.insert(actor.clone());
            app.mcp.streamable(actor, Request::from_parts(parts, body)).await
        }
        Requester::Agent(access) => app.mcp.host_tools(&access, Request::from_parts(parts, body)).await,
    })
}

#[derive(Deserialize)]
struct SseParams {
    #[serde(default)]
    events: Option<SseFormatParam>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SseFormatParam {
    Typed,
}

async fn stream(
    State(app): State<App>,
    Caller(actor): Caller,
    QueryParams(params): QueryParams<SseParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !accept::names(&headers, sse::MIME) {
        let why = "This path is a stream; send `Accept: text/event-stream`.";
        let allow = HeaderValue::from_static("GET, DELETE");
        return Err(Problem::new(Code::MethodNotAllowed, why).header(header::ALLOW, allow));
    }
    let events = params.events.map_or(AuxiliaryEventFormat::Plain, |SseFormatParam::Typed| AuxiliaryEventFormat::Typed);
    Ok(respond(app.mcp.sse(actor, &headers, events)))
}

/// HEAD is refused: it would open a session that no client knows of.
async fn no_head() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

#[derive(Deserialize)]
struct SessionParams {
    #[serde(default, rename = "sessionId", alias = "session_id")]
    session_id: Option<String>,
}

impl SessionParams {
    fn id(self, headers: &HeaderMap) -> Result<String, Problem> {
        let by_header = || headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
        let id = self.session_id.or_else(by_header);
        id.ok_or_else(|| {
            Problem::invalid("sessionId is missing: use /message?sessionId=… from the stream's endpoint event.")
        })
    }
}

async fn message(
    State(app): State<App>,
    Caller(actor): Caller,
    QueryParams(session): QueryParams<SessionParams>,
    headers: HeaderMap,
    BodyBytes(body): BodyBytes,
) -> Result<Response, Problem> {
    let session = session.id(&headers)?;
    Ok(respond(app.mcp.message(&actor, &session, &body).await))
}

async fn end(
    State(app): State<App>,
    Caller(actor): Caller,
    QueryParams(session): QueryParams<SessionParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = session.id(&headers)?;
    Ok(respond(app.mcp.end_sse(&actor, &session).await))
}

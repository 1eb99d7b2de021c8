//! The doors of MCP clients: `/mcp` for every revision of the protocol, `/sse` and `/message` for its first. An agent
//! inside a run comes to `/mcp` too, with a pass, and finds its host tools there instead. What is said behind them is
//! `crates/mcp`'s business; who may say it is decided here, as for every other door.

use crate::{
    App,
    auth::{Caller, Guest},
    doors::{Doors, Policy},
    error::{Code, Problem},
    extract::{Params, PlainBody},
    feed::sse,
};
use ::mcp::{Events, Reply};
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, request},
    response::Response,
    routing::{get, post},
};
use serde::Deserialize;

pub fn open(doors: Doors) -> Doors {
    let streamable = get(streamable).post(streamable).delete(streamable);
    doors
        .beside(Policy::OwnerOrAgent, "/mcp", &[Method::GET, Method::POST, Method::DELETE], streamable)
        .beside(Policy::Owner, "/sse", &[Method::GET, Method::DELETE], get(stream).head(no_head).delete(end))
        .beside(Policy::Owner, "/message", &[Method::POST], post(message))
}

fn respond(reply: Reply) -> Response {
    reply.map(Body::new)
}

async fn streamable(
    State(app): State<App>,
    guest: Guest,
    mut parts: request::Parts,
    PlainBody(body): PlainBody,
) -> Response {
    // They have done their part; what is further on keeps whole requests and may show them.
    for secret in [header::AUTHORIZATION, header::COOKIE] {
        parts.headers.remove(secret);
    }
    respond(match guest {
        Guest::Owner(principal) => {
            parts.extensions.insert(principal.clone());
            app.mcp.streamable(principal, Request::from_parts(parts, body)).await
        }
        Guest::Agent(pass) => app.mcp.host_tools(&pass, Request::from_parts(parts, body)).await,
    })
}

#[derive(Deserialize)]
struct Opening {
    #[serde(default)]
    events: Option<Dialect>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Dialect {
    Typed,
}

async fn stream(
    State(app): State<App>,
    Caller(principal): Caller,
    Params(opening): Params<Opening>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !sse::is_wanted(&headers) {
        let why = "This path is a stream: ask for it with `Accept: text/event-stream`.";
        let allow = HeaderValue::from_static("GET, DELETE");
        return Err(Problem::new(Code::MethodNotAllowed, why).header(header::ALLOW, allow));
    }
    let events = opening.events.map_or(Events::Plain, |Dialect::Typed| Events::Typed);
    Ok(respond(app.mcp.sse(principal, &headers, events)))
}

/// It would begin a session that nobody hears of.
async fn no_head() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

#[derive(Deserialize)]
struct InSession {
    #[serde(default, rename = "sessionId", alias = "session_id")]
    session_id: Option<String>,
}

impl InSession {
    fn id(self, headers: &HeaderMap) -> Result<String, Problem> {
        let by_header = || headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
        let id = self.session_id.or_else(by_header);
        id.ok_or_else(|| {
            Problem::invalid("Name the session: /message?sessionId=…, as the stream's endpoint event said.")
        })
    }
}

async fn message(
    State(app): State<App>,
    Caller(principal): Caller,
    Params(session): Params<InSession>,
    headers: HeaderMap,
    PlainBody(body): PlainBody,
) -> Result<Response, Problem> {
    let session = session.id(&headers)?;
    Ok(respond(app.mcp.message(&principal, &session, &body).await))
}

async fn end(
    State(app): State<App>,
    Caller(principal): Caller,
    Params(session): Params<InSession>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = session.id(&headers)?;
    Ok(respond(app.mcp.end_sse(&principal, &session).await))
}

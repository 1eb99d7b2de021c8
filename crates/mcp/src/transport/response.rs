//! Responses that all transports share.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Full, combinators::UnsyncBoxBody};
use serde::Serialize;
use serde_json::{Value, json};
use std::convert::Infallible;

pub type McpResponseBody = UnsyncBoxBody<Bytes, Infallible>;
pub type McpResponse = Response<McpResponseBody>;

pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub const EVENT_STREAM: &str = "text/event-stream";

pub fn json(message: &impl Serialize) -> McpResponse {
    match serde_json::to_vec(message) {
        Ok(body) => plain(body.into()),
        Err(error) => {
            tracing::error!(%error, "could not serialize an answer");
            json_rpc_error(
                StatusCode::INTERNAL_SERVER_ERROR,
                -32603,
                "The answer could not be serialized.",
                &Value::Null,
            )
        }
    }
}

/// Returns a JSON-RPC error as plain JSON, for a request that is rejected before it is handled.
pub fn json_rpc_error(status: StatusCode, code: i64, message: &str, id: &Value) -> McpResponse {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string();
    let mut response = plain(body.into());
    *response.status_mut() = status;
    response
}

fn plain(body: Bytes) -> McpResponse {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Unknown, expired and foreign sessions get the same response.
pub fn no_such_session() -> McpResponse {
    json_rpc_error(StatusCode::NOT_FOUND, -32001, "Session not found; initialize a new one.", &Value::Null)
}

pub const TOO_MANY_SESSIONS: &str =
    "This server has reached its maximum number of sessions; end some, or try again later.";

pub fn too_many(what: &str) -> McpResponse {
    let mut response = json_rpc_error(StatusCode::SERVICE_UNAVAILABLE, -32000, what, &Value::Null);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

pub fn empty(status: StatusCode) -> McpResponse {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response
}

pub fn method_not_allowed(allow: &'static str, why: &str) -> McpResponse {
    let mut response = json_rpc_error(StatusCode::METHOD_NOT_ALLOWED, -32000, why, &Value::Null);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// Returns an event stream that proxies must not buffer, cache or compress.
pub fn event_stream(body: McpResponseBody) -> McpResponse {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

pub fn is_stream(response: &McpResponse) -> bool {
    response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM.as_bytes()))
}

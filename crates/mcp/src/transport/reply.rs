//! Answers that are the same on every path.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Full, combinators::UnsyncBoxBody};
use serde::Serialize;
use serde_json::{Value, json};
use std::convert::Infallible;

pub type Body = UnsyncBoxBody<Bytes, Infallible>;
pub type Reply = Response<Body>;

pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub const EVENT_STREAM: &str = "text/event-stream";

pub fn json(message: &impl Serialize) -> Reply {
    match serde_json::to_vec(message) {
        Ok(body) => plain(body.into()),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, -32603, "The answer could not be written.", &Value::Null)
        }
    }
}

/// A JSON-RPC error outside of any stream, for a request that did not get that far.
pub fn refusal(status: StatusCode, code: i64, message: &str, id: &Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string();
    let mut reply = plain(body.into());
    *reply.status_mut() = status;
    reply
}

fn plain(body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body).boxed_unsync());
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// Unknown, expired and somebody else's look the same.
pub fn no_such_session() -> Reply {
    refusal(StatusCode::NOT_FOUND, -32001, "There is no such session; initialize a new one.", &Value::Null)
}

pub const FULL: &str = "There are as many sessions as this server keeps; end some, or come back later.";

pub fn full(what: &str) -> Reply {
    let mut reply = refusal(StatusCode::SERVICE_UNAVAILABLE, -32000, what, &Value::Null);
    reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    reply
}

pub fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Empty::new().boxed_unsync());
    *reply.status_mut() = status;
    reply
}

pub fn not_allowed(allow: &'static str, why: &str) -> Reply {
    let mut reply = refusal(StatusCode::METHOD_NOT_ALLOWED, -32000, why, &Value::Null);
    reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    reply
}

/// The head of a stream that no proxy should buffer, cache or compress.
pub fn stream(body: Body) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    reply
}

pub fn is_stream(reply: &Reply) -> bool {
    reply.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM.as_bytes()))
}

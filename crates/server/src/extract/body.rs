//! The JSON body of a request, read within a limit and a deadline.

use super::{Fingerprint, json};
use crate::{
    App,
    error::{Code, Problem},
};
use axum::{
    body::Body as Stream,
    extract::{FromRequest, Request},
    http::{HeaderMap, HeaderValue, header},
};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Time to receive a complete body.
const READ_DEADLINE: Duration = Duration::from_secs(30);

/// How much of a refused body is read and discarded. Closing the connection while the client still sends would reset
/// it, and the client would lose the response.
const DISCARD_BYTES: usize = 64 * 1024 * 1024;
const DISCARD_DEADLINE: Duration = Duration::from_secs(5);

/// A JSON body, and the fingerprint of its request for the Idempotency-Key.
#[derive(Clone, Debug)]
pub struct JsonBody<T>(pub T, pub Fingerprint);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts.headers) {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "Send JSON in UTF-8 with the header `Content-Type: application/json`.",
            ));
        }
        let bytes = read(body, app.config.max_body_bytes).await?;
        let value = json::parse(&bytes)?;
        Ok(Self(value, Fingerprint::of(&parts.method, &parts.uri, &bytes)))
    }
}

/// The bytes of a body in any format, and the fingerprint of its request.
#[derive(Clone, Debug)]
pub struct RawBody(pub Bytes, pub Fingerprint);

impl FromRequest<App> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, app.config.max_body_bytes).await?;
        let fingerprint = Fingerprint::of(&parts.method, &parts.uri, &bytes);
        Ok(Self(bytes, fingerprint))
    }
}

/// The bytes of a body, for a route without an Idempotency-Key.
#[derive(Clone, Debug)]
pub struct BodyBytes(pub Bytes);

impl FromRequest<App> for BodyBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        read(request.into_body(), app.config.max_body_bytes).await.map(Self)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    let mut parts = kind.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_owned();
    let is_charset = |part: &str| part.strip_prefix("charset=").map(|name| name.trim_matches('"').to_owned());
    if parts.filter_map(is_charset).any(|charset| !matches!(charset.as_str(), "utf-8" | "utf8" | "us-ascii")) {
        return false;
    }
    let named = |name: &str| name == "json" || name.ends_with("+json");
    essence.strip_prefix("application/").is_some_and(named)
}

pub(crate) async fn read(body: Stream, limit: usize) -> Result<Bytes, Problem> {
    let mut stream = body.into_data_stream();
    let mut bytes = BytesMut::new();
    let whole = tokio::time::timeout(READ_DEADLINE, async {
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| Problem::invalid("The body ended before it was complete; send it again."))?;
            if bytes.len() + chunk.len() > limit {
                return Ok(false);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(true)
    });
    match whole.await {
        Ok(Ok(true)) => Ok(bytes.freeze()),
        Ok(Ok(false)) => {
            drop(bytes);
            discard(stream).await;
            Err(too_large(limit))
        }
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(Problem::new(
            Code::RequestTimeout,
            format!("The body did not arrive within {} s; send it again.", READ_DEADLINE.as_secs()),
        )),
    }
}

/// Refuses a compressed body and an expectation that nothing here meets, on any route.
pub fn refuse_other_forms(headers: &HeaderMap) -> Result<(), Problem> {
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        let plain = HeaderValue::from_static("identity");
        return Err(Problem::new(Code::UnsupportedMediaType, "Send the body without Content-Encoding.")
            .header(header::ACCEPT_ENCODING, plain));
    }
    match headers.get(header::EXPECT) {
        Some(expected) if !expected.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            Err(Problem::new(Code::ExpectationFailed, "The server knows only `Expect: 100-continue`."))
        }
        _ => Ok(()),
    }
}

/// Refuses a request whose Content-Length is over the limit, on any route.
pub async fn refuse_oversize(request: Request, limit: usize) -> Result<Request, Problem> {
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok()).unwrap_or(0);
    if length <= limit as u64 {
        return Ok(request);
    }
    // With `Expect: 100-continue` nothing was sent yet, and reading would ask the client to send.
    if !request.headers().contains_key(header::EXPECT) {
        discard(request.into_body().into_data_stream()).await;
    }
    Err(too_large(limit))
}

pub(crate) async fn discard(mut stream: axum::body::BodyDataStream) {
    let mut left = DISCARD_BYTES;
    let all = async {
        while let Some(Ok(chunk)) = stream.next().await
            && left > chunk.len()
        {
            left -= chunk.len();
        }
    };
    // On timeout the rest is cut off with the connection.
    tokio::time::timeout(DISCARD_DEADLINE, all).await.unwrap_or_default();
}

pub(crate) fn too_large(limit: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge, format!("The body is larger than {limit} bytes; send less."))
        .with("max_bytes", limit)
}

#[cfg(test)]
mod tests {
    use super::is_json;
    use axum::http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};

    #[test]
    fn every_json_media_type_is_accepted() {
        let json = |kind| is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]));
        assert!(json("application/json") && json("Application/JSON; charset=utf-8") && json("application/x+json"));
        assert!(
            !json("text/json") && !json("application/x-www-form-urlencoded") && !json("text/plain;application/json")
        );
        assert!(!json("application/json; charset=utf-16") && json("application/json; charset=\"UTF-8\""));
        assert!(!is_json(&HeaderMap::new()));
    }
}

//! Applies to every request: request id, deadline, panic handling, log line, two metrics and the default response
//! headers. Query strings, headers and bodies are never logged, because they may hold secrets.

use crate::{
    App,
    auth::{client_address::ForwardingConflict, refusals, request_source::RequestSource},
    error::{Problem, log_cause, name_instance},
    http::{initiate, project_files, uploads},
    listen::ConnectionAddrs,
    metrics,
    request_span::RequestSpan,
};
use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, header, request},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use std::{any::Any, convert::Infallible, panic::AssertUnwindSafe};
use tokio::time::Instant;

/// Two years, as is usual. Other hosts of the domain are not ours to decide about.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=63072000");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The request id: the client's own if it is well formed, else a new one. Handlers can extract it.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

impl RequestId {
    fn of(headers: &HeaderMap) -> Self {
        let plain = |id: &&HeaderValue| {
            let id = id.as_bytes();
            (1..=128).contains(&id.len()) && id.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
        };
        let fresh = || HeaderValue::try_from(uuid::Uuid::now_v7().to_string());
        match headers.get(REQUEST_ID).filter(plain).cloned().map_or_else(fresh, Ok) {
            Ok(id) => Self(id),
            Err(_) => Self(HeaderValue::from_static("none")),
        }
    }

    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self::of(&parts.headers)))
    }
}

pub async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let mut conflict = None;
    if let Some(peer) = request.extensions().get::<ConnectionAddrs>().copied() {
        match app.config.trusted_proxies.client(peer.remote.ip(), request.headers()) {
            Ok(client) => drop(request.extensions_mut().insert(client)),
            Err(ForwardingConflict(proxy)) => conflict = Some(proxy),
        }
    }
    let (method, source) = (method_label(request.method()), RequestSource::of(&request));
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);

    // A large upload takes longer; the upload handler has a deadline for each chunk.
    let deadline = match route {
        route if route == uploads::PATH => uploads::DEADLINE,
        route if project_files::PATHS.contains(&route) || route == initiate::PATH => project_files::DEADLINE,
        _ => app.config.request_deadline,
    };
    let span = RequestSpan::begin(request.headers());
    // Unwinding is safe here: all shared state is behind locks and actors.
    let answer = AssertUnwindSafe(async {
        match conflict {
            None => next.run(request).await,
            Some(proxy) => Problem::invalid(format!(
                "X-Forwarded-For and Forwarded name different clients. The proxy at {proxy} must set or remove both of them."
            ))
            .into_response(),
        }
    })
    .catch_unwind();
    let answer = async {
        match &span {
            Some(span) => span.run(answer).await,
            None => answer.await,
        }
    };
    let mut response = match tokio::time::timeout(deadline, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => Problem::internal(format!("a handler panicked: {}", panic_message(&*panic))).into_response(),
        Err(late) => Problem::unavailable(late).into_response(),
    };

    let took = started.elapsed();
    let status = response.status();
    refusals::record(&app, &mut response, &source, method, route);
    name_instance(&mut response, id.as_str());
    log_cause(&mut response, id.as_str(), method, route);
    tracing::debug!(
        request_id = id.as_str(),
        method,
        route,
        status = status.as_u16(),
        millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "request"
    );
    metrics::record_request(method, route, status, took);
    if let Some(span) = span {
        span.end(method, route, status);
    }
    add_default_headers(response.headers_mut(), id);
    if app.config.encryption.tls().is_some_and(|tls| tls.sends_hsts) {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    response
}

fn add_default_headers(headers: &mut HeaderMap, id: RequestId) {
    headers.insert(REQUEST_ID, id.0);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // An owner's data must not stay in the browser's cache, unless the handler allows it.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Maps unknown methods to `other`: HTTP allows any word, and metric labels must be bounded.
fn method_label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::{REQUEST_ID, RequestId};
    use axum::http::{HeaderMap, HeaderValue};

    #[test]
    fn a_well_formed_request_id_is_kept_and_any_other_is_replaced() {
        let of = |id: &str| {
            let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_str(id).unwrap())]);
            RequestId::of(&headers).as_str().to_owned()
        };
        assert_eq!(of("Trace-1.2_3"), "Trace-1.2_3");
        for bad in ["", "a b", "a=b", "é", &"x".repeat(129)] {
            let fresh = of(bad);
            assert_ne!(fresh, bad);
            assert_eq!(fresh.len(), 36, "a UUID");
        }
    }
}

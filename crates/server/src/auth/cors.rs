//! CORS: lets pages of the configured origins read responses of this server. It opens no door: such a page still needs a
//! credential, as a program does, and its requests carry the browser's cookie only if the operator allows that.

use crate::{
    App,
    auth::{rate_limit::RateLimitKey, request_source::RequestSource},
    error::Problem,
};
use axum::{
    extract::Request,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};

/// The origins whose pages may call this server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CorsSettings {
    /// Exact origins, such as `https://app.example.org`.
    pub origins: Vec<String>,
    /// Whether their requests may use the cookie of a signed-in browser.
    pub credentials: bool,
}

/// What a page may read besides the headers that every response shows: those of MCP, and those that docs/api.md names.
const EXPOSED: &str = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Location, ETag, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id";
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
/// How long a browser may keep the answer to a preflight, in seconds.
const MAX_AGE: &str = "600";

impl CorsSettings {
    /// The origin of the request, if it is a configured one.
    pub fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut named = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (named.next(), named.next()) else { return None };
        self.origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
    }

    /// Adds what a browser needs to show a response to a page of `origin`.
    pub fn add_headers(&self, headers: &mut HeaderMap, origin: Option<HeaderValue>) {
        if self.origins.is_empty() {
            return;
        }
        // A response for one origin must not be taken from a cache for another.
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
            if self.credentials {
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            }
        }
    }
}

pub fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers a preflight of a configured origin. It has no credential, so it is counted by address.
pub fn answer_preflight(app: &App, request: &Request) -> Result<Response, Problem> {
    app.rate_limiter.check(&RateLimitKey::for_address(RequestSource::of(request).client_address()))?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    // MCP has headers whose names a client chooses, so there is no complete list.
    if let Some(asked) = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    Ok(response)
}

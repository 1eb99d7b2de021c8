//! Streamable HTTP with our own HTTP client: rmcp's has no connection pool, no timeouts, and reads answers without a bound.

use crate::{
    egress::{self, EgressResolver},
    outside::{self, BodyError, ErrorText, EventSizeLimit, OutsideSource},
};
use futures_util::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport,
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
            StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use rmcp_sse_stream::{Sse, SseStream};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::Arc,
    time::Duration,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// For messages other than calls. Calls have their own deadlines.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(30);
const ACCEPTED_TYPES: &str = "text/event-stream, application/json";
const SESSION_ID: &str = "mcp-session-id";

/// Follows no redirects, which could send keys to another host or go around the egress policy. Ignores proxy settings of
/// the environment. With a guard, names resolve only to addresses that the guard allows.
pub fn http_client(guard: Option<EgressResolver>) -> Result<reqwest::Client, reqwest::Error> {
    // reqwest is built without a default provider and panics when none is installed.
    if rustls::crypto::CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread installed the cryptography provider first");
    }
    let mut builder = reqwest::Client::builder();
    if let Some(guard) = guard {
        builder = builder.dns_resolver(guard);
    }
    builder
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        // Many servers close idle connections after five seconds; a call on a connection that is being closed is lost.
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .build()
}

pub fn streamable_http_transport(
    client: reqwest::Client,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<BoundedHttpClient>, String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .control_request_timeout(CONTROL_TIMEOUT)
        .max_sse_event_size(OutsideSource::McpHttpEvent.max_bytes());
    for (name, value) in parse_headers(headers)? {
        if let Some(name) = name {
            config.custom_headers.insert(name, value);
        }
    }
    Ok(StreamableHttpClientTransport::with_client(BoundedHttpClient(client), config))
}

pub(super) fn parse_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let parse = |(name, value): (&String, &String)| {
        let invalid = || format!("its header {name:?} is not valid");
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value))
    };
    headers.iter().map(parse).collect()
}

/// The HTTP client of rmcp's transport, with a bound on every answer. rmcp's own bounds only event streams: of `GET` and
/// `DELETE` it reads nothing else, so those are its own.
#[derive(Clone, Debug)]
pub struct BoundedHttpClient(reqwest::Client);

type HttpError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, HttpError> {
        let max = OutsideSource::McpHttpEvent.max_bytes();
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, max).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<Events, HttpError> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, max).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.0.delete_session(uri, session, auth, headers).await
    }

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let max = OutsideSource::McpHttpEvent.max_bytes();
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, max).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut request = self.0.post(uri.as_ref()).header(ACCEPT, ACCEPTED_TYPES);
        if let Some(token) = auth {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            if is_reserved(&name) {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        let has_session = session.is_some();
        if let Some(session) = session {
            request = request.header(SESSION_ID, session.as_ref());
        }
        let response = request.json(&message).send().await.map_err(send_error)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return rejected(response, &message, has_session).await;
        }
        let session = header(&response, SESSION_ID).map(str::to_owned);
        let needs_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let kind = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default().to_owned();
        match kind.as_str() {
            // Some servers answer a notification with an empty 200.
            _ if !needs_answer && response.content_length() == Some(0) => Ok(StreamableHttpPostResponse::Accepted),
            kind if kind.starts_with("text/event-stream") => {
                Ok(StreamableHttpPostResponse::Sse(bounded_events(response, max), session))
            }
            kind if kind.starts_with("application/json") => {
                let body = match outside::read_body(response, OutsideSource::McpHttpAnswer).await {
                    Ok(body) => body,
                    Err(BodyError::Http(error)) => return Err(error.into()),
                    Err(error @ BodyError::TooLong(_)) => return Err(unexpected(&error.to_string())),
                };
                match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
                    Ok(parsed) => Ok(StreamableHttpPostResponse::Json(parsed, session)),
                    Err(_) if !needs_answer => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => {
                        let start = ErrorText::from(&*String::from_utf8_lossy(&body[..body.len().min(200)]));
                        Err(unexpected(&format!("it is not a JSON-RPC message ({error}): {start}")))
                    }
                }
            }
            kind => Err(StreamableHttpError::UnexpectedContentType(Some(ErrorText::from(kind).to_string()))),
        }
    }
}

/// A refusal by the egress policy as a cause that can be found: rmcp's wrapper of the client's errors hides their causes.
fn send_error(error: reqwest::Error) -> HttpError {
    match egress::refusal_in(&error) {
        Some(refused) => StreamableHttpError::Io(io::Error::other(refused)),
        None => error.into(),
    }
}

/// What a response that is not a success means.
async fn rejected(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    let challenge = header(&response, WWW_AUTHENTICATE.as_str()).map(str::to_owned);
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            return Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)));
        }
        (StatusCode::NOT_FOUND, _) if has_session => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    let session = header(&response, SESSION_ID).map(str::to_owned);
    let is_json = header(&response, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"));
    let retry_after = header(&response, RETRY_AFTER.as_str()).map(str::to_owned);
    let status_only = || HttpError::from(HttpStatusError::new(status.as_u16(), retry_after.clone()));
    if status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && !is_json) {
        return Err(status_only());
    }
    let body = outside::read_body_start(response, OutsideSource::McpHttpError).await;
    let error = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let is_refusal = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let text = ErrorText::from(&*String::from_utf8_lossy(&body));
    // A server that does not know `server/discover` may reject it without the request's id.
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
        && !is_refusal
    {
        let error = error.map(|error| error.error).unwrap_or_else(|| {
            ErrorData::invalid_request(format!("server/discover rejected with HTTP {status}: {text}"), None)
        });
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match error {
        Some(error) if is_json && !is_refusal => {
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session))
        }
        _ if is_refusal || status.is_server_error() => Err(status_only()),
        _ => Err(unexpected(&format!("HTTP {status}: {text}"))),
    }
}

/// The events of a response. One that is too long ends the stream.
fn bounded_events(response: Response, max: usize) -> Events {
    let mut limit = EventSizeLimit::new(max);
    let bytes = response.bytes_stream().map(move |chunk| match chunk {
        Ok(chunk) if limit.allows(&chunk) => Ok(chunk),
        Ok(_) => Err(io::Error::other(OutsideSource::McpHttpEvent.too_long_error(max + 1))),
        Err(error) => Err(io::Error::other(error.without_url())),
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// Headers that the transport sets itself. It adds the protocol version to the configured ones.
fn is_reserved(name: &HeaderName) -> bool {
    *name == ACCEPT || matches!(name.as_str(), SESSION_ID | "last-event-id")
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

fn unexpected(text: &str) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(ErrorText::from(text).to_string().into())
}

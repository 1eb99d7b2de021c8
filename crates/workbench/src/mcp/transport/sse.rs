//! The HTTP+SSE transport from before streamable HTTP: an event stream from the server, and POSTs to the endpoint that
//! its first event names.

use super::{EndReason, http::parse_headers};
use crate::{
    egress::{self, EgressRefused},
    event_stream::EventStreamParser,
    mcp::{health::McpServerHealth, server_message},
    outside::OutsideSource,
};
use reqwest::{
    Response, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap},
};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::Arc,
    time::Duration,
};

const POST_TIMEOUT: Duration = Duration::from_secs(60);

pub struct SseTransport {
    client: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
    stream: Option<Response>,
    events: EventStreamParser,
    /// Messages not yet returned by `receive`.
    received: VecDeque<ServerJsonRpcMessage>,
    health: Arc<McpServerHealth>,
    ending: EndReason,
}

#[derive(Debug, thiserror::Error)]
pub enum SseConnectError {
    #[error("{0}")]
    Config(String),
    #[error(transparent)]
    Egress(EgressRefused),
    #[error("it answered with HTTP status {0}")]
    Status(reqwest::StatusCode),
    #[error("it did not answer with an event stream")]
    NoStream,
    #[error("its event stream ended before it named an endpoint for messages")]
    NoEndpoint,
    #[error("it named the endpoint {0:?} for messages, which is on another server")]
    ForeignEndpoint(String),
    #[error("{0}")]
    TooLong(#[from] crate::event_stream::EventTooLong),
    #[error("{}", .0.to_string())]
    Http(reqwest::Error),
}

impl From<reqwest::Error> for SseConnectError {
    fn from(error: reqwest::Error) -> Self {
        match egress::refusal_in(&error) {
            Some(refused) => Self::Egress(refused),
            // A URL may contain a key.
            None => Self::Http(error.without_url()),
        }
    }
}

impl SseTransport {
    /// Waits for the endpoint event. The caller sets the deadline.
    pub async fn connect(
        client: reqwest::Client,
        url: &str,
        headers: &BTreeMap<String, String>,
        health: Arc<McpServerHealth>,
        ending: EndReason,
    ) -> Result<Self, SseConnectError> {
        let url = Url::parse(url).map_err(|error| SseConnectError::Config(format!("its URL is not valid: {error}")))?;
        let headers = parse_headers(headers).map_err(SseConnectError::Config)?;
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let mut stream = request.send().await?;
        if !stream.status().is_success() {
            return Err(SseConnectError::Status(stream.status()));
        }
        let kind = stream.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(SseConnectError::NoStream);
        }
        let mut events = EventStreamParser::new(OutsideSource::McpSseEvent.max_bytes());
        let mut endpoint = None;
        let mut received = VecDeque::new();
        while endpoint.is_none() {
            let chunk = stream.chunk().await?.ok_or(SseConnectError::NoEndpoint)?;
            for event in events.push(&chunk)? {
                match event.name.as_str() {
                    "endpoint" if endpoint.is_none() => endpoint = Some(own_endpoint(&url, &event.data)?),
                    "message" => received.extend(read(&event.data, &health)),
                    _ => {}
                }
            }
        }
        let endpoint = endpoint.ok_or(SseConnectError::NoEndpoint)?;
        Ok(Self { client, endpoint, headers, stream: Some(stream), events, received, health, ending })
    }

    fn record_end(&mut self, reason: String) {
        self.health.record_error(&reason);
        self.ending.set(reason);
        self.stream = None;
    }
}

fn read(data: &str, health: &McpServerHealth) -> Option<ServerJsonRpcMessage> {
    let message = server_message::parse(data);
    if message.is_none() {
        health.record_noise(data);
    }
    message
}

/// The endpoint must be on the same server, because keys are sent to it.
fn own_endpoint(url: &Url, named: &str) -> Result<Url, SseConnectError> {
    let foreign = || SseConnectError::ForeignEndpoint(named.chars().take(200).collect());
    let endpoint = url.join(named.trim()).map_err(|_| foreign())?;
    if endpoint.origin() != url.origin() {
        return Err(foreign());
    }
    Ok(endpoint)
}

impl Transport<RoleClient> for SseTransport {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let request =
            self.client.post(self.endpoint.clone()).headers(self.headers.clone()).timeout(POST_TIMEOUT).json(&message);
        async move {
            let response = request.send().await.map_err(|error| match egress::refusal_in(&error) {
                Some(refused) => io::Error::other(refused),
                None => io::Error::other(error.without_url()),
            })?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(io::Error::other(format!("it answered a message with HTTP status {status}"))),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.received.pop_front() {
                return Some(message);
            }
            match self.stream.as_mut()?.chunk().await {
                Ok(Some(chunk)) => match self.events.push(&chunk) {
                    Ok(events) => {
                        let messages = events.into_iter().filter(|event| event.name == "message");
                        self.received.extend(messages.filter_map(|event| read(&event.data, &self.health)));
                    }
                    Err(crate::event_stream::EventTooLong(bytes)) => {
                        self.record_end(OutsideSource::McpSseEvent.too_long_error(bytes + 1));
                    }
                },
                Ok(None) => self.record_end("its event stream ended".to_owned()),
                Err(error) => self.record_end(format!("its event stream failed: {}", error.without_url())),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.ending.set("it was closed");
        self.stream = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::own_endpoint;
    use reqwest::Url;

    #[test]
    fn the_endpoint_must_be_on_the_same_server() {
        let url = Url::parse("http://host:1/a/sse?key=1").unwrap();
        for (named, endpoint) in [
            ("/message?sessionId=1", Some("http://host:1/message?sessionId=1")),
            ("message", Some("http://host:1/a/message")),
            ("http://host:1/m", Some("http://host:1/m")),
            ("http://host:2/m", None),
            ("https://host:1/m", None),
            ("//evil/m", None),
            ("http://host:1@evil/m", None),
        ] {
            assert_eq!(own_endpoint(&url, named).ok().map(String::from).as_deref(), endpoint, "{named}");
        }
    }
}

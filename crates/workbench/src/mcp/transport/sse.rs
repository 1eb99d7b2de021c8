//! Servers from before streamable HTTP: one stream of events from the server, and posts to an address that its first
//! event names.

use super::{Ending, http::parse_headers, stdio::too_long};
use crate::{
    events::Events,
    mcp::{health::Health, lines::MAX_LINE_BYTES, wire},
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

const POST: Duration = Duration::from_secs(60);

pub struct Sse {
    client: reqwest::Client,
    endpoint: Url,
    headers: HeaderMap,
    stream: Option<Response>,
    events: Events,
    /// Read and not taken yet.
    heard: VecDeque<ServerJsonRpcMessage>,
    health: Arc<Health>,
    ending: Ending,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{0}")]
    Config(String),
    #[error("it refused with the HTTP status {0}")]
    Status(reqwest::StatusCode),
    #[error("it did not answer with a stream of events")]
    NoStream,
    #[error("its stream ended before it named an address for messages")]
    NoEndpoint,
    #[error("it named the address {0:?} for messages, which is not its own")]
    ForeignEndpoint(String),
    #[error("{0}")]
    TooLong(#[from] crate::events::TooLong),
    #[error("{}", .0.to_string())]
    Http(reqwest::Error),
}

impl From<reqwest::Error> for ConnectError {
    fn from(error: reqwest::Error) -> Self {
        // An address may have a key in it.
        Self::Http(error.without_url())
    }
}

impl Sse {
    /// Waits for the address that messages go to; the deadline is the caller's.
    pub async fn connect(
        client: reqwest::Client,
        url: &str,
        headers: &BTreeMap<String, String>,
        health: Arc<Health>,
        ending: Ending,
    ) -> Result<Self, ConnectError> {
        let url = Url::parse(url).map_err(|error| ConnectError::Config(format!("its address is none: {error}")))?;
        let headers = parse_headers(headers).map_err(ConnectError::Config)?;
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
        let mut stream = request.send().await?;
        if !stream.status().is_success() {
            return Err(ConnectError::Status(stream.status()));
        }
        let kind = stream.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            return Err(ConnectError::NoStream);
        }
        let mut events = Events::new(MAX_LINE_BYTES);
        let mut endpoint = None;
        let mut heard = VecDeque::new();
        while endpoint.is_none() {
            let chunk = stream.chunk().await?.ok_or(ConnectError::NoEndpoint)?;
            for event in events.push(&chunk)? {
                match event.name.as_str() {
                    "endpoint" if endpoint.is_none() => endpoint = Some(own_endpoint(&url, &event.data)?),
                    "message" => heard.extend(read(&event.data, &health)),
                    _ => {}
                }
            }
        }
        let endpoint = endpoint.ok_or(ConnectError::NoEndpoint)?;
        Ok(Self { client, endpoint, headers, stream: Some(stream), events, heard, health, ending })
    }

    fn note_end(&mut self, reason: String) {
        self.health.error(&reason);
        self.ending.set(reason);
        self.stream = None;
    }
}

fn read(data: &str, health: &Health) -> Option<ServerJsonRpcMessage> {
    let message = wire::read(data);
    if message.is_none() {
        health.noise(data);
    }
    message
}

/// Keys are sent to it, so it has to be the server itself.
fn own_endpoint(url: &Url, named: &str) -> Result<Url, ConnectError> {
    let foreign = || ConnectError::ForeignEndpoint(named.chars().take(200).collect());
    let endpoint = url.join(named.trim()).map_err(|_| foreign())?;
    if endpoint.origin() != url.origin() {
        return Err(foreign());
    }
    Ok(endpoint)
}

impl Transport<RoleClient> for Sse {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let request =
            self.client.post(self.endpoint.clone()).headers(self.headers.clone()).timeout(POST).json(&message);
        async move {
            let response = request.send().await.map_err(|error| io::Error::other(error.without_url()))?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(io::Error::other(format!("it refused a message with the HTTP status {status}"))),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.heard.pop_front() {
                return Some(message);
            }
            match self.stream.as_mut()?.chunk().await {
                Ok(Some(chunk)) => match self.events.push(&chunk) {
                    Ok(events) => {
                        let messages = events.into_iter().filter(|event| event.name == "message");
                        self.heard.extend(messages.filter_map(|event| read(&event.data, &self.health)));
                    }
                    Err(crate::events::TooLong(bytes)) => self.note_end(too_long(bytes + 1)),
                },
                Ok(None) => self.note_end("its stream of events ended".to_owned()),
                Err(error) => self.note_end(format!("its stream of events broke: {}", error.without_url())),
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
    fn messages_go_to_the_server_itself_and_nowhere_else() {
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

//! The one place that talks to a model's API: a request out, a stream in. Dropping what it returns closes the connection.

use super::{
    retry,
    wire::{
        Api, Parser, Piece,
        failure::{Failure, Kind},
    },
};
use domain::mcp::{Secrets, public_part};
use reqwest::{StatusCode, header, redirect::Policy};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;

/// The version of the API that `wire::anthropic` speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Of an answer that says what went wrong.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A key to an API. It is shown to nobody (invariant 17).
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// `None` for what cannot be a key.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_usable = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic());
        is_usable.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlines {
    pub connect: Duration,
    /// From the request to the first byte of an answer.
    pub first_byte: Duration,
    /// Between two bytes.
    pub idle: Duration,
}

/// Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    api: Api,
    /// Without a slash at its end.
    base_url: String,
    key: Option<Key>,
    deadlines: Deadlines,
    /// Made when it is first needed: it reads the machine's certificates.
    http: OnceLock<Result<reqwest::Client, String>>,
}

impl Client {
    pub fn new(api: Api, base_url: &str, key: Option<Key>, deadlines: Deadlines) -> Self {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Self(Arc::new(Inner { api, base_url, key, deadlines, http: OnceLock::new() }))
    }

    fn http(&self) -> Result<&reqwest::Client, Failure> {
        let inner = &self.0;
        let made = inner.http.get_or_init(|| {
            // Fails only when one was installed before, and then that one serves.
            drop(rustls::crypto::ring::default_provider().install_default());
            // A redirect could carry the key to somebody else.
            let mut builder = reqwest::Client::builder()
                .connect_timeout(inner.deadlines.connect)
                .redirect(Policy::none())
                .tcp_nodelay(true)
                .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")));
            if is_local(&inner.base_url) {
                builder = builder.no_proxy();
            }
            builder.build().map_err(|error| error.to_string())
        });
        let cannot =
            |error: &String| Failure::new(Kind::Refused, format!("cannot make a connection to any API: {error}"));
        made.as_ref().map_err(cannot)
    }

    /// Asks, and returns when the answer begins.
    pub async fn ask(&self, body: Value) -> Result<Answering, Failure> {
        self.begin(body).await.map_err(|failure| self.without_key(failure))
    }

    /// Some gateways repeat the key in what they say went wrong, and that is told in the room.
    fn without_key(&self, mut failure: Failure) -> Failure {
        let key = self.0.key.iter().map(|Key(key)| key.as_str());
        failure.message = Secrets::default().and(key).strike(failure.message);
        failure
    }

    async fn begin(&self, body: Value) -> Result<Answering, Failure> {
        let Inner { api, base_url, key, deadlines, .. } = &*self.0;
        let path = match api {
            Api::Messages => "v1/messages",
            Api::Chat => "chat/completions",
        };
        let mut request =
            self.http()?.post(format!("{base_url}/{path}")).header(header::ACCEPT, "text/event-stream").json(&body);
        drop(body);
        if *api == Api::Messages {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        request = match (api, key) {
            (Api::Messages, Some(Key(key))) => request.header("x-api-key", key),
            (Api::Chat, Some(Key(key))) => request.bearer_auth(key),
            (_, None) => request,
        };
        let response = match timeout(deadlines.first_byte, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(unsent(&error, base_url)),
            Err(_) => return Err(silent("did not begin to answer", deadlines.first_byte)),
        };
        let status = response.status();
        let kind = header_of(&response, header::CONTENT_TYPE.as_str()).unwrap_or_default().to_owned();
        if status != StatusCode::OK {
            let wait = retry::retry_after(header_of(&response, "retry-after"), header_of(&response, "retry-after-ms"));
            let body = timeout(deadlines.idle, beginning(response)).await.unwrap_or_default();
            return Err(Failure::of_status(status.as_u16(), wait, &body));
        }
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            let address = public_part(base_url);
            let message =
                format!("{address} does not stream its answers (it sent {kind}); is it the address of the API?");
            return Err(Failure::new(Kind::Garbled, message));
        }
        let parser = Parser::new(*api);
        Ok(Answering { client: self.clone(), response, parser, has_begun: false })
    }
}

/// An answer on its way.
#[derive(Debug)]
pub struct Answering {
    client: Client,
    response: reqwest::Response,
    parser: Parser,
    has_begun: bool,
}

impl Answering {
    /// Some pieces, and how the answer ended if it did. Cancel safe.
    pub async fn next(&mut self) -> (Vec<Piece>, Option<Result<(), Failure>>) {
        let deadlines = &self.client.0.deadlines;
        let patience = if self.has_begun { deadlines.idle } else { deadlines.first_byte };
        let chunk = timeout(patience, self.response.chunk()).await;
        let mut pieces = Vec::new();
        let end = match chunk {
            Ok(Ok(Some(bytes))) => {
                self.has_begun = true;
                match self.parser.push(&bytes, &mut pieces) {
                    Ok(()) if pieces.last() == Some(&Piece::Done) => Some(Ok(())),
                    Ok(()) => None,
                    Err(failure) => Some(Err(failure)),
                }
            }
            Ok(Ok(None)) => Some(self.parser.end(&mut pieces)),
            Ok(Err(_)) => Some(Err(Failure::new(Kind::Cut, "the connection to the model's API was lost"))),
            Err(_) => Some(Err(silent("was silent in the middle of its answer", patience))),
        };
        if end.is_some() && self.parser.skipped > 0 {
            tracing::debug!(skipped = self.parser.skipped, "events of a model's API that are not known here");
        }
        (pieces, end.map(|end| end.map_err(|failure| self.client.without_key(failure))))
    }
}

async fn beginning(mut response: reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BYTES - body.len())]);
        if body.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    body
}

fn header_of<'a>(response: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

fn silent(what: &str, patience: Duration) -> Failure {
    Failure::new(Kind::Silent, format!("the model's API {what} for {} s", patience.as_secs()))
}

/// The error itself may hold the whole address, and an address may hold a password.
fn unsent(error: &reqwest::Error, base_url: &str) -> Failure {
    let (kind, what) = if error.is_connect() {
        (Kind::Unreachable, "cannot be reached")
    } else if error.is_builder() {
        (Kind::Refused, "is no address that can be asked")
    } else {
        (Kind::Cut, "closed the connection before it answered")
    };
    Failure::new(kind, format!("the model's API at {} {what}", public_part(base_url)))
}

/// Whether the address is on this machine.
pub fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Key, is_local};

    #[test]
    fn where_an_address_is() {
        for local in
            ["http://127.0.0.1:11434/v1", "http://localhost:1234", "http://[::1]:8000/v1", "http://user@127.1.2.3/"]
        {
            assert!(is_local(local), "{local}");
        }
        for other in ["https://api.openai.com/v1", "http://localhost.example.org", "http://127.0.0.1.example.org/", "x"]
        {
            assert!(!is_local(other), "{other}");
        }
    }

    #[test]
    fn invariant_17_secrets_stay_a_key_is_not_shown() {
        let key = Key::new(" sk-secret\n").unwrap();
        assert!(!format!("{key:?}").contains("secret"));
        assert!(Key::new("  ").is_none() && Key::new("two words").is_none() && Key::new("a\u{1}").is_none());
    }
}

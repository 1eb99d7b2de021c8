//! The HTTP client of the model APIs: a request out, a stream in. Dropping the stream closes the connection.

use super::{
    retry,
    wire::{
        AnswerParser, AnswerPiece, ModelApiKind,
        failure::{ModelFailure, ModelFailureKind},
    },
};
use domain::mcp::{McpSecrets, url_without_secrets};
use reqwest::{StatusCode, header, redirect::Policy};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;
use workbench::outside::{self, OutsideSource};

/// The API version that `wire::anthropic` implements.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// An API key. It is never shown (invariant 17).
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// `None` if the text cannot be a key.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_usable = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic());
        is_usable.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlines {
    pub connect: Duration,
    /// From the request to the first byte of the response.
    pub first_byte: Duration,
    /// Between two chunks of the response.
    pub idle: Duration,
}

/// Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct ModelClient(Arc<ModelClientInner>);

#[derive(Debug)]
struct ModelClientInner {
    api: ModelApiKind,
    /// Without a trailing slash.
    base_url: String,
    key: Option<ApiKey>,
    deadlines: Deadlines,
    /// Created on first use, because it reads the machine's certificates.
    http: OnceLock<Result<reqwest::Client, String>>,
}

impl ModelClient {
    pub fn new(api: ModelApiKind, base_url: &str, key: Option<ApiKey>, deadlines: Deadlines) -> Self {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Self(Arc::new(ModelClientInner { api, base_url, key, deadlines, http: OnceLock::new() }))
    }

    fn http(&self) -> Result<&reqwest::Client, ModelFailure> {
        let inner = &self.0;
        let client = inner.http.get_or_init(|| {
            // Fails only if a provider is already installed, which is fine.
            drop(rustls::crypto::ring::default_provider().install_default());
            // A redirect could send the key to another host.
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
        let cannot = |error: &String| {
            ModelFailure::new(ModelFailureKind::Refused, format!("cannot create an HTTP client: {error}"))
        };
        client.as_ref().map_err(cannot)
    }

    /// Sends a request, and returns when the answer starts.
    pub async fn start_answer(&self, body: Value) -> Result<AnswerStream, ModelFailure> {
        self.begin(body).await.map_err(|failure| self.redact_key(failure))
    }

    /// Some gateways repeat the key in their error message, which is shown in the room.
    fn redact_key(&self, mut failure: ModelFailure) -> ModelFailure {
        let key = self.0.key.iter().map(|ApiKey(key)| key.as_str());
        failure.message = McpSecrets::default().with(key).redact(failure.message);
        failure
    }

    async fn begin(&self, body: Value) -> Result<AnswerStream, ModelFailure> {
        let ModelClientInner { api, base_url, key, deadlines, .. } = &*self.0;
        let path = match api {
            ModelApiKind::Messages => "v1/messages",
            ModelApiKind::Chat => "chat/completions",
        };
        let mut request =
            self.http()?.post(format!("{base_url}/{path}")).header(header::ACCEPT, "text/event-stream").json(&body);
        drop(body);
        if *api == ModelApiKind::Messages {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        request = match (api, key) {
            (ModelApiKind::Messages, Some(ApiKey(key))) => request.header("x-api-key", key),
            (ModelApiKind::Chat, Some(ApiKey(key))) => request.bearer_auth(key),
            (_, None) => request,
        };
        let response = match timeout(deadlines.first_byte, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(send_failure(&error, base_url)),
            Err(_) => return Err(timed_out("sent no response", deadlines.first_byte)),
        };
        let status = response.status();
        let kind = header_of(&response, header::CONTENT_TYPE.as_str()).unwrap_or_default().to_owned();
        if status != StatusCode::OK {
            let wait = retry::retry_after(header_of(&response, "retry-after"), header_of(&response, "retry-after-ms"));
            let body = timeout(deadlines.idle, outside::read_body_start(response, OutsideSource::ModelError))
                .await
                .unwrap_or_default();
            return Err(ModelFailure::from_status(status.as_u16(), wait, &body));
        }
        if kind.starts_with("application/json") || kind.starts_with("text/html") {
            let address = url_without_secrets(base_url);
            let message = format!("{address} sent {kind} instead of a stream; check that it is the address of the API");
            return Err(ModelFailure::new(ModelFailureKind::InvalidResponse, message));
        }
        let parser = AnswerParser::new(*api);
        Ok(AnswerStream { client: self.clone(), response, parser, has_begun: false })
    }
}

/// An answer that is being received.
#[derive(Debug)]
pub struct AnswerStream {
    client: ModelClient,
    response: reqwest::Response,
    parser: AnswerParser,
    has_begun: bool,
}

impl AnswerStream {
    /// Returns the next pieces, and how the answer ended if it has. Cancel safe.
    pub async fn next(&mut self) -> (Vec<AnswerPiece>, Option<Result<(), ModelFailure>>) {
        let deadlines = &self.client.0.deadlines;
        let patience = if self.has_begun { deadlines.idle } else { deadlines.first_byte };
        let chunk = timeout(patience, self.response.chunk()).await;
        let mut pieces = Vec::new();
        let end = match chunk {
            Ok(Ok(Some(bytes))) => {
                self.has_begun = true;
                match self.parser.push(&bytes, &mut pieces) {
                    Ok(()) if pieces.last() == Some(&AnswerPiece::Done) => Some(Ok(())),
                    Ok(()) => None,
                    Err(failure) => Some(Err(failure)),
                }
            }
            Ok(Ok(None)) => Some(self.parser.end(&mut pieces)),
            Ok(Err(_)) => Some(Err(ModelFailure::new(
                ModelFailureKind::Disconnected,
                "the connection to the model's API was lost",
            ))),
            Err(_) => Some(Err(timed_out("sent nothing in the middle of its answer", patience))),
        };
        if end.is_some() && self.parser.skipped > 0 {
            tracing::debug!(skipped = self.parser.skipped, "skipped unknown events of the model's API");
        }
        (pieces, end.map(|end| end.map_err(|failure| self.client.redact_key(failure))))
    }
}

fn header_of<'a>(response: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

fn timed_out(what: &str, patience: Duration) -> ModelFailure {
    ModelFailure::new(ModelFailureKind::Timeout, format!("the model's API {what} for {} s", patience.as_secs()))
}

/// The error text is not used: it may contain the whole URL, which may contain a password.
fn send_failure(error: &reqwest::Error, base_url: &str) -> ModelFailure {
    let (kind, what) = if error.is_connect() {
        (ModelFailureKind::Unreachable, "cannot be reached")
    } else if error.is_builder() {
        (ModelFailureKind::Refused, "is not a valid address")
    } else {
        (ModelFailureKind::Disconnected, "closed the connection before it responded")
    };
    ModelFailure::new(kind, format!("the model's API at {} {what}", url_without_secrets(base_url)))
}

/// Returns whether the URL is on this machine.
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
    use super::{ApiKey, is_local};

    #[test]
    fn loopback_urls_are_local() {
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
        let key = ApiKey::new(" sk-secret\n").unwrap();
        assert!(!format!("{key:?}").contains("secret"));
        assert!(ApiKey::new("  ").is_none() && ApiKey::new("two words").is_none() && ApiKey::new("a\u{1}").is_none());
    }
}

//! The HTTP client of the model APIs: a request out, a stream in. Dropping the stream closes the connection.

use super::{
    access::ApiAccess,
    http::ModelHttp,
    models::{self, ListedModel},
    retry,
    wire::{
        AnswerParser, AnswerPiece, ModelApiKind,
        failure::{ModelFailure, ModelFailureKind},
    },
};
use domain::mcp::{McpSecrets, url_without_secrets};
use reqwest::{StatusCode, header};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use workbench::outside::{self, OutsideSource};

/// The API version that `wire::anthropic` implements.
const ANTHROPIC_VERSION: &str = "2023-06-01";

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
    access: ApiAccess,
    deadlines: Deadlines,
    http: ModelHttp,
}

impl ModelClient {
    pub fn new(api: ModelApiKind, access: ApiAccess, deadlines: Deadlines, http: ModelHttp) -> Self {
        Self(Arc::new(ModelClientInner { api, access, deadlines, http }))
    }

    /// Sends a request, and returns when the answer starts.
    pub async fn start_answer(&self, model: &str, body: Value, keeps_raw: bool) -> Result<AnswerStream, ModelFailure> {
        self.begin(model, body, keeps_raw).await.map_err(|failure| self.redact_key(failure))
    }

    /// Some gateways repeat the key in their error message, which is shown in the room.
    fn redact_key(&self, mut failure: ModelFailure) -> ModelFailure {
        failure.message = McpSecrets::default().with(self.0.access.secrets()).redact(failure.message);
        failure
    }

    /// Adds the key and what else the API needs to know who asks.
    fn authenticated(&self, mut request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        let ModelClientInner { api, access, .. } = &*self.0;
        if *api == ModelApiKind::Messages {
            request = request.header("anthropic-version", ANTHROPIC_VERSION);
        }
        request = match (api, &access.key) {
            (_, None) => request,
            (ModelApiKind::Messages, Some(key)) => request.header("x-api-key", key.expose()),
            (ModelApiKind::Gemini, Some(key)) => request.header("x-goog-api-key", key.expose()),
            (ModelApiKind::Chat | ModelApiKind::Responses, Some(key)) => request.bearer_auth(key.expose()),
        };
        for header in &access.headers {
            request = request.header(&header.name, &header.value);
        }
        request
    }

    /// Lists the models of the API, with a deadline for the whole call.
    pub async fn list_models(&self, deadline: Duration) -> Result<Vec<ListedModel>, ModelFailure> {
        match timeout(deadline, self.request_models()).await {
            Ok(models) => models.map_err(|failure| self.redact_key(failure)),
            Err(_) => Err(timed_out("did not answer", deadline)),
        }
    }

    async fn request_models(&self) -> Result<Vec<ListedModel>, ModelFailure> {
        let ModelClientInner { api, access, http, .. } = &*self.0;
        let base_url = access.base_url.as_str();
        let url = models::url(*api, base_url).ok_or_else(|| invalid_address(base_url))?;
        let request = self.authenticated(http.client(access)?.get(url).header(header::ACCEPT, "application/json"));
        let response = request.send().await.map_err(|error| send_failure(&error, base_url))?;
        let status = response.status();
        if status != StatusCode::OK {
            let body = outside::read_body_start(response, OutsideSource::ModelError).await;
            return Err(models::failure(status.as_u16(), base_url, &body));
        }
        let body = outside::read_body(response, OutsideSource::ModelList).await;
        let body = body.map_err(|_| ModelFailure::new(ModelFailureKind::InvalidResponse, models::no_list(base_url)))?;
        models::parse(*api, &body)
            .ok_or_else(|| ModelFailure::new(ModelFailureKind::InvalidResponse, models::no_list(base_url)))
    }

    async fn begin(&self, model: &str, body: Value, keeps_raw: bool) -> Result<AnswerStream, ModelFailure> {
        let ModelClientInner { api, access, deadlines, .. } = &*self.0;
        let base_url = access.base_url.as_str();
        let url = url(*api, base_url, model).ok_or_else(|| invalid_address(base_url))?;
        let request = self.0.http.client(access)?.post(url).header(header::ACCEPT, "text/event-stream").json(&body);
        drop(body);
        let request = self.authenticated(request);
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
        let parser = AnswerParser::new(*api, keeps_raw);
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

/// The address of a request. A model's name is never more than a segment of the path.
fn url(api: ModelApiKind, base_url: &str, model: &str) -> Option<reqwest::Url> {
    let mut url = reqwest::Url::parse(base_url).ok()?;
    let segments: Vec<String> = match api {
        ModelApiKind::Messages => vec!["v1".into(), "messages".into()],
        ModelApiKind::Chat => vec!["chat".into(), "completions".into()],
        ModelApiKind::Responses => vec!["responses".into()],
        ModelApiKind::Gemini => {
            let (kind, name) = match model.split_once('/') {
                Some((kind @ ("models" | "tunedModels"), name)) => (kind, name),
                _ => ("models", model),
            };
            vec!["v1beta".into(), kind.into(), format!("{name}:streamGenerateContent")]
        }
    };
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    if api == ModelApiKind::Gemini {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    Some(url)
}

fn invalid_address(base_url: &str) -> ModelFailure {
    let message = format!("the model's API at {} is not a valid address", url_without_secrets(base_url));
    ModelFailure::new(ModelFailureKind::Refused, message)
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

#[cfg(test)]
mod tests {
    use super::{ModelApiKind, url};

    #[test]
    fn a_request_goes_beneath_the_base_address() {
        for (api, base, model, expected) in [
            (ModelApiKind::Messages, "https://a.example", "m", "https://a.example/v1/messages"),
            (ModelApiKind::Chat, "https://a.example/v1/?x=1", "m", "https://a.example/v1/chat/completions?x=1"),
            (ModelApiKind::Responses, "https://a.example/v1", "m", "https://a.example/v1/responses"),
            (
                ModelApiKind::Gemini,
                "https://a.example",
                "models/gemini-x",
                "https://a.example/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
            ),
            (
                ModelApiKind::Gemini,
                "https://a.example/p",
                "../x?key=1#y",
                "https://a.example/p/v1beta/models/..%2Fx%3Fkey=1%23y:streamGenerateContent?alt=sse",
            ),
        ] {
            assert_eq!(url(api, base, model).unwrap().as_str(), expected);
        }
        assert!(url(ModelApiKind::Chat, "data:text", "m").is_none());
    }
}

//! The server's MCP endpoint, `/mcp`. Every wait has a deadline: response head, response body, and silence of a stream.

use super::message::ServerMessage;
use crate::cli::client::{ApiClient, ClientError, REQUEST_DEADLINE};
use bytes::Bytes;
use domain::calling_agent::CallingAgent;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::json;
use std::{collections::VecDeque, time::Duration};
use tokio::time::timeout;
use workbench::event_stream::{EventStreamParser, ServerSentEvent};

const PATH: &str = "/mcp";
const JSON_OR_STREAM: &str = "application/json, text/event-stream";
const STREAM: &str = "text/event-stream";
/// A tool may wait for an hour, and a response without a stream sends its head at the end.
pub const MAX_CALL_DURATION: Duration = Duration::from_secs(3700);
/// A stream that is silent for this long is dead: servers send comments at least every 15 seconds.
const SILENCE: Duration = Duration::from_secs(90);
/// Maximum size of a message.
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;
/// The id of our own requests.
const OWN_ID: &str = "greenroom-mcp";

#[derive(Clone)]
pub struct McpEndpoint {
    client: ApiClient,
    /// The agent in whose turn this program runs.
    caller: Option<CallingAgent>,
}

pub struct EndpointResponse {
    pub status: StatusCode,
    pub session: Option<HeaderValue>,
    pub body: EndpointBody,
}

pub enum EndpointBody {
    Text(String),
    Stream(EndpointStream),
}

impl McpEndpoint {
    pub fn new(client: ApiClient, caller: Option<CallingAgent>) -> Self {
        Self { client, caller }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    pub async fn post(
        &self,
        body: Bytes,
        headers: HeaderMap,
        deadline: Duration,
    ) -> Result<EndpointResponse, ClientError> {
        let mut request = self.client.request(Method::POST, PATH, &[]).header(CONTENT_TYPE, "application/json");
        if let Some(caller) = self.caller {
            request = request.header(CallingAgent::HEADER, caller.to_string());
        }
        self.send(request.header(ACCEPT, JSON_OR_STREAM).headers(headers).body(body), deadline).await
    }

    /// Opens the stream for messages that belong to no request, or resumes a broken stream.
    pub async fn listen(&self, headers: HeaderMap) -> Result<EndpointResponse, ClientError> {
        let request = self.client.request(Method::GET, PATH, &[]);
        self.send(request.header(ACCEPT, STREAM).headers(headers), REQUEST_DEADLINE).await
    }

    /// Ends a session.
    pub async fn delete(&self, headers: HeaderMap, deadline: Duration) -> Result<(), ClientError> {
        self.send(self.client.request(Method::DELETE, PATH, &[]).headers(headers), deadline).await.map(drop)
    }

    /// Sends a request of our own. Other messages in the response stream are ignored.
    pub async fn call(&self, method: &str, params: &str, headers: HeaderMap) -> Result<CallOutcome, ClientError> {
        let params = if params.is_empty() { "{}" } else { params };
        let (id, method) = (json!(OWN_ID), json!(method));
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#);
        let call = async {
            let answer = self.post(body.into(), headers, REQUEST_DEADLINE).await?;
            let message = match answer.body {
                EndpointBody::Text(text) => {
                    ServerMessage::parse(&text).ok_or_else(|| self.refusal(answer.status, &text))?
                }
                EndpointBody::Stream(mut stream) => loop {
                    let Some(event) = stream.next().await? else {
                        return Err(ClientError::connection_lost(self.server(), "it ended before the answer came"));
                    };
                    match ServerMessage::parse(&event.data) {
                        Some(message) if message.answers.is_some() => break message,
                        _ => {}
                    }
                },
            };
            match (message.result, message.error) {
                (Some(result), _) => Ok(CallOutcome { session: answer.session, result }),
                (None, Some(error)) => {
                    let code = error.code.to_string();
                    Err(ClientError::Refused { status: answer.status, code, detail: error.message })
                }
                (None, None) => Err(ClientError::incompatible(self.server(), "it answers with something else")),
            }
        };
        timeout(REQUEST_DEADLINE, call)
            .await
            .unwrap_or_else(|_| Err(ClientError::connection_lost(self.server(), "no answer in time")))
    }

    /// The error for a response that is not a JSON-RPC message.
    pub fn refusal(&self, status: StatusCode, text: &str) -> ClientError {
        if status.is_success() {
            return ClientError::incompatible(self.server(), "its answer is not a JSON-RPC message");
        }
        match ClientError::from_problem(self.server(), status, text.as_bytes()) {
            ClientError::Refused { status: StatusCode::UNAUTHORIZED, code, detail } => {
                let detail = format!("{detail} This command takes it from GREENROOM_TOKEN.");
                ClientError::Refused { status, code, detail }
            }
            error => error,
        }
    }

    async fn send(&self, request: RequestBuilder, deadline: Duration) -> Result<EndpointResponse, ClientError> {
        let late = |_| ClientError::connection_lost(self.server(), "no answer in time");
        let answer = timeout(deadline, request.send()).await.map_err(late)?;
        let answer = answer.map_err(|error| ClientError::from_transport(self.server(), error))?;
        let (status, session) = (answer.status(), answer.headers().get(super::headers::SESSION).cloned());
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let body = if status.is_success() && kind.is_some_and(|kind| kind.starts_with(STREAM)) {
            EndpointBody::Stream(EndpointStream::new(answer, self.server()))
        } else {
            let body = timeout(REQUEST_DEADLINE, self.client.body(answer)).await.map_err(late)??;
            EndpointBody::Text(String::from_utf8_lossy(&body).into_owned())
        };
        Ok(EndpointResponse { status, session, body })
    }
}

pub struct CallOutcome {
    pub session: Option<HeaderValue>,
    pub result: String,
}

pub struct EndpointStream {
    answer: Response,
    events: EventStreamParser,
    ready: VecDeque<ServerSentEvent>,
    server: String,
}

impl EndpointStream {
    fn new(answer: Response, server: &str) -> Self {
        Self {
            answer,
            events: EventStreamParser::new(MAX_EVENT_BYTES),
            ready: VecDeque::new(),
            server: server.to_owned(),
        }
    }

    /// The next event; `None` when the server has ended the stream.
    pub async fn next(&mut self) -> Result<Option<ServerSentEvent>, ClientError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let chunk = timeout(SILENCE, self.answer.chunk()).await;
            let chunk = chunk.map_err(|_| ClientError::connection_lost(&self.server, "it was silent for too long"))?;
            let Some(chunk) = chunk.map_err(|error| ClientError::from_transport(&self.server, error))? else {
                return Ok(None);
            };
            let events =
                self.events.push(&chunk).map_err(|long| ClientError::incompatible(&self.server, &long.to_string()))?;
            self.ready.extend(events);
        }
    }
}

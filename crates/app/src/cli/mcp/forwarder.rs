//! Forwards messages to the server and writes its responses. Every request gets exactly one response, whatever happens
//! to the connection, unless the client has cancelled it.

use super::{
    CLOSE_DEADLINE,
    endpoint::{EndpointBody, EndpointResponse, MAX_CALL_DURATION, McpEndpoint},
    headers,
    message::{self, ClientMessage, ClientMessageKind, ClientRequest, FORWARD_FAILED},
    note,
    open_requests::{BridgeRequest, BridgeRequests},
    pending_answer::PendingAnswer,
    session::{BridgeSession, BridgeSessions},
};
use crate::{
    cli::client::{ClientError, REQUEST_DEADLINE},
    terminal::sanitize,
};
use bytes::Bytes;
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// Maximum number of concurrent requests to the server; others wait.
const MAX_SENT: usize = 64;

pub struct McpForwarder {
    pub endpoint: McpEndpoint,
    pub sessions: BridgeSessions,
    pub requests: BridgeRequests,
    in_flight: Semaphore,
    out: mpsc::Sender<String>,
}

/// Why a request got no response from the server.
pub struct ForwardError {
    pub code: i64,
    pub message: String,
}

impl From<ClientError> for ForwardError {
    fn from(error: ClientError) -> Self {
        Self { code: FORWARD_FAILED, message: error.to_string() }
    }
}

impl McpForwarder {
    pub fn new(endpoint: McpEndpoint, out: mpsc::Sender<String>) -> Self {
        let (sessions, requests) = (BridgeSessions::default(), BridgeRequests::default());
        Self { endpoint, sessions, requests, in_flight: Semaphore::new(MAX_SENT), out }
    }

    /// Writes one message on one line. A closed output is detected by the writer task, not here.
    pub async fn write(&self, message: &str) {
        self.out.send(sanitize::json(message).into_owned()).await.ok();
    }

    /// Forwards a request and waits until it is answered or cancelled.
    pub async fn forward_request(&self, bytes: Bytes, request: &ClientRequest, open: &BridgeRequest) {
        let outcome = open.cancel.run_until_cancelled(self.send_request(bytes, request, open)).await;
        self.requests.end(&request.id);
        if let Some(Err(ForwardError { code, message })) = outcome
            && !open.is_cancelled_by_client()
        {
            if code == FORWARD_FAILED {
                // Some clients hide error responses but show standard error.
                note(&message);
            }
            self.write(&message::error(&request.id, code, &message)).await;
        }
    }

    /// Forwards a message that gets no response.
    pub async fn forward_notification(&self, message: &ClientMessage) {
        let outcome = match &message.kind {
            ClientMessageKind::Notification { method, params } if params.version.is_some() => {
                self.endpoint.post(message.bytes.clone(), headers::for_request(method, params), REQUEST_DEADLINE).await
            }
            _ => self.post_in_session(message.bytes.clone(), REQUEST_DEADLINE).await.map(|(answer, _)| answer),
        };
        match outcome {
            Ok(answer) if answer.status.is_success() => {}
            Ok(EndpointResponse { status, body: EndpointBody::Text(text), .. }) => {
                note(&self.endpoint.refusal(status, &text).to_string())
            }
            Ok(_) => {}
            Err(error) => note(&error.to_string()),
        }
    }

    async fn send_request(
        &self,
        bytes: Bytes,
        request: &ClientRequest,
        open: &BridgeRequest,
    ) -> Result<(), ForwardError> {
        let Ok(_permit) = self.in_flight.acquire().await else { return Ok(()) };
        open.mark_sent();
        let (answer, session) = if request.is_modern() {
            let headers = headers::for_request(&request.method, &request.params);
            (self.endpoint.post(bytes.clone(), headers, MAX_CALL_DURATION).await?, None)
        } else if request.method == "initialize" {
            (self.endpoint.post(bytes.clone(), HeaderMap::new(), REQUEST_DEADLINE).await?, None)
        } else {
            let (answer, session) = self.post_in_session(bytes.clone(), MAX_CALL_DURATION).await?;
            (answer, Some(session))
        };
        open.mark_received();
        PendingAnswer::new(self, bytes, request, open, session).take(answer).await
    }

    /// Sends a message in the client's session. If the server does not know the session any more, it is renewed first.
    async fn post_in_session(
        &self,
        bytes: Bytes,
        deadline: Duration,
    ) -> Result<(EndpointResponse, BridgeSession), ClientError> {
        let session = self.sessions.current();
        let answer = self.endpoint.post(bytes.clone(), session.headers(), deadline).await?;
        if answer.status != StatusCode::NOT_FOUND || !session.has_id() {
            return Ok((answer, session));
        }
        self.renew_session(&session).await?;
        let session = self.sessions.current();
        Ok((self.endpoint.post(bytes, session.headers(), deadline).await?, session))
    }

    /// Stores the session after a successful `initialize` and ends the previous one.
    pub async fn begin_session(&self, initialize: &[u8], id: Option<HeaderValue>, result: &str) {
        let previous = self.sessions.begin(message::params(initialize), id, result);
        self.end_session(&previous).await;
    }

    /// Ends the current session.
    pub async fn end_current_session(&self) {
        self.end_session(&self.sessions.current()).await;
    }

    async fn end_session(&self, session: &BridgeSession) {
        if session.has_id()
            && let Err(error) = self.endpoint.delete(session.headers(), CLOSE_DEADLINE).await
        {
            note(&format!("a session is left to expire: {error}"));
        }
    }

    /// Initializes a new session on behalf of the client.
    pub async fn renew_session(&self, expired: &BridgeSession) -> Result<(), ClientError> {
        // Changes during the gap were not sent to anyone, so everything is reported as changed.
        for missed in self.sessions.renew(&self.endpoint, expired).await? {
            self.write(&missed.to_string()).await;
        }
        Ok(())
    }
}

//! One request whose response has started. A stream that breaks before the answer is resumed, if the protocol supports
//! it.

use super::{
    endpoint::{EndpointBody, EndpointResponse, EndpointStream, MAX_CALL_DURATION},
    forwarder::{ForwardError, McpForwarder},
    headers,
    message::{ClientRequest, ServerMessage},
    note,
    open_requests::BridgeRequest,
    session::BridgeSession,
};
use crate::cli::client::ClientError;
use bytes::Bytes;
use reqwest::{StatusCode, header::HeaderValue};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use workbench::event_stream::ServerSentEvent;

/// Maximum number of consecutive attempts, with growing pauses.
const MAX_ATTEMPTS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UNKNOWN_OUTCOME: &str = "before the answer came; what was asked for may happen all the same";

pub struct PendingAnswer<'a> {
    forwarder: &'a McpForwarder,
    bytes: Bytes,
    request: &'a ClientRequest,
    open: &'a BridgeRequest,
    /// The session that the request was sent in.
    session: Option<BridgeSession>,
    /// The session id in the response head.
    session_id: Option<HeaderValue>,
    last_event: Option<String>,
    /// Attempts to resume the stream since the last message.
    attempts: u32,
    is_repeated: bool,
}

enum EventOutcome {
    More,
    /// The stream has ended without the answer.
    Ended,
    Answer,
}

impl<'a> PendingAnswer<'a> {
    pub fn new(
        forwarder: &'a McpForwarder,
        bytes: Bytes,
        request: &'a ClientRequest,
        open: &'a BridgeRequest,
        session: Option<BridgeSession>,
    ) -> Self {
        let (session_id, last_event) = (None, None);
        Self { forwarder, bytes, request, open, session, session_id, last_event, attempts: 0, is_repeated: false }
    }

    pub async fn take(mut self, answer: EndpointResponse) -> Result<(), ForwardError> {
        self.session_id = answer.session;
        match answer.body {
            EndpointBody::Stream(stream) => self.take_stream(stream).await,
            EndpointBody::Text(text) => self.take_text(answer.status, &text).await,
        }
    }

    async fn take_text(&self, status: StatusCode, text: &str) -> Result<(), ForwardError> {
        match ServerMessage::parse(text) {
            Some(message) if self.is_answered_by(&message) => {
                self.deliver(&message, text).await;
                Ok(())
            }
            // An error without a request id.
            Some(ServerMessage { error: Some(refusal), .. }) => {
                Err(ForwardError { code: refusal.code, message: refusal.message })
            }
            _ => Err(self.forwarder.endpoint.refusal(status, text).into()),
        }
    }

    async fn take_stream(&mut self, mut stream: EndpointStream) -> Result<(), ForwardError> {
        loop {
            match stream.next().await {
                Ok(Some(event)) => match self.take_event(event).await {
                    EventOutcome::More => {}
                    EventOutcome::Ended => stream = self.reopen().await?,
                    EventOutcome::Answer => return Ok(()),
                },
                Ok(None) => stream = self.reopen().await?,
                Err(error) => {
                    note(&error.to_string());
                    stream = self.reopen().await?;
                }
            }
        }
    }

    async fn take_event(&mut self, event: ServerSentEvent) -> EventOutcome {
        self.last_event = event.id.or_else(|| self.last_event.take());
        // Events without data only carry a resume position.
        let Some(message) = ServerMessage::parse(&event.data) else { return EventOutcome::More };
        if self.is_answered_by(&message) {
            // The client has not ended the subscription, so the server did because it is stopping.
            if self.request.is_subscription() && message.result.is_some() {
                return EventOutcome::Ended;
            }
            self.deliver(&message, &event.data).await;
            return EventOutcome::Answer;
        }
        if message.method.as_deref() == Some(ACKNOWLEDGED) && self.is_repeated {
            for missed in missed(&event.data) {
                self.forwarder.write(&missed.to_string()).await;
            }
        } else {
            self.attempts = 0;
            self.forwarder.write(&event.data).await;
        }
        EventOutcome::More
    }

    fn is_answered_by(&self, message: &ServerMessage) -> bool {
        message.answers.as_ref() == Some(&self.request.id)
    }

    async fn deliver(&self, message: &ServerMessage, text: &str) {
        if let Some(result) = &message.result
            && !self.request.is_modern()
        {
            match self.request.method.as_str() {
                "initialize" => self.forwarder.begin_session(&self.bytes, self.session_id.clone(), result).await,
                _ => self.forwarder.sessions.remember(self.request, &self.bytes),
            }
        }
        self.forwarder.write(text).await;
    }

    /// Reopens a stream that ended before the answer.
    async fn reopen(&mut self) -> Result<EndpointStream, ForwardError> {
        let endpoint = &self.forwarder.endpoint;
        loop {
            let session = self.session.as_ref().filter(|session| session.has_id() && self.last_event.is_some());
            let can_resume = session.is_some() || self.request.is_subscription();
            if self.open.is_cancelled_by_client() || !can_resume || self.attempts == MAX_ATTEMPTS {
                return Err(ClientError::connection_lost(endpoint.server(), UNKNOWN_OUTCOME).into());
            }
            sleep((FIRST_PAUSE * 2_u32.pow(self.attempts.min(10))).min(LONGEST_PAUSE)).await;
            self.attempts += 1;
            let answer = if let Some(session) = session {
                endpoint.listen(session.headers_after(self.last_event.as_deref())).await
            } else {
                self.is_repeated = true;
                let headers = headers::for_request(&self.request.method, &self.request.params);
                endpoint.post(self.bytes.clone(), headers, MAX_CALL_DURATION).await
            };
            match answer {
                Ok(EndpointResponse { body: EndpointBody::Stream(stream), .. }) => return Ok(stream),
                Ok(EndpointResponse { status, .. }) if status.is_server_error() => {}
                Ok(EndpointResponse { status: StatusCode::NOT_FOUND, .. }) if self.session.is_some() => {
                    return Err(ClientError::connection_lost(endpoint.server(), UNKNOWN_OUTCOME).into());
                }
                Ok(EndpointResponse { status, body: EndpointBody::Text(text), .. }) => {
                    return Err(endpoint.refusal(status, &text).into());
                }
                Err(error) if error.is_transient() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Changes during a gap are unknown, so everything in the acknowledged subscription is reported as changed.
fn missed(acknowledgement: &str) -> Vec<Value> {
    let message: Value = serde_json::from_str(acknowledgement).unwrap_or_default();
    let (meta, wanted) = (&message["params"]["_meta"], &message["params"]["notifications"]);
    let notification = |method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let lists =
        [("toolsListChanged", "tools"), ("promptsListChanged", "prompts"), ("resourcesListChanged", "resources")];
    let lists = lists.iter().filter(|(flag, _)| wanted[flag] == true);
    let lists = lists.map(|(_, list)| notification(&format!("notifications/{list}/list_changed"), json!({})));
    let uris = wanted["resourceSubscriptions"].as_array().into_iter().flatten();
    lists.chain(uris.map(|uri| notification("notifications/resources/updated", json!({"uri": uri})))).collect()
}

#[cfg(test)]
mod tests {
    use super::missed;
    use serde_json::json;

    #[test]
    fn after_a_gap_everything_subscribed_is_reported_as_changed() {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": "7"});
        let wanted = json!({"toolsListChanged": true, "promptsListChanged": false, "resourceSubscriptions": ["x://1"]});
        let acknowledgement = json!({"params": {"_meta": meta, "notifications": wanted}}).to_string();
        assert_eq!(
            missed(&acknowledgement),
            [
                json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}),
                json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x://1", "_meta": meta}}),
            ]
        );
        assert!(missed("{}").is_empty() && missed("7").is_empty());
    }
}

//! The stream of a session for messages that belong to no request: updates, changed lists, requests of the server. It
//! is kept open, and resumed after an error.

use super::{
    endpoint::{EndpointBody, EndpointResponse, EndpointStream},
    forwarder::McpForwarder,
    message::ServerMessage,
    note,
};
use crate::cli::client::ClientError;
use reqwest::StatusCode;
use std::time::Duration;
use tokio::time::sleep;

const INITIAL_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

impl McpForwarder {
    /// Listens forever; returns only if the server has no such stream.
    pub async fn listen(&self) {
        let mut session = self.sessions.current();
        let mut position = StreamPosition::default();
        let mut pause = INITIAL_BACKOFF;
        let mut is_reported = false;
        while session.has_id() {
            let error = match self.endpoint.listen(session.headers_after(position.last.as_deref())).await {
                Ok(EndpointResponse { body: EndpointBody::Stream(stream), .. }) => {
                    (pause, is_reported) = (INITIAL_BACKOFF, false);
                    self.pump(stream, &mut position).await
                }
                Ok(EndpointResponse { status: StatusCode::METHOD_NOT_ALLOWED, .. }) => return,
                Ok(EndpointResponse { status: StatusCode::NOT_FOUND, .. }) => self.renew_session(&session).await.err(),
                Ok(EndpointResponse { status, body: EndpointBody::Text(text), .. }) => {
                    Some(self.endpoint.refusal(status, &text))
                }
                Err(error) => Some(error),
            };
            // An outage is reported once, however long it lasts.
            if let Some(error) = error.filter(|_| !std::mem::replace(&mut is_reported, true)) {
                note(&format!("lost the stream of server messages; retrying: {error}"));
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_BACKOFF);
            let current = self.sessions.current();
            if current.generation() != session.generation() {
                position = StreamPosition::default();
            }
            session = current;
        }
    }

    async fn pump(&self, mut stream: EndpointStream, position: &mut StreamPosition) -> Option<ClientError> {
        loop {
            let event = match stream.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return None,
                Err(error) => return Some(error),
            };
            let is_message = ServerMessage::parse(&event.data).is_some();
            if position.advance(event.id, is_message) && is_message {
                self.write(&event.data).await;
            }
        }
    }
}

/// How far a stream was read.
#[derive(Default)]
struct StreamPosition {
    last: Option<String>,
    /// The id of the last event with a message. Servers send that event again after a resume.
    delivered: Option<String>,
}

impl StreamPosition {
    /// Records an event. Returns whether it was not delivered before.
    fn advance(&mut self, id: Option<String>, is_message: bool) -> bool {
        let Some(id) = id else { return true };
        let is_new = self.delivered.as_ref() != Some(&id);
        if is_message {
            self.delivered = Some(id.clone());
        }
        self.last = Some(id);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::StreamPosition;

    #[test]
    fn a_repeated_event_is_not_new() {
        let mut position = StreamPosition::default();
        let id = |id: &str| Some(id.to_owned());
        // An event without a message is only a resume position; the first message may have the same id.
        assert!(position.advance(id("0"), false));
        assert!(position.advance(id("0"), true));
        assert!(!position.advance(id("0"), true));
        assert!(position.advance(id("1"), true));
        assert!(position.advance(None, true) && position.advance(None, true));
        assert_eq!(position.last.as_deref(), Some("1"));
    }
}

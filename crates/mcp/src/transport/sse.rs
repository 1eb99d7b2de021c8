//! `/sse` and `/message`: the transport of the protocol's first revision. The server's messages go out on an event
//! stream, the client's messages come in by POST, and the session connects them.
//!
//! A session may have several streams: a message goes out on the newest open one, and waits if none is open. The format
//! is the one that every known client accepts: `endpoint` first, JSON-RPC as `message`, everything else as comments.

use super::{
    channel::{InboxError, ServerTransport, SessionChannel},
    message::{InvalidMessage, MessageOutline},
    outbox::{Outbox, OutboxReader},
    response::{self, McpResponse, SESSION_ID, TOO_MANY_SESSIONS},
    sessions::{McpSession, SessionHold, SessionTransport},
};
use crate::{McpService, session_handler::SessionHandler};
use bytes::Bytes;
use domain::actor::Actor;
use futures_util::{StreamExt as _, future::BoxFuture, stream};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientJsonRpcMessage, GetExtensions as _, PingRequest, ServerRequest},
    service::{Peer, PeerRequestOptions},
};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// How long a client may take to initialize its session.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a client is pinged, and how many pings in a row it may miss.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const MISSED_PINGS: u32 = 2;
/// For how many ping intervals a session may have no open stream.
const MAX_INTERVALS_WITHOUT_STREAM: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AuxiliaryEventFormat {
    /// Auxiliary events are comments.
    #[default]
    Plain,
    /// Auxiliary events are named events with data.
    Typed,
}

impl McpService {
    /// Begins a session, or opens another stream of the session in the headers.
    pub fn sse(&self, actor: Actor, headers: &HeaderMap, events: AuxiliaryEventFormat) -> McpResponse {
        let session = match headers.get(SESSION_ID) {
            Some(id) => id.to_str().ok().and_then(|id| self.sse_session(id, &actor)),
            None if !self.admit(&actor) => {
                return response::too_many(TOO_MANY_SESSIONS);
            }
            None => Some(self.begin_sse(actor)),
        };
        let Some(session) = session else { return response::no_such_session() };
        let SessionTransport::Sse(channel) = &session.transport else { return response::no_such_session() };
        let stream = SseStream {
            hold: session.hold(),
            reading: channel.outbox.reader(),
            events,
            heartbeat: self.0.settings.heartbeat,
            phase: StreamPhase::New,
        };
        let frames = stream::unfold(stream, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(bytes)), stream))
        });
        let mut response = response::event_stream(StreamBody::new(frames).boxed_unsync());
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            response.headers_mut().insert(SESSION_ID, id);
        }
        response
    }

    /// Handles a message that the client posts to its session. Boxed like `streamable`.
    pub fn message<'a>(&'a self, actor: &'a Actor, session: &'a str, body: &'a [u8]) -> BoxFuture<'a, McpResponse> {
        Box::pin(self.handle_message(actor, session, body))
    }

    async fn handle_message(&self, actor: &Actor, session: &str, body: &[u8]) -> McpResponse {
        let Some(session) = self.sse_session(session, actor) else { return response::no_such_session() };
        let SessionTransport::Sse(channel) = &session.transport else { return response::no_such_session() };
        let _hold = session.hold();
        let parsed = MessageOutline::of(body).and_then(|_| {
            serde_json::from_slice::<ClientJsonRpcMessage>(body).map_err(|error| InvalidMessage::of(&error))
        });
        let mut message = match parsed {
            Ok(message) => message,
            Err(invalid) => {
                channel.rejected.add(&invalid);
                return invalid.to_response();
            }
        };
        let status = match &mut message {
            // Its answer could not be delivered.
            ClientJsonRpcMessage::Request(_) if channel.outbox.is_full() => {
                return response::too_many("This session has unread answers; read them first.");
            }
            ClientJsonRpcMessage::Request(request) => {
                let extensions = request.request.extensions_mut();
                extensions.insert(actor.clone());
                extensions.insert(Arc::clone(&session));
                StatusCode::ACCEPTED
            }
            ClientJsonRpcMessage::Notification(notification) => {
                notification.notification.extensions_mut().insert(actor.clone());
                StatusCode::NO_CONTENT
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => StatusCode::NO_CONTENT,
        };
        match channel.send(message).await {
            Ok(()) => response::empty(status),
            Err(InboxError::Ended) => response::no_such_session(),
            Err(InboxError::Full) => {
                response::too_many("This session has too many requests in progress; wait for answers first.")
            }
        }
    }

    pub async fn end_sse(&self, actor: &Actor, session: &str) -> McpResponse {
        match self.sse_session(session, actor) {
            Some(session) => {
                self.end(&session, "the client ended it");
                response::empty(StatusCode::NO_CONTENT)
            }
            None => response::no_such_session(),
        }
    }

    fn sse_session(&self, id: &str, actor: &Actor) -> Option<Arc<McpSession>> {
        self.0.sessions.find(id, actor).filter(|session| matches!(session.transport, SessionTransport::Sse(_)))
    }

    fn begin_sse(&self, actor: Actor) -> Arc<McpSession> {
        let (channel, transport) = SessionChannel::new();
        let outbox = Arc::clone(&channel.outbox);
        let id = uuid::Uuid::new_v4().to_string();
        let session = self.0.sessions.create(id.into(), actor, SessionTransport::Sse(channel));
        let (mcp, kept) = (self.clone(), Arc::clone(&session));
        self.0.tasks.spawn(async move {
            let over = kept.ended.clone();
            let why = tokio::select! {
                why = serve(mcp.0.handler.for_new_session(), transport, &outbox) => why,
                () = over.cancelled() => return,
            };
            mcp.end(&kept, why);
        });
        session
    }
}

/// Serves a session until one side ends it. Returns the reason.
async fn serve(handler: SessionHandler, transport: ServerTransport, outbox: &Outbox) -> &'static str {
    let Ok(greeted) = timeout(INITIALIZE_TIMEOUT, handler.serve(transport)).await else {
        return "it was not initialized in time";
    };
    match greeted {
        Ok(service) => {
            let peer = service.peer().clone();
            tokio::select! {
                ended = service.waiting() => {
                    tracing::debug!(?ended, "an MCP session ended");
                    "the session's service has ended"
                }
                why = wait_until_unresponsive(&peer, outbox) => why,
                () = outbox.ended.cancelled() => match outbox.is_stuck() {
                    true => "the client does not read its messages",
                    false => "the session's service has ended",
                },
            }
        }
        Err(error) => {
            tracing::debug!(%error, "an MCP client failed to initialize its session");
            "its initialization failed"
        }
    }
}

/// Returns when the client misses pings although a stream is open, or when no stream was open for too long.
async fn wait_until_unresponsive(peer: &Peer<RoleServer>, outbox: &Outbox) -> &'static str {
    let (mut missed, mut away) = (0, 0);
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        if !outbox.has_reader() {
            (missed, away) = (0, away + 1);
            if away > MAX_INTERVALS_WITHOUT_STREAM {
                return "it had no open stream for too long";
            }
            continue;
        }
        away = 0;
        let ping = ServerRequest::PingRequest(PingRequest::default());
        let options = PeerRequestOptions::with_timeout(PING_INTERVAL);
        let answered = match peer.send_request_with_option(ping, options).await {
            // An error also shows that the client is alive.
            Ok(handle) => !matches!(handle.await_response().await, Err(rmcp::ServiceError::Timeout { .. })),
            Err(_) => false,
        };
        missed = if answered { 0 } else { missed + 1 };
        if missed >= MISSED_PINGS {
            return "the client did not answer pings";
        }
    }
}

/// One open stream.
struct SseStream {
    hold: SessionHold,
    reading: OutboxReader,
    events: AuxiliaryEventFormat,
    heartbeat: Duration,
    phase: StreamPhase,
}

enum StreamPhase {
    New,
    Open,
    Closed,
}

impl SseStream {
    async fn next(&mut self) -> Option<Bytes> {
        match self.phase {
            StreamPhase::New => {
                self.phase = StreamPhase::Open;
                return Some(self.first_events());
            }
            StreamPhase::Open => {}
            StreamPhase::Closed => return None,
        }
        let beat = Instant::now() + self.heartbeat;
        tokio::select! {
            // Pending messages are sent before the stream ends.
            biased;
            Some(event) = self.reading.next() => {
                let mut bytes = b"event: message\ndata: ".to_vec();
                if let Err(error) = serde_json::to_writer(&mut bytes, &event.message) {
                    tracing::error!(%error, "could not serialize a message");
                    return None;
                }
                bytes.extend_from_slice(b"\n\n");
                Some(bytes.into())
            }
            error = next_rejected(self.hold.session()) => Some(self.auxiliary_event("error", &error)),
            () = sleep_until(beat) => Some(self.auxiliary_event("ping", &json!({"type": "ping"}))),
            () = self.hold.session().ended.cancelled() => {
                let goodbye = format!(": closed, {}\n\n", self.hold.session().end_reason());
                self.phase = StreamPhase::Closed;
                Some(goodbye.into())
            }
        }
    }

    fn first_events(&self) -> Bytes {
        let endpoint = format!("event: endpoint\ndata: /message?sessionId={}\n\n", self.hold.session().id);
        [endpoint.as_bytes(), &self.auxiliary_event("connected", &json!({"type": "connected"}))].concat().into()
    }

    /// The data is one line: JSON escapes what would end it.
    fn auxiliary_event(&self, kind: &str, data: &Value) -> Bytes {
        match self.events {
            AuxiliaryEventFormat::Plain => format!(": {data}\n\n").into(),
            AuxiliaryEventFormat::Typed => format!("event: {kind}\ndata: {data}\n\n").into(),
        }
    }
}

async fn next_rejected(session: &McpSession) -> Value {
    match &session.transport {
        SessionTransport::Sse(channel) => channel.rejected.next().await,
        SessionTransport::Streamable | SessionTransport::StatelessStream => std::future::pending().await,
    }
}

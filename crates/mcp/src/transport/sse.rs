//! `/sse` and `/message`: the transport of the protocol's first revision. What the server says goes out on a stream, what the
//! client says comes in by POST, and the session ties them together.
//!
//! A session may have several streams: each message goes out on the newest that is open, and waits where none is. The dialect
//! is the one that every known client takes: `endpoint` first, JSON-RPC as `message`, all else as comments.

use super::{
    line::{Line, ServerEnd, Unsaid},
    message::{NoMessage, Outline},
    outbox::{Outbox, Reading},
    reply::{self, FULL, Reply, SESSION_ID},
    sessions::{Hold, Link, Session},
};
use crate::Mcp;
use bytes::Bytes;
use domain::owner::Principal;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientJsonRpcMessage, GetExtensions as _, PingRequest, ServerRequest},
    service::{Peer, PeerRequestOptions},
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};

/// How long a client may take to initialize its session.
const GREETING: Duration = Duration::from_secs(60);
/// How often a client is asked whether it is there, and how often it may not answer.
const PING: Duration = Duration::from_secs(30);
const MISSED_PINGS: u32 = 2;
/// For how many such times a session may be without a stream. What it asked for is not waited for by anybody then.
const AWAY: u32 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Events {
    /// What is not of the protocol is a comment.
    #[default]
    Plain,
    /// It is a named event with data.
    Typed,
}

impl Mcp {
    /// A new session, or another stream of the one that the client names.
    pub fn sse(&self, principal: Principal, headers: &HeaderMap, events: Events) -> Reply {
        let session = match headers.get(SESSION_ID) {
            Some(id) => id.to_str().ok().and_then(|id| self.sse_session(id, &principal)),
            None if self.0.sessions.is_full() => {
                return reply::full(FULL);
            }
            None => Some(self.begin_sse(principal)),
        };
        let Some(session) = session else { return reply::no_such_session() };
        let Link::Sse(line) = &session.link else { return reply::no_such_session() };
        let stream = Stream {
            hold: session.hold(),
            reading: line.outbox.read(),
            events,
            heartbeat: self.0.settings.heartbeat,
            said: Said::Nothing,
        };
        let frames = stream::unfold(stream, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(bytes)), stream))
        });
        let mut reply = reply::stream(StreamBody::new(frames).boxed_unsync());
        if let Ok(id) = HeaderValue::from_str(&session.id) {
            reply.headers_mut().insert(SESSION_ID, id);
        }
        reply
    }

    /// What the client says in its session.
    pub async fn message(&self, principal: &Principal, session: &str, body: &[u8]) -> Reply {
        let Some(session) = self.sse_session(session, principal) else { return reply::no_such_session() };
        let Link::Sse(line) = &session.link else { return reply::no_such_session() };
        let _hold = session.hold();
        if let Err(none) = Outline::of(body) {
            return none.refuse();
        }
        let mut message: ClientJsonRpcMessage = match serde_json::from_slice(body) {
            Ok(message) => message,
            Err(error) => return NoMessage::of(&error).refuse(),
        };
        let status = match &mut message {
            // Its answer would only wait beside the others.
            ClientJsonRpcMessage::Request(_) if line.outbox.is_full() => {
                return reply::full("This session has answers that nobody reads; read them first.");
            }
            ClientJsonRpcMessage::Request(request) => {
                let extensions = request.request.extensions_mut();
                extensions.insert(principal.clone());
                extensions.insert(Arc::clone(&session));
                StatusCode::ACCEPTED
            }
            ClientJsonRpcMessage::Notification(notification) => {
                notification.notification.extensions_mut().insert(principal.clone());
                StatusCode::NO_CONTENT
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => StatusCode::NO_CONTENT,
        };
        match line.say(message).await {
            Ok(()) => reply::empty(status),
            Err(Unsaid::Over) => reply::no_such_session(),
            Err(Unsaid::Full) => {
                reply::full("This session has more under way than it can take; wait for answers first.")
            }
        }
    }

    pub async fn end_sse(&self, principal: &Principal, session: &str) -> Reply {
        match self.sse_session(session, principal) {
            Some(session) => {
                self.end(&session, "the client ended it");
                reply::empty(StatusCode::NO_CONTENT)
            }
            None => reply::no_such_session(),
        }
    }

    fn sse_session(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        self.0.sessions.find(id, principal).filter(|session| matches!(session.link, Link::Sse(_)))
    }

    fn begin_sse(&self, principal: Principal) -> Arc<Session> {
        let (line, transport) = Line::new();
        let outbox = Arc::clone(&line.outbox);
        let id = uuid::Uuid::new_v4().to_string();
        let session = self.0.sessions.begin(id.into(), principal, Link::Sse(line));
        let (mcp, kept) = (self.clone(), Arc::clone(&session));
        self.0.tasks.spawn(async move {
            let over = kept.over.clone();
            let why = tokio::select! {
                why = mcp.0.handler.fresh().serve_sse(transport, &outbox) => why,
                () = over.cancelled() => return,
            };
            mcp.end(&kept, why);
        });
        session
    }
}

impl crate::Served {
    /// Until one side is done. Says why.
    async fn serve_sse(self, transport: ServerEnd, outbox: &Outbox) -> &'static str {
        let Ok(greeted) = timeout(GREETING, self.serve(transport)).await else {
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
                    why = silence(&peer, outbox) => why,
                    () = outbox.over.cancelled() => match outbox.is_stuck() {
                        true => "the client does not read what it is sent",
                        false => "the session's service has ended",
                    },
                }
            }
            Err(error) => {
                tracing::debug!(%error, "an MCP client did not get as far as a session");
                "it was not initialized as the protocol says"
            }
        }
    }
}

/// Returns when the client has not answered for long though a stream to it is open, or when none was for long.
async fn silence(peer: &Peer<RoleServer>, outbox: &Outbox) -> &'static str {
    let (mut missed, mut away) = (0, 0);
    loop {
        tokio::time::sleep(PING).await;
        if !outbox.has_reader() {
            (missed, away) = (0, away + 1);
            if away > AWAY {
                return "no stream of it was open for long";
            }
            continue;
        }
        away = 0;
        let ping = ServerRequest::PingRequest(PingRequest::default());
        let options = PeerRequestOptions::with_timeout(PING);
        let answered = match peer.send_request_with_option(ping, options).await {
            // An error is an answer too.
            Ok(handle) => !matches!(handle.await_response().await, Err(rmcp::ServiceError::Timeout { .. })),
            Err(_) => false,
        };
        missed = if answered { 0 } else { missed + 1 };
        if missed >= MISSED_PINGS {
            return "the client did not answer to pings";
        }
    }
}

/// One open stream.
struct Stream {
    hold: Hold,
    reading: Reading,
    events: Events,
    heartbeat: Duration,
    said: Said,
}

enum Said {
    Nothing,
    Hello,
    Goodbye,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        match self.said {
            Said::Nothing => {
                self.said = Said::Hello;
                return Some(self.hello());
            }
            Said::Hello => {}
            Said::Goodbye => return None,
        }
        let beat = Instant::now() + self.heartbeat;
        tokio::select! {
            // What was said last is read before the stream ends.
            biased;
            Some(event) = self.reading.next() => {
                let mut bytes = b"event: message\ndata: ".to_vec();
                if let Err(error) = serde_json::to_writer(&mut bytes, &event.message) {
                    tracing::error!(%error, "a message could not be written");
                    return None;
                }
                bytes.extend_from_slice(b"\n\n");
                Some(bytes.into())
            }
            () = sleep_until(beat) => Some(self.aside("ping")),
            () = self.hold.session().over.cancelled() => {
                let goodbye = format!(": closed, {}\n\n", self.hold.session().why());
                self.said = Said::Goodbye;
                Some(goodbye.into())
            }
        }
    }

    fn hello(&self) -> Bytes {
        let endpoint = format!("event: endpoint\ndata: /message?sessionId={}\n\n", self.hold.session().id);
        [endpoint.as_bytes(), &self.aside("connected")].concat().into()
    }

    fn aside(&self, kind: &str) -> Bytes {
        match self.events {
            Events::Plain => format!(": {{\"type\":\"{kind}\"}}\n\n").into(),
            Events::Typed => format!("event: {kind}\ndata: {{\"type\":\"{kind}\"}}\n\n").into(),
        }
    }
}

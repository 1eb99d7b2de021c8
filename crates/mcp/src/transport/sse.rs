//! `/sse` and `/message`: the transport of the protocol's first revision. What the server says goes out on a stream, what the
//! client says comes in by POST, and the session ties them together.
//!
//! A session may have several streams: each message goes out on the newest that is open, and waits where none is. The dialect
//! is the one that every known client takes: `endpoint` first, JSON-RPC as `message`, all else as comments.

use super::{
    message::{NoMessage, Outline},
    reply::{self, FULL, Reply, SESSION_ID},
    sessions::{Hold, Link, Session},
};
use crate::Mcp;
use bytes::Bytes;
use domain::owner::Principal;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rmcp::{
    RoleServer, ServiceExt as _,
    model::{ClientJsonRpcMessage, GetExtensions as _, PingRequest, ServerJsonRpcMessage, ServerRequest},
    service::{Peer, PeerRequestOptions},
    transport::Transport,
};
use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// What the client said and nobody has read yet.
const INBOX: usize = 32;
/// What waits for a stream that can take it. Beyond that, the sender waits.
const OUTBOX: usize = 256;
const OUTBOX_BYTES: usize = 8 * 1024 * 1024;
/// How long one side waits for the other to make room.
const PATIENCE: Duration = Duration::from_secs(30);
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

/// What of a session its POSTs and its streams share.
pub struct Line {
    inbox: mpsc::Sender<ClientJsonRpcMessage>,
    outbox: Arc<Outbox>,
}

#[derive(Default)]
struct Outbox {
    waiting: Mutex<Waiting>,
    /// Something was put in, taken out, or a stream came or went.
    moved: Notify,
    /// Cancelled when something could not be sent for long: what would come after it makes no sense without it.
    stuck: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
    /// Something had no room, and nothing was taken out since.
    is_full: bool,
    /// The newest is the last.
    streams: Vec<u64>,
    next_stream: u64,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The message is given back if there is no room.
    fn put(&self, message: Bytes) -> Result<(), Bytes> {
        let mut waiting = self.lock();
        let fits = waiting.messages.len() < OUTBOX && waiting.bytes + message.len() <= OUTBOX_BYTES;
        // One that would never fit goes alone.
        if !fits && !waiting.messages.is_empty() {
            waiting.is_full = true;
            return Err(message);
        }
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        drop(waiting);
        self.moved.notify_waiters();
        Ok(())
    }

    fn take(&self, stream: u64) -> Option<Bytes> {
        let mut waiting = self.lock();
        if waiting.streams.last() != Some(&stream) {
            return None;
        }
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        waiting.is_full = false;
        drop(waiting);
        self.moved.notify_waiters();
        Some(message)
    }

    fn attach(&self) -> u64 {
        let mut waiting = self.lock();
        let stream = waiting.next_stream;
        waiting.next_stream += 1;
        waiting.streams.push(stream);
        stream
    }

    fn detach(&self, stream: u64) {
        self.lock().streams.retain(|other| *other != stream);
        self.moved.notify_waiters();
    }

    fn is_full(&self) -> bool {
        self.lock().is_full
    }

    fn has_reader(&self) -> bool {
        !self.lock().streams.is_empty()
    }
}

/// The server's end, for the library.
struct ServerEnd {
    inbox: mpsc::Receiver<ClientJsonRpcMessage>,
    outbox: Arc<Outbox>,
}

#[derive(Debug)]
struct Stuck;

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the client does not read what it is sent")
    }
}

impl std::error::Error for Stuck {}

impl Transport<RoleServer> for ServerEnd {
    type Error = Stuck;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Stuck>> + Send + 'static {
        let outbox = Arc::clone(&self.outbox);
        // Where there is room it is taken now: messages go out in the order in which they were sent.
        let bytes = serde_json::to_vec(&message).map(Bytes::from).map_err(|_| Stuck);
        let put = bytes.map(|bytes| outbox.put(bytes));
        async move {
            let mut unsent = match put? {
                Ok(()) => return Ok(()),
                Err(message) => message,
            };
            let room = async {
                loop {
                    let moved = outbox.moved.notified();
                    match outbox.put(unsent) {
                        Ok(()) => return,
                        Err(message) => unsent = message,
                    }
                    moved.await;
                }
            };
            timeout(PATIENCE, room).await.map_err(|_| {
                outbox.stuck.cancel();
                Stuck
            })
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), Stuck> {
        self.inbox.close();
        Ok(())
    }
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
        let number = line.outbox.attach();
        let stream = Stream {
            hold: session.hold(),
            outbox: Arc::clone(&line.outbox),
            number,
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
        match line.inbox.send_timeout(message, PATIENCE).await {
            Ok(()) => reply::empty(status),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => reply::no_such_session(),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                reply::full("This session has more under way than it can take; wait for answers first.")
            }
        }
    }

    pub async fn end_sse(&self, principal: &Principal, session: &str) -> Reply {
        match self.sse_session(session, principal) {
            Some(session) => {
                self.end(&session, "the client ended it").await;
                reply::empty(StatusCode::NO_CONTENT)
            }
            None => reply::no_such_session(),
        }
    }

    fn sse_session(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        self.0.sessions.find(id, principal).filter(|session| matches!(session.link, Link::Sse(_)))
    }

    fn begin_sse(&self, principal: Principal) -> Arc<Session> {
        let (inbox, messages) = mpsc::channel(INBOX);
        let outbox = Arc::new(Outbox::default());
        let line = Line { inbox, outbox: Arc::clone(&outbox) };
        let id = uuid::Uuid::new_v4().to_string();
        let session = self.0.sessions.begin(id.into(), principal, Link::Sse(line));
        let transport = ServerEnd { inbox: messages, outbox: Arc::clone(&outbox) };
        let (mcp, kept) = (self.clone(), Arc::clone(&session));
        self.0.tasks.spawn(async move {
            let over = kept.over.clone();
            let why = tokio::select! {
                why = mcp.0.handler.fresh().serve_sse(transport, &outbox) => why,
                () = over.cancelled() => return,
            };
            mcp.end(&kept, why).await;
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
                    () = outbox.stuck.cancelled() => "the client does not read what it is sent",
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
    outbox: Arc<Outbox>,
    number: u64,
    events: Events,
    heartbeat: Duration,
    said: Said,
}

enum Said {
    Nothing,
    Hello,
    Goodbye,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.outbox.detach(self.number);
    }
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
        let session = self.hold.session();
        loop {
            let moved = self.outbox.moved.notified();
            tokio::pin!(moved);
            // Registered before looking: what is put in between wakes us.
            moved.as_mut().enable();
            if let Some(message) = self.outbox.take(self.number) {
                let mut bytes = Vec::with_capacity(message.len() + 32);
                bytes.extend_from_slice(b"event: message\ndata: ");
                bytes.extend_from_slice(&message);
                bytes.extend_from_slice(b"\n\n");
                return Some(bytes.into());
            }
            tokio::select! {
                () = moved => {}
                () = sleep_until(beat) => return Some(self.aside("ping")),
                () = session.over.cancelled() => {
                    let goodbye = format!(": closed, {}\n\n", session.why());
                    self.said = Said::Goodbye;
                    return Some(goodbye.into());
                }
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

//! `/mcp`: streamable HTTP for every revision. Two services of the library stand behind it: one keeps sessions, for the
//! revisions that have them; one answers each request by itself and, where it can, without a stream, for those that do not.

use super::{
    message::{NoMessage, Outline, is_json},
    patience::patiently,
    reply::{self, Reply, SESSION_ID},
    sessions::{Link, Session},
};
use crate::{Mcp, Served, handler::Handler};
use bytes::Bytes;
use domain::owner::Principal;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::{SessionManager as _, local::LocalSessionManager, never::NeverSessionManager},
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Messages that a session's parts hold for one another.
const CHANNEL: usize = 4;

pub struct Streamable {
    manager: Arc<LocalSessionManager>,
    legacy: StreamableHttpService<Served, LocalSessionManager>,
    modern: StreamableHttpService<Served, NeverSessionManager>,
}

impl Streamable {
    pub fn new(handler: &Handler, settings: &crate::Settings, over: &CancellationToken) -> Self {
        let mut manager = LocalSessionManager::default();
        // It would end sessions with an open stream; ours know better.
        manager.session_config.keep_alive = None;
        manager.session_config.channel_capacity = CHANNEL;
        let manager = Arc::new(manager);
        let mut config = StreamableHttpServerConfig::default()
            // Host and Origin have been looked at, by rules that hold for the whole server.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(settings.heartbeat))
            .with_cancellation_token(over.clone());
        config.max_request_body_bytes = settings.max_body_bytes;
        let stateless = config.clone().with_legacy_session_mode(false).with_json_response(true);
        let (for_sessions, for_requests) = (handler.clone(), handler.clone());
        Self {
            legacy: StreamableHttpService::new(move || Ok(for_sessions.fresh()), Arc::clone(&manager), config),
            modern: StreamableHttpService::new(move || Ok(for_requests.fresh()), Arc::default(), stateless),
            manager,
        }
    }

    /// What is left of it in the transport.
    pub async fn forget(&self, session: &Session) {
        if let Err(error) = self.manager.close_session(&Arc::clone(&session.id)).await {
            tracing::debug!(%error, "a session had ended already");
        }
    }
}

impl Mcp {
    /// `request` carries its principal in its extensions too, for the handler.
    pub async fn streamable(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        match *request.method() {
            Method::POST => self.post(principal, request).await,
            Method::GET => self.within(&principal, request).await,
            Method::DELETE => match self.session_of(&principal, request.headers()) {
                Ok(Some(session)) => {
                    self.end(&session, "the client ended it").await;
                    reply::empty(StatusCode::NO_CONTENT)
                }
                Ok(None) | Err(NoSuchSession) => reply::no_such_session(),
            },
            _ => reply::not_allowed("GET, POST, DELETE", "This path takes POST, GET and DELETE."),
        }
    }

    async fn post(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        if !is_json(request.headers()) {
            return self.within(&principal, request).await;
        }
        let outline = match Outline::of(request.body()) {
            Ok(outline) => outline,
            Err(none) => return none.refuse(),
        };
        if outline.is_modern(request.headers()) {
            // Without a session there is nothing that it could tell anybody; some clients send it all the same, and
            // without the headers that requests have.
            if outline.is_notification() {
                return reply::empty(StatusCode::ACCEPTED);
            }
            return self.alone(principal, request).await;
        }
        let begins = outline.initializes() && !request.headers().contains_key(SESSION_ID);
        match begins {
            true => self.begin(principal, request).await,
            false => self.within(&principal, request).await,
        }
    }

    /// A request that needs no session.
    async fn alone(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        let service = self.0.streamable.modern.clone();
        let answer = async move { service.handle(request.map(Full::new)).await.map(|body| body.boxed_unsync()) };
        let reply = readable(patiently(answer, self.0.settings.heartbeat).await);
        if !reply::is_stream(&reply) {
            return reply;
        }
        let id = uuid::Uuid::new_v4().to_string();
        let stream = self.0.sessions.begin(id.into(), principal, Link::Stream);
        let (hold, mcp) = (stream.hold(), self.clone());
        let guard = EndOnDrop { mcp, session: stream };
        hold.over(reply.map(move |body| guard.keep(body)))
    }

    async fn begin(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        if self.0.sessions.is_full() {
            return reply::full("There are as many sessions as this server keeps; end some, or come back later.");
        }
        let reply = self.to_sessions(request).await;
        let Some(id) = reply.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) else { return reply };
        let session = self.0.sessions.begin(id.into(), principal, Link::Streamable);
        session.hold().over(reply)
    }

    /// Whatever belongs to a session that there is, or should be.
    async fn within(&self, principal: &Principal, request: Request<Bytes>) -> Reply {
        match self.session_of(principal, request.headers()) {
            Ok(Some(session)) => {
                let hold = session.hold();
                hold.over(self.to_sessions(request).await)
            }
            // The library says what is missing.
            Ok(None) => self.to_sessions(request).await,
            Err(NoSuchSession) => reply::no_such_session(),
        }
    }

    async fn to_sessions(&self, request: Request<Bytes>) -> Reply {
        #[cfg(feature = "conformance")]
        let request = crate::conformance::lend(request, &self.0.streamable.manager);
        readable(self.0.streamable.legacy.handle(request.map(Full::new)).await.map(|body| body.boxed_unsync()))
    }

    /// `None` where no session was named.
    fn session_of(&self, principal: &Principal, headers: &HeaderMap) -> Result<Option<Arc<Session>>, NoSuchSession> {
        let Some(id) = headers.get(SESSION_ID) else { return Ok(None) };
        let found = id.to_str().ok().and_then(|id| self.0.sessions.find(id, principal));
        let found = found.filter(|session| matches!(session.link, Link::Streamable));
        found.map(Some).ok_or(NoSuchSession)
    }
}

struct NoSuchSession;

/// The library calls a message that it cannot read an unsupported media type.
fn readable(reply: Reply) -> Reply {
    match reply.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE if !reply.headers().contains_key(http::header::CONTENT_TYPE) => {
            NoMessage::Unreadable("it is no message of the protocol, or nested too deeply".into()).refuse()
        }
        _ => reply,
    }
}

/// Ends a stream without a session when nobody reads it any more.
struct EndOnDrop {
    mcp: Mcp,
    session: Arc<Session>,
}

impl EndOnDrop {
    fn keep(self, body: reply::Body) -> reply::Body {
        body.map_frame(move |frame| {
            let _kept = &self;
            frame
        })
        .boxed_unsync()
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.mcp.0.sessions.end(&self.session, "the client left");
    }
}

//! `/mcp`: streamable HTTP for every revision. Two services of the library stand behind it: one keeps sessions, for the
//! revisions that have them; one answers each request by itself and, where it can, without a stream, for those that do not.

use super::{
    direct::{Question, Strangers},
    line::Lines,
    message::{NoMessage, Outline, is_json},
    patience::patiently,
    reply::{self, FULL, Reply, SESSION_ID},
    sessions::{Link, Session},
};
use crate::{Mcp, Served, handler::Handler};
use bytes::Bytes;
use domain::owner::Principal;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub struct Streamable {
    pub lines: Arc<Lines>,
    legacy: StreamableHttpService<Served, Lines>,
    modern: StreamableHttpService<Served, NeverSessionManager>,
    pub(super) strangers: Strangers,
}

impl Streamable {
    pub fn new(handler: &Handler, settings: &crate::Settings, over: &CancellationToken) -> Self {
        let lines = Arc::<Lines>::default();
        let mut config = StreamableHttpServerConfig::default()
            // Host and Origin have been looked at, by rules that hold for the whole server.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(settings.heartbeat))
            // Our streams say by themselves from which event they can be resumed.
            .with_sse_retry(None)
            .with_cancellation_token(over.clone());
        config.max_request_body_bytes = settings.max_body_bytes;
        let stateless = config.clone().with_legacy_session_mode(false).with_json_response(true);
        let (for_sessions, for_requests) = (handler.clone(), handler.clone());
        Self {
            legacy: StreamableHttpService::new(move || Ok(for_sessions.fresh()), Arc::clone(&lines), config),
            modern: StreamableHttpService::new(move || Ok(for_requests.fresh()), Arc::default(), stateless),
            lines,
            strangers: Strangers::new(handler.fresh(), over),
        }
    }
}

impl Mcp {
    /// `request` carries its principal in its extensions too, for the handler.
    pub async fn streamable(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        match *request.method() {
            Method::POST => self.post(principal, request).await,
            Method::GET => self.within(&principal, None, request).await,
            Method::DELETE => match self.session_of(&principal, request.headers()) {
                Ok(Some(session)) => {
                    self.end(&session, "the client ended it");
                    reply::empty(StatusCode::NO_CONTENT)
                }
                Ok(None) | Err(NoSuchSession) => reply::no_such_session(),
            },
            _ => reply::not_allowed("GET, POST, DELETE", "This path takes POST, GET and DELETE."),
        }
    }

    async fn post(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        if !is_json(request.headers()) {
            let why = "Send JSON with the header `Content-Type: application/json`.";
            return reply::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32700, why, &Value::Null);
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
            if outline.listens() && self.0.sessions.is_full() {
                return reply::full(FULL);
            }
            let question = Question::alone(&outline, request.headers(), request.body());
            return self.alone(principal, question, request).await;
        }
        if !request.headers().contains_key(SESSION_ID) && outline.initializes() {
            return self.begin(principal, request).await;
        }
        let question = Question::in_session(&outline, request.headers(), request.body());
        self.within(&principal, question, request).await
    }

    /// A request that needs no session.
    async fn alone(&self, principal: Principal, question: Option<Question>, request: Request<Bytes>) -> Reply {
        let reply = match question {
            Some(question) => self.answer_alone(question, request.into_parts().0).await,
            None => self.to_strangers(request).await,
        };
        if !reply::is_stream(&reply) {
            return reply;
        }
        let id = uuid::Uuid::new_v4().to_string();
        let stream = self.0.sessions.begin(id.into(), principal, Link::Stream);
        let (hold, mcp) = (stream.hold(), self.clone());
        let guard = EndOnDrop { mcp, session: stream };
        hold.over(reply.map(move |body| guard.keep(body)))
    }

    async fn to_strangers(&self, request: Request<Bytes>) -> Reply {
        let (service, sent) = (self.0.streamable.modern.clone(), request.body().clone());
        let answer = async move { service.handle(request.map(Full::new)).await.map(|body| body.boxed_unsync()) };
        readable(patiently(answer, self.0.settings.heartbeat).await, &sent)
    }

    async fn begin(&self, principal: Principal, request: Request<Bytes>) -> Reply {
        if self.0.sessions.is_full() {
            return reply::full(FULL);
        }
        let mcp = self.clone();
        // Apart from whoever asks: one who hangs up half-way must not leave a session that nobody knows of.
        let begun = self.0.tasks.spawn(async move {
            let reply = mcp.to_sessions(request).await;
            let Some(id) = reply.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) else { return reply };
            let session = mcp.0.sessions.begin(id.into(), principal, Link::Streamable);
            session.hold().over(reply)
        });
        begun.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a session could not begin");
            let why = "The session could not begin; try again.";
            reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, -32603, why, &Value::Null)
        })
    }

    /// Whatever belongs to a session that there is, or should be.
    async fn within(&self, principal: &Principal, question: Option<Question>, mut request: Request<Bytes>) -> Reply {
        match self.session_of(principal, request.headers()) {
            Ok(Some(session)) => {
                request.extensions_mut().insert(Arc::clone(&session));
                if let (Some(question), Some(desk)) = (question, session.desk.get().filter(|desk| desk.is_open())) {
                    return self.answer_in_session(question, &session, desk, request.into_parts().0).await;
                }
                if self.repeats(&session, request.body()) {
                    let why = "A request with this id is under way in this session.";
                    return reply::refusal(StatusCode::BAD_REQUEST, -32600, why, &Value::Null);
                }
                let hold = session.hold();
                let reply = self.to_sessions(request).await;
                if reply.status() == StatusCode::NOT_FOUND {
                    self.end(&session, "its service has ended");
                }
                hold.over(reply)
            }
            // The library says what is missing.
            Ok(None) => self.to_sessions(request).await,
            Err(NoSuchSession) => reply::no_such_session(),
        }
    }

    /// Two with the same id could not be told apart, and one of them would never end.
    fn repeats(&self, session: &Session, body: &[u8]) -> bool {
        let id = Outline::of(body).ok().filter(|outline| outline.method().is_some()).and_then(|it| it.request_id());
        let line = self.0.streamable.lines.get(&session.id);
        id.zip(line).is_some_and(|(id, line)| line.outbox.is_under_way(&id))
    }

    async fn to_sessions(&self, request: Request<Bytes>) -> Reply {
        #[cfg(feature = "conformance")]
        let request = crate::conformance::lend(request, &self.0.streamable.lines);
        let sent = request.body().clone();
        let reply = self.0.streamable.legacy.handle(request.map(Full::new)).await;
        readable(reply.map(|body| body.boxed_unsync()), &sent)
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
fn readable(reply: Reply, sent: &[u8]) -> Reply {
    match reply.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => match serde_json::from_slice::<Value>(sent) {
            Ok(_) => NoMessage::Other.refuse(),
            Err(error) => NoMessage::of(&error).refuse(),
        },
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

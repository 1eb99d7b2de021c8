//! `/mcp`: streamable HTTP for every revision. It uses two rmcp services: one with sessions, for the revisions that
//! have them, and a stateless one for the others, which answers without a stream where possible.

use super::{
    channel::SessionChannels,
    direct::{DirectRequest, StatelessPeer},
    message::{InvalidMessage, MessageOutline, is_json},
    response::{self, McpResponse, SESSION_ID, TOO_MANY_SESSIONS},
    sessions::{McpSession, SessionTransport},
    slow_response::stream_if_slow,
};
use crate::{McpService, handler::McpHandler, session_handler::SessionHandler};
use bytes::Bytes;
use domain::actor::Actor;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// rmcp's service. A stateless one has the same type, although it never uses its session manager: this code is large
/// and should be compiled once.
pub type RmcpHttpService = StreamableHttpService<SessionHandler, SessionChannels>;

pub struct StreamableHttp {
    pub channels: Arc<SessionChannels>,
    legacy: RmcpHttpService,
    modern: RmcpHttpService,
    pub(super) stateless_peer: StatelessPeer,
}

impl StreamableHttp {
    pub fn new(handler: &McpHandler, settings: &crate::McpServerSettings, over: &CancellationToken) -> Self {
        let channels = Arc::<SessionChannels>::default();
        let mut config = StreamableHttpServerConfig::default()
            // The server has already checked Host and Origin.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_sse_keep_alive(Some(settings.heartbeat))
            // Our streams send their own resume event.
            .with_sse_retry(None)
            .with_cancellation_token(over.clone());
        config.max_request_body_bytes = settings.max_body_bytes;
        let stateless = config.clone().with_legacy_session_mode(false).with_json_response(true);
        let (for_sessions, for_requests) = (handler.clone(), handler.clone());
        Self {
            legacy: StreamableHttpService::new(
                move || Ok(for_sessions.for_new_session()),
                Arc::clone(&channels),
                config,
            ),
            modern: StreamableHttpService::new(move || Ok(for_requests.for_new_session()), Arc::default(), stateless),
            channels,
            stateless_peer: StatelessPeer::new(handler.for_new_session(), over),
        }
    }
}

impl McpService {
    /// The extensions of `request` must contain the actor too, for the handler. The future is boxed so that its code
    /// is compiled in this crate, not in each caller's.
    pub fn streamable(&self, actor: Actor, request: Request<Bytes>) -> BoxFuture<'_, McpResponse> {
        Box::pin(async move {
            match *request.method() {
                Method::POST => self.post(actor, request).await,
                Method::GET => self.handle_in_session(&actor, None, request).await,
                Method::DELETE => self.delete(&actor, request.headers()),
                _ => response::method_not_allowed("GET, POST, DELETE", "This endpoint supports POST, GET and DELETE."),
            }
        })
    }

    fn delete(&self, actor: &Actor, headers: &HeaderMap) -> McpResponse {
        match self.session_of(actor, headers) {
            Ok(Some(session)) => {
                self.end(&session, "the client ended it");
                response::empty(StatusCode::NO_CONTENT)
            }
            Ok(None) | Err(UnknownSession) => response::no_such_session(),
        }
    }

    async fn post(&self, actor: Actor, request: Request<Bytes>) -> McpResponse {
        if !is_json(request.headers()) {
            let why = "Send JSON with the header `Content-Type: application/json`.";
            return response::json_rpc_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32700, why, &Value::Null);
        }
        let outline = match MessageOutline::of(request.body()) {
            Ok(outline) => outline,
            Err(none) => return none.to_response(),
        };
        if outline.is_modern(request.headers()) {
            // A notification without a session has no effect. Some clients send it anyway, without the required
            // headers.
            if outline.is_notification() {
                return response::empty(StatusCode::ACCEPTED);
            }
            if outline.is_listen() && !self.admit(&actor) {
                return response::too_many(TOO_MANY_SESSIONS);
            }
            let direct = DirectRequest::stateless(&outline, request.headers(), request.body(), &self.0.handler);
            return self.handle_stateless(actor, direct, request).await;
        }
        if !request.headers().contains_key(SESSION_ID) && outline.is_initialize() {
            return self.begin_session(actor, request).await;
        }
        let direct = DirectRequest::in_session(&outline, request.headers(), request.body(), &self.0.handler);
        self.handle_in_session(&actor, direct, request).await
    }

    /// Handles a request that needs no session.
    async fn handle_stateless(
        &self,
        actor: Actor,
        direct: Option<DirectRequest>,
        request: Request<Bytes>,
    ) -> McpResponse {
        let response = match direct {
            Some(direct) => self.answer_stateless(direct, request.into_parts().0).await,
            None => self.send_to_stateless_service(request).await,
        };
        if !response::is_stream(&response) {
            return response;
        }
        let id = uuid::Uuid::new_v4().to_string();
        let stream = self.0.sessions.create(id.into(), actor, SessionTransport::StatelessStream);
        let (hold, mcp) = (stream.hold(), self.clone());
        let guard = EndStreamOnDrop { mcp, session: stream };
        hold.wrap(response.map(move |body| guard.keep(body)))
    }

    async fn send_to_stateless_service(&self, request: Request<Bytes>) -> McpResponse {
        let (service, sent) = (self.0.streamable.modern.clone(), request.body().clone());
        let answer = async move { service.handle(request.map(Full::new)).await.map(|body| body.boxed_unsync()) };
        fix_unreadable_status(stream_if_slow(answer, self.0.settings.heartbeat).await, &sent)
    }

    async fn begin_session(&self, actor: Actor, request: Request<Bytes>) -> McpResponse {
        if !self.admit(&actor) {
            return response::too_many(TOO_MANY_SESSIONS);
        }
        let mcp = self.clone();
        // In its own task: a client that disconnects early must not leave an unregistered session.
        let begun = self.0.tasks.spawn(async move {
            let response = mcp.send_to_session_service(request).await;
            let Some(id) = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) else { return response };
            let session = mcp.0.sessions.create(id.into(), actor, SessionTransport::Streamable);
            session.hold().wrap(response)
        });
        begun.await.unwrap_or_else(|error| {
            tracing::error!(%error, "could not begin an MCP session");
            let why = "The session could not be created; try again.";
            response::json_rpc_error(StatusCode::INTERNAL_SERVER_ERROR, -32603, why, &Value::Null)
        })
    }

    /// Handles a request that belongs to a session.
    async fn handle_in_session(
        &self,
        actor: &Actor,
        direct: Option<DirectRequest>,
        mut request: Request<Bytes>,
    ) -> McpResponse {
        match self.session_of(actor, request.headers()) {
            Ok(Some(session)) => {
                request.extensions_mut().insert(Arc::clone(&session));
                if let (Some(direct), Some(peer)) = (direct, session.session_peer.get().filter(|peer| peer.is_open())) {
                    return self.answer_in_session(direct, &session, peer, request.into_parts().0).await;
                }
                if self.is_duplicate(&session, request.body()) {
                    let why = "A request with this id is already in progress in this session.";
                    return response::json_rpc_error(StatusCode::BAD_REQUEST, -32600, why, &Value::Null);
                }
                let hold = session.hold();
                let response = self.send_to_session_service(request).await;
                if response.status() == StatusCode::NOT_FOUND {
                    self.end(&session, "its service has ended");
                }
                hold.wrap(response)
            }
            // rmcp reports what is missing.
            Ok(None) => self.send_to_session_service(request).await,
            Err(UnknownSession) => response::no_such_session(),
        }
    }

    /// Returns whether a request with this id is open: two could not be told apart, and one would never end.
    fn is_duplicate(&self, session: &McpSession, body: &[u8]) -> bool {
        let id =
            MessageOutline::of(body).ok().filter(|outline| outline.method().is_some()).and_then(|it| it.request_id());
        let channel = self.0.streamable.channels.get(&session.id);
        id.zip(channel).is_some_and(|(id, channel)| channel.outbox.has_open_call(&id))
    }

    async fn send_to_session_service(&self, request: Request<Bytes>) -> McpResponse {
        #[cfg(feature = "test-hooks")]
        let request = crate::conformance::lend_channels(request, &self.0.streamable.channels);
        let sent = request.body().clone();
        let response = self.0.streamable.legacy.handle(request.map(Full::new)).await;
        fix_unreadable_status(response.map(|body| body.boxed_unsync()), &sent)
    }

    /// Returns `None` if the headers name no session.
    fn session_of(&self, actor: &Actor, headers: &HeaderMap) -> Result<Option<Arc<McpSession>>, UnknownSession> {
        let Some(id) = headers.get(SESSION_ID) else { return Ok(None) };
        let found = id.to_str().ok().and_then(|id| self.0.sessions.find(id, actor));
        let found = found.filter(|session| matches!(session.transport, SessionTransport::Streamable));
        found.map(Some).ok_or(UnknownSession)
    }
}

struct UnknownSession;

/// rmcp answers a message that it cannot parse with "unsupported media type".
fn fix_unreadable_status(response: McpResponse, sent: &[u8]) -> McpResponse {
    match response.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => match serde_json::from_slice::<Value>(sent) {
            Ok(_) => InvalidMessage::NotJsonRpc.to_response(),
            Err(error) => InvalidMessage::of(&error).to_response(),
        },
        _ => response,
    }
}

/// Ends a stream without a session when the client disconnects.
struct EndStreamOnDrop {
    mcp: McpService,
    session: Arc<McpSession>,
}

impl EndStreamOnDrop {
    fn keep(self, body: response::McpResponseBody) -> response::McpResponseBody {
        body.map_frame(move |frame| {
            let _kept = &self;
            frame
        })
        .boxed_unsync()
    }
}

impl Drop for EndStreamOnDrop {
    fn drop(&mut self) {
        self.mcp.0.sessions.end(&self.session, "the client left");
    }
}

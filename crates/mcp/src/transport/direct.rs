//! Answers requests directly on their HTTP task, as plain JSON, without a service loop or a stream: requests that do
//! not wait and send nothing before their answer. They go to the same handler with the same session limits, so the
//! answer is the same as on the usual path.
//!
//! Only valid requests take this path. All others go to rmcp, which returns the proper errors.

use super::{
    channel::ServerTransport,
    message::MessageOutline,
    response::{self, McpResponse},
    sessions::McpSession,
    slow_response::stream_if_slow,
};
use crate::{McpService, handler::McpHandler, session_handler::SessionHandler};
use http::{HeaderMap, HeaderName, header, request::Parts};
use rmcp::{
    ErrorData, RoleServer, Service as _,
    model::{
        ClientCapabilities, ClientRequest, GetExtensions as _, GetMeta as _, Implementation, InitializeRequestParams,
        ProtocolVersion, RequestId, ServerJsonRpcMessage,
    },
    service::{NotificationContext, Peer, RequestContext, RunningService, serve_directly_with_ct},
};
use serde::de::DeserializeOwned;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A store that takes longer is broken, and the client should know.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const NAME_HEADER: HeaderName = HeaderName::from_static("mcp-name");
/// Prefix of a name that cannot be written in a header unchanged.
const ENCODED_PREFIX: &str = "=?base64?";

pub struct DirectRequest {
    id: RequestId,
    request: ClientRequest,
}

impl DirectRequest {
    /// Reads a request in a session.
    pub fn in_session(
        outline: &MessageOutline<'_>,
        headers: &HeaderMap,
        body: &[u8],
        handler: &McpHandler,
    ) -> Option<Self> {
        let is_ours = |version: &ProtocolVersion| version.has_initialize();
        let known = || ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| is_ours(version));
        let is_known = headers.get(VERSION_HEADER).is_none_or(|value| known().any(|version| value == version.as_str()));
        let request = if is_known { Self::read(outline, headers, body, handler)? } else { return None };
        // A request that states its own version belongs to a revision without sessions.
        request.request.get_meta().protocol_version().is_none().then_some(request)
    }

    /// Reads a request without a session: it carries all information itself, and its headers repeat it.
    pub fn stateless(
        outline: &MessageOutline<'_>,
        headers: &HeaderMap,
        body: &[u8],
        handler: &McpHandler,
    ) -> Option<Self> {
        let modern = &ProtocolVersion::V_2026_07_28;
        if headers.get(VERSION_HEADER)? != modern.as_str()
            || single_header(headers, &METHOD_HEADER)? != outline.method()?
        {
            return None;
        }
        let request = Self::read(outline, headers, body, handler)?;
        // This revision has no ping.
        if matches!(request.request, ClientRequest::PingRequest(_)) {
            return None;
        }
        if let Some(name) = request.named_target() {
            let header = single_header(headers, &NAME_HEADER)?;
            if header != name || header.starts_with(ENCODED_PREFIX) {
                return None;
            }
        }
        let meta = request.request.get_meta();
        let is_complete = meta.protocol_version()? == *modern && meta.missing_required_keys(modern).is_empty();
        is_complete.then_some(request)
    }

    fn read(outline: &MessageOutline<'_>, headers: &HeaderMap, body: &[u8], handler: &McpHandler) -> Option<Self> {
        if !accepts_both(headers) {
            return None;
        }
        let request = match outline.method()? {
            "tools/call" => ClientRequest::CallToolRequest(parse(body)?),
            "tools/list" => ClientRequest::ListToolsRequest(parse(body)?),
            "resources/list" => ClientRequest::ListResourcesRequest(parse(body)?),
            "resources/templates/list" => ClientRequest::ListResourceTemplatesRequest(parse(body)?),
            "resources/read" => ClientRequest::ReadResourceRequest(parse(body)?),
            "prompts/list" => ClientRequest::ListPromptsRequest(parse(body)?),
            "prompts/get" => ClientRequest::GetPromptRequest(parse(body)?),
            "completion/complete" => ClientRequest::CompleteRequest(parse(body)?),
            "ping" => ClientRequest::PingRequest(parse(body)?),
            _ => return None,
        };
        let is_quick = match &request {
            ClientRequest::CallToolRequest(call) => handler.is_quick(&call.params.name),
            _ => true,
        };
        // A client that wants progress or logs needs a stream.
        let meta = request.get_meta();
        if !is_quick || meta.get_progress_token().is_some() || meta.log_level().is_some() {
            return None;
        }
        Some(Self { id: outline.request_id()?, request })
    }

    /// Returns the name that the headers must repeat.
    fn named_target(&self) -> Option<&str> {
        match &self.request {
            ClientRequest::CallToolRequest(call) => Some(&call.params.name),
            ClientRequest::GetPromptRequest(get) => Some(&get.params.name),
            ClientRequest::ReadResourceRequest(read) => Some(&read.params.uri),
            _ => None,
        }
    }

    async fn answer(self, peer: SessionPeer, parts: Parts) -> McpResponse {
        let Self { id, mut request } = self;
        let mut context = RequestContext::new(id.clone(), peer.peer);
        context.meta = std::mem::take(request.get_meta_mut());
        context.extensions = std::mem::take(request.extensions_mut());
        context.extensions.insert(parts);
        let late = || {
            tracing::warn!(request = %id, "an MCP request timed out");
            Err(ErrorData::internal_error("the server could not answer in time; try again later", None))
        };
        let answered = timeout(ANSWER_TIMEOUT, peer.handler.handle_request(request, context)).await;
        let message = match answered.unwrap_or_else(|_| late()) {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            // None of these requests can fail with an error that has its own HTTP status.
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        };
        response::json(&message)
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

/// A client must accept both kinds of answers.
fn accepts_both(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("application/json") && accept.contains(response::EVENT_STREAM))
}

/// Returns the value of a header that occurs exactly once.
fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The handler of a session and the peer that reaches its client.
#[derive(Clone)]
pub struct SessionPeer {
    handler: SessionHandler,
    peer: Peer<RoleServer>,
}

impl SessionPeer {
    /// Attaches the peer to its session. Call it when the client has sent `notifications/initialized`.
    pub fn attach(handler: SessionHandler, context: &NotificationContext<RoleServer>) {
        let session = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<McpSession>>());
        if let Some(session) = session {
            // A repeated notification changes nothing.
            session.session_peer.get_or_init(|| Self { handler, peer: context.peer.clone() });
        }
    }

    /// Returns whether the session's service still runs.
    pub fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }
}

/// The peer for all clients without a session. They get nothing but their answer, so one peer is enough.
pub struct StatelessPeer(RunningService<RoleServer, SessionHandler>);

impl StatelessPeer {
    pub fn new(handler: SessionHandler, over: &CancellationToken) -> Self {
        let mut client = InitializeRequestParams::new(ClientCapabilities::default(), Implementation::default());
        client.protocol_version = ProtocolVersion::V_2026_07_28;
        Self(serve_directly_with_ct(handler, ServerTransport::Null, Some(client), over.child_token()))
    }
}

impl McpService {
    /// A slow answer becomes a stream that ends with the answer. If the client disconnects, the request is dropped.
    pub(super) async fn answer_stateless(&self, request: DirectRequest, parts: Parts) -> McpResponse {
        let peer = SessionPeer {
            handler: self.0.handler.for_new_session(),
            peer: self.0.streamable.stateless_peer.0.peer().clone(),
        };
        stream_if_slow(request.answer(peer, parts), self.0.settings.heartbeat).await
    }

    pub(super) async fn answer_in_session(
        &self,
        request: DirectRequest,
        session: &Arc<McpSession>,
        peer: &SessionPeer,
        parts: Parts,
    ) -> McpResponse {
        let hold = session.hold();
        let response = stream_if_slow(request.answer(peer.clone(), parts), self.0.settings.heartbeat).await;
        if response::is_stream(&response) { hold.wrap(response) } else { response }
    }
}

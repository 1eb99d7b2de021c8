//! Questions that are answered on the task that brought them, as plain JSON, with no loop and no stream between: those that
//! wait for nobody and say nothing before their answer. Such a question goes to the same handler as all others, with the
//! session's own limits, so the answer is the same by either way.
//!
//! Only what is plainly right goes this way. About all else the library knows what to say.

use super::{
    message::Outline,
    patience::patiently,
    reply::{self, Reply},
    sessions::Session,
};
use crate::{Mcp, Served};
use http::{HeaderMap, HeaderName, header, request::Parts};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        ClientCapabilities, ClientJsonRpcMessage, ClientRequest, GetExtensions as _, GetMeta as _, Implementation,
        InitializeRequestParams, ProtocolVersion, RequestId, ServerJsonRpcMessage,
    },
    service::{DynService, NotificationContext, Peer, RequestContext, RunningService, serve_directly_with_ct},
    transport::Transport,
};
use serde::de::DeserializeOwned;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A store that takes longer is in trouble, and whoever asks had better know.
const LONGEST: Duration = Duration::from_secs(60);

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// How a name is written that a header could not carry as it is.
const ENCODED: &str = "=?base64?";

pub struct Question {
    id: RequestId,
    request: ClientRequest,
}

impl Question {
    /// As those ask it who have a session.
    pub fn in_session(outline: &Outline<'_>, headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let is_ours = |version: &ProtocolVersion| version.has_initialize();
        let known = || ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| is_ours(version));
        let fits = headers.get(VERSION).is_none_or(|said| known().any(|version| said == version.as_str()));
        let question = if fits { Self::read(outline, headers, body)? } else { return None };
        // One that speaks of a version by itself is of another revision.
        question.request.get_meta().protocol_version().is_none().then_some(question)
    }

    /// As those ask it who have none: each request says all that there is to know, and its headers say it again.
    pub fn alone(outline: &Outline<'_>, headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let modern = &ProtocolVersion::V_2026_07_28;
        if headers.get(VERSION)? != modern.as_str() || only(headers, &METHOD)? != outline.method()? {
            return None;
        }
        let question = Self::read(outline, headers, body)?;
        // Not of this revision.
        if matches!(question.request, ClientRequest::PingRequest(_)) {
            return None;
        }
        if let Some(name) = question.name() {
            let said = only(headers, &NAME)?;
            if said != name || said.starts_with(ENCODED) {
                return None;
            }
        }
        let meta = question.request.get_meta();
        let is_whole = meta.protocol_version()? == *modern && meta.missing_required_keys(modern).is_empty();
        is_whole.then_some(question)
    }

    fn read(outline: &Outline<'_>, headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        if !accepts_both(headers) {
            return None;
        }
        let request = match outline.method()? {
            "tools/call" => ClientRequest::CallToolRequest(of(body)?),
            "tools/list" => ClientRequest::ListToolsRequest(of(body)?),
            "resources/list" => ClientRequest::ListResourcesRequest(of(body)?),
            "resources/templates/list" => ClientRequest::ListResourceTemplatesRequest(of(body)?),
            "resources/read" => ClientRequest::ReadResourceRequest(of(body)?),
            "prompts/list" => ClientRequest::ListPromptsRequest(of(body)?),
            "prompts/get" => ClientRequest::GetPromptRequest(of(body)?),
            "completion/complete" => ClientRequest::CompleteRequest(of(body)?),
            "ping" => ClientRequest::PingRequest(of(body)?),
            _ => return None,
        };
        let is_quick = match &request {
            ClientRequest::CallToolRequest(call) => <Served as Quick>::is_quick(&call.params.name),
            _ => true,
        };
        // Who asks to be told of something meanwhile gets a stream to be told on.
        let meta = request.get_meta();
        if !is_quick || meta.get_progress_token().is_some() || meta.log_level().is_some() {
            return None;
        }
        Some(Self { id: outline.request_id()?, request })
    }

    /// What its headers name.
    fn name(&self) -> Option<&str> {
        match &self.request {
            ClientRequest::CallToolRequest(call) => Some(&call.params.name),
            ClientRequest::GetPromptRequest(get) => Some(&get.params.name),
            ClientRequest::ReadResourceRequest(read) => Some(&read.params.uri),
            _ => None,
        }
    }

    async fn answer(self, desk: Desk, parts: Parts) -> Reply {
        let Self { id, mut request } = self;
        let mut context = RequestContext::new(id.clone(), desk.peer);
        context.meta = std::mem::take(request.get_meta_mut());
        context.extensions = std::mem::take(request.extensions_mut());
        context.extensions.insert(parts);
        let late = || {
            tracing::warn!(request = %id, "an MCP request was given up: it took too long");
            Err(ErrorData::internal_error("the server could not answer in time; try again later", None))
        };
        let answered = timeout(LONGEST, desk.served.handle_request(request, context)).await;
        let message = match answered.unwrap_or_else(|_| late()) {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            // None of those that a status stands for can come of what is asked here: an error is an answer.
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        };
        reply::json(&message)
    }
}

fn of<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

/// A client has to take an answer of either kind, whichever it gets.
fn accepts_both(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("application/json") && accept.contains(reply::EVENT_STREAM))
}

/// The value of a header that must not be there twice.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// What has to be known of whoever answers, besides the methods of the protocol.
pub trait Quick {
    /// Whether a call of this tool waits for nobody, says nothing before its answer, and may be dropped half-way. Nor may
    /// headers say what its arguments say: they are not compared here.
    fn is_quick(tool: &str) -> bool;
}

/// Who answers in a session, and how its client is reached.
#[derive(Clone)]
pub struct Desk {
    served: Arc<dyn DynService<RoleServer>>,
    peer: Peer<RoleServer>,
}

impl Desk {
    /// For when the client says that it is initialized.
    pub fn open(served: impl ServerHandler, context: &NotificationContext<RoleServer>) {
        let session = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<Session>>());
        if let Some(session) = session {
            // Said twice it is the same.
            session.desk.get_or_init(|| Self { served: Arc::new(served), peer: context.peer.clone() });
        }
    }

    /// Until the session's service has ended.
    pub fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }
}

/// Those without a session. Nothing is ever said to them but the answer, so one peer stands for all.
pub struct Strangers(RunningService<RoleServer, Served>);

impl Strangers {
    pub fn new(served: Served, over: &CancellationToken) -> Self {
        let mut anybody = InitializeRequestParams::new(ClientCapabilities::default(), Implementation::default());
        anybody.protocol_version = ProtocolVersion::V_2026_07_28;
        Self(serve_directly_with_ct(served, Silence, Some(anybody), over.child_token()))
    }
}

/// Nothing comes from it, and what goes to it is for nobody.
struct Silence;

impl Transport<RoleServer> for Silence {
    type Error = Infallible;

    fn send(&mut self, _: ServerJsonRpcMessage) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        std::future::pending().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Mcp {
    /// One that takes longer than a moment becomes a stream that ends with the answer. Who hangs up ends the question.
    pub(super) async fn answer_alone(&self, question: Question, parts: Parts) -> Reply {
        let desk =
            Desk { served: Arc::new(self.0.handler.fresh()), peer: self.0.streamable.strangers.0.peer().clone() };
        patiently(question.answer(desk, parts), self.0.settings.heartbeat).await
    }

    pub(super) async fn answer_in_session(
        &self,
        question: Question,
        session: &Arc<Session>,
        desk: &Desk,
        parts: Parts,
    ) -> Reply {
        let hold = session.hold();
        let reply = patiently(question.answer(desk.clone(), parts), self.0.settings.heartbeat).await;
        if reply::is_stream(&reply) { hold.over(reply) } else { reply }
    }
}

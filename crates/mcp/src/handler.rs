//! The methods of the protocol, for every revision. Each determines the actor and delegates.
//!
//! There is one handler per session, and one per request in revisions without sessions.

use crate::{
    McpHandlerKind,
    agent_list::SharedAgentList,
    logging::{McpLogLevel, SetLevelMethod, SetLevelParams},
    prompts, resources,
    session_handler::SessionHandler,
    tools,
    transport::{
        direct::SessionPeer,
        sessions::{McpSession, SessionHold},
    },
    watch,
};
use domain::{actor::Actor, agent::Agent, calling_agent::CallingAgent};
use engine::Engine;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
        ErrorCode, Extensions, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
        InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const INSTRUCTIONS: &str = "Greenroom runs AI agents in rooms and keeps a journal of each room. `list_agents` lists \
    the agents; `run_agent` sends a message to one and waits for the answer; `read_room` returns a conversation. A run \
    that waits for an approval continues after `answer_approval`. Skills are also prompts; rooms, runs, skills and \
    workspace files are also resources.";

/// The methods with parameters.
const METHODS: [&str; 12] = [
    "tools/call",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
];

/// What all handlers share.
pub struct HandlerShared {
    pub engine: Engine,
    pub stopping: CancellationToken,
    /// Tasks that notify clients of changes. When the server stops, each notifies its client and ends.
    pub watchers: TaskTracker,
    agents: SharedAgentList,
    kind: McpHandlerKind,
    #[cfg(feature = "test-hooks")]
    fixture: crate::conformance::Fixture,
}

#[derive(Clone)]
pub struct McpHandler {
    shared: Arc<HandlerShared>,
    session: Arc<McpSessionState>,
}

/// Concurrent requests of one session.
const MAX_CALLS: usize = 64;

/// The state of one session.
struct McpSessionState {
    calls: Semaphore,
    level: Mutex<Option<McpLogLevel>>,
    /// Set once the client has sent `notifications/initialized`.
    watching: Mutex<Option<watch::SessionWatch>>,
}

impl Default for McpSessionState {
    fn default() -> Self {
        Self { calls: Semaphore::new(MAX_CALLS), level: Mutex::default(), watching: Mutex::default() }
    }
}

/// The mutexes here guard plain data that no panic can leave inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl McpHandler {
    pub fn new(engine: Engine, kind: McpHandlerKind, stopping: CancellationToken) -> Self {
        let shared = HandlerShared {
            engine,
            stopping,
            watchers: TaskTracker::new(),
            agents: SharedAgentList::default(),
            kind,
            #[cfg(feature = "test-hooks")]
            fixture: crate::conformance::Fixture::new(),
        };
        Self { shared: Arc::new(shared), session: Arc::default() }
    }

    /// Waits until every client was notified that the server stops.
    pub async fn wait_for_watchers(&self) {
        self.shared.watchers.close();
        self.shared.watchers.wait().await;
    }

    /// Returns a handler for a new session.
    pub fn for_new_session(&self) -> SessionHandler {
        match self.shared.kind {
            McpHandlerKind::Greenroom => {
                SessionHandler::new(Self { shared: Arc::clone(&self.shared), session: Arc::default() })
            }
            #[cfg(feature = "test-hooks")]
            McpHandlerKind::ConformanceFixture => SessionHandler::new(self.shared.fixture.clone()),
        }
    }

    /// Returns whether a call of this tool does not wait, sends nothing before its answer, and may be dropped at any
    /// point. Its arguments must not be repeated in headers either: the direct path does not compare them.
    pub fn is_quick(&self, tool: &str) -> bool {
        match self.shared.kind {
            McpHandlerKind::Greenroom => tools::is_quick(tool),
            #[cfg(feature = "test-hooks")]
            McpHandlerKind::ConformanceFixture => crate::conformance::is_quick(tool),
        }
    }

    /// Determines the actor and log level of a request, and counts it against the session's limit.
    fn request_context<'a>(
        &'a self,
        context: &'a RequestContext<RoleServer>,
    ) -> Result<McpRequestContext<'a>, ErrorData> {
        let actor = actor(&context.extensions)?;
        let Ok(call) = self.session.calls.try_acquire() else {
            let why = format!("this session has {MAX_CALLS} requests in progress; wait for an answer first");
            return Err(ErrorData::invalid_request(why, None));
        };
        let hold = extension::<Arc<McpSession>>(&context.extensions).map(McpSession::hold);
        let level = context.meta.log_level().or_else(|| *lock(&self.session.level));
        Ok(McpRequestContext { shared: &self.shared, actor, context, level, _call: call, _hold: hold })
    }
}

/// The context of one request.
pub struct McpRequestContext<'a> {
    pub shared: &'a Arc<HandlerShared>,
    pub actor: Actor,
    pub context: &'a RequestContext<RoleServer>,
    /// The minimum level of log messages that the client wants.
    pub level: Option<McpLogLevel>,
    _call: SemaphorePermit<'a>,
    /// Keeps the session in use, even if the client no longer reads the answer.
    _hold: Option<SessionHold>,
}

impl McpRequestContext<'_> {
    /// The agent in whose turn the client runs, if the client says so.
    pub fn calling_agent(&self) -> Option<CallingAgent> {
        let parts = self.context.extensions.get::<http::request::Parts>()?;
        parts.headers.get(CallingAgent::HEADER)?.to_str().ok()?.parse().ok()
    }

    /// Lists the owner's agents.
    pub async fn agents(&self) -> Result<Arc<[Agent]>, tools::McpToolError> {
        self.shared.agents.agents(self.shared.engine.queries(), &self.actor.workspace).await
    }
}

/// The transports put the actor into every request.
fn actor(extensions: &Extensions) -> Result<Actor, ErrorData> {
    extension::<Actor>(extensions).cloned().ok_or_else(|| ErrorData::internal_error("the request has no actor", None))
}

/// Returns a value that a transport has attached to the request.
pub fn extension<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    let by_http = || extensions.get::<http::request::Parts>().and_then(|parts| parts.extensions.get::<T>());
    extensions.get::<T>().or_else(by_http)
}

#[expect(deprecated, reason = "clients of older revisions use these to subscribe and log")]
impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut us = Implementation::new("greenroom", env!("CARGO_PKG_VERSION"));
        us.title = Some("Greenroom".into());
        ServerConfig::new(capabilities).with_server_info(us).with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        actor(&context.extensions)?;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        match actor(&context.extensions) {
            Ok(actor) => {
                SessionPeer::attach(SessionHandler::new(self.clone()), &context);
                let watching = watch::SessionWatch::start(Arc::clone(&self.shared), actor.workspace, context.peer);
                *lock(&self.session.watching) = Some(watching);
            }
            Err(error) => tracing::warn!(%error, "an MCP session has no actor"),
        }
    }

    async fn set_level(&self, request: SetLevelParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // From that revision on, each request states its log level.
        if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            return Err(ErrorData::method_not_found::<SetLevelMethod>());
        }
        *lock(&self.session.level) = Some(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list(&self.request_context(&context)?).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::get(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(&self.request_context(&context)?, request).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.request_context(&context)?, request).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.request_context(&context)?, &request.uri).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list(&self.request_context(&context)?).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.request_context(&context)?, request).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        prompts::complete(&self.request_context(&context)?, request).await
    }

    /// rmcp treats a request with invalid parameters as an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        match METHODS.contains(&method.as_str()) {
            true => Err(ErrorData::invalid_params(format!("invalid parameters for {method}"), None)),
            false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let target = watch::SubscribedResource::find(&self.request_context(&context)?, &request.uri).await?;
        match &*lock(&self.session.watching) {
            Some(watching) => watching.add(target),
            None => Err(ErrorData::invalid_request("subscribe after notifications/initialized", None)),
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Some(watching) = &*lock(&self.session.watching) {
            watching.remove(&request.uri);
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(watch::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let ctx = self.request_context(context.request_context())?;
        watch::listen(&ctx, &context).await
    }
}

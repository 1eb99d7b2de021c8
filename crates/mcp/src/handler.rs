//! The methods of the protocol, of every revision, in one place. Each says who asks and hands over.
//!
//! One handler is made for each session, and for each request of the revisions without sessions.

use crate::{
    logging::{Level, SetLevel, SetLevelMethod},
    prompts, resources,
    roster::Roster,
    tools,
    transport::{
        direct::{Desk, Quick},
        sessions::{Hold, Session},
    },
    watch,
};
use domain::{
    agent::Agent,
    owner::{Owner, Principal},
};
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

const INSTRUCTIONS: &str = "Greenroom runs AI agents in rooms and keeps every word they say. `list_agents` shows who can be \
    asked; `run_agent` asks one and waits for the answer; `read_room` shows a conversation. A run that waits for an \
    approval goes on after `answer_approval`. Skills are also prompts; rooms, runs, skills and the files that agents work on \
    are also resources.";

/// Those that take parameters.
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

/// What every handler shares.
pub struct House {
    pub engine: Engine,
    pub stopping: CancellationToken,
    /// Those who tell clients what happens. When the server stops, each says so and ends.
    pub watchers: TaskTracker,
    roster: Roster,
    #[cfg(feature = "conformance")]
    fixture: crate::Served,
}

#[derive(Clone)]
pub struct Handler {
    house: Arc<House>,
    own: Arc<Own>,
}

/// Requests of one session that are under way at once.
const CALLS: usize = 64;

/// What a session keeps.
struct Own {
    calls: Semaphore,
    level: Mutex<Option<Level>>,
    /// From the moment that the client says it is initialized.
    watching: Mutex<Option<watch::Watching>>,
}

impl Default for Own {
    fn default() -> Self {
        Self { calls: Semaphore::new(CALLS), level: Mutex::default(), watching: Mutex::default() }
    }
}

/// A mutex here guards plain data that no panic can leave half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handler {
    pub fn new(engine: Engine, stopping: CancellationToken) -> Self {
        let house = House {
            engine,
            stopping,
            watchers: TaskTracker::new(),
            roster: Roster::default(),
            #[cfg(feature = "conformance")]
            fixture: crate::Served::new(),
        };
        Self { house: Arc::new(house), own: Arc::default() }
    }

    /// Returns when every client has been told that the server stops.
    pub async fn told(&self) {
        self.house.watchers.close();
        self.house.watchers.wait().await;
    }

    /// For another session.
    #[cfg(feature = "conformance")]
    pub fn fresh(&self) -> crate::Served {
        self.house.fixture.clone()
    }

    /// For another session.
    #[cfg(not(feature = "conformance"))]
    pub fn fresh(&self) -> crate::Served {
        Self { house: Arc::clone(&self.house), own: Arc::default() }
    }

    /// Who asks, and how they are told what happens meanwhile.
    fn asking<'a>(&'a self, context: &'a RequestContext<RoleServer>) -> Result<Asking<'a>, ErrorData> {
        let owner = owner(&context.extensions)?;
        let Ok(call) = self.own.calls.try_acquire() else {
            let why = format!("this session has {CALLS} requests under way; wait for an answer first");
            return Err(ErrorData::invalid_request(why, None));
        };
        let hold = carried::<Arc<Session>>(&context.extensions).map(Session::hold);
        let level = context.meta.log_level().or_else(|| *lock(&self.own.level));
        Ok(Asking { house: &self.house, owner, context, level, _call: call, _hold: hold })
    }
}

impl Quick for Handler {
    fn is_quick(tool: &str) -> bool {
        tools::is_quick(tool)
    }
}

/// One request.
pub struct Asking<'a> {
    pub house: &'a Arc<House>,
    pub owner: Owner,
    pub context: &'a RequestContext<RoleServer>,
    /// From which level on the client wants to hear of what happens.
    pub level: Option<Level>,
    _call: SemaphorePermit<'a>,
    /// The session is in use, whether or not anybody still reads what comes of it.
    _hold: Option<Hold>,
}

impl Asking<'_> {
    /// Those that can be asked.
    pub async fn agents(&self) -> Result<Arc<[Agent]>, tools::Trouble> {
        self.house.roster.agents(self.house.engine.store(), &self.owner).await
    }
}

/// The transports put who asks into the request; one without is none of ours.
fn owner(extensions: &Extensions) -> Result<Owner, ErrorData> {
    carried::<Principal>(extensions)
        .map(|principal| principal.owner.clone())
        .ok_or_else(|| ErrorData::internal_error("nobody is known to have asked this", None))
}

/// What a transport sent along with a request.
pub fn carried<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    let by_http = || extensions.get::<http::request::Parts>().and_then(|parts| parts.extensions.get::<T>());
    extensions.get::<T>().or_else(by_http)
}

#[expect(deprecated, reason = "clients of the older revisions subscribe and log by these")]
impl ServerHandler for Handler {
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
        owner(&context.extensions)?;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        match owner(&context.extensions) {
            Ok(owner) => {
                Desk::open(self.clone(), &context);
                let watching = watch::Watching::begin(Arc::clone(&self.house), owner, context.peer);
                *lock(&self.own.watching) = Some(watching);
            }
            Err(error) => tracing::warn!(%error, "an MCP session without a principal"),
        }
    }

    async fn set_level(&self, request: SetLevel, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        // There it is said with each request.
        if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
            return Err(ErrorData::method_not_found::<SetLevelMethod>());
        }
        *lock(&self.own.level) = Some(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list(&self.asking(&context)?).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::get(name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(&self.asking(&context)?, request).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.asking(&context)?, request).await
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
        resources::read(&self.asking(&context)?, &request.uri).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list(&self.asking(&context)?).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.asking(&context)?, request).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        prompts::complete(&self.asking(&context)?, request).await
    }

    /// The library takes a request whose parameters it cannot read for one that it does not know.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        match METHODS.contains(&method.as_str()) {
            true => {
                Err(ErrorData::invalid_params(format!("the parameters of {method} are not those that it takes"), None))
            }
            false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let target = watch::Target::find(&self.asking(&context)?, &request.uri).await?;
        match &*lock(&self.own.watching) {
            Some(watching) => watching.add(target),
            None => Err(ErrorData::invalid_request("subscribe after notifications/initialized", None)),
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let Some(watching) = &*lock(&self.own.watching) {
            watching.remove(&request.uri);
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(watch::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let asking = self.asking(context.request_context())?;
        watch::listen(&asking, &context).await
    }
}

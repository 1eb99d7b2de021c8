//! One type for every handler: Greenroom's, that of the host tools, and the fixture of the conformance suite. rmcp's
//! services are generic over their handler, so with one type their code is compiled once, and each method's code is
//! compiled once behind its box.

use futures_util::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, CompleteRequestParams,
        CompleteResult, CustomNotification, CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams,
        GetPromptResponse, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use std::{borrow::Cow, sync::Arc};

/// A handler of any type, for one session or for one request without a session.
#[derive(Clone)]
pub struct SessionHandler(Arc<dyn AnyHandler>);

impl SessionHandler {
    pub fn new(handler: impl ServerHandler) -> Self {
        Self(Arc::new(handler))
    }
}

/// Declares [`AnyHandler`], the object-safe form of [`ServerHandler`], and forwards every asynchronous method to it.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),+) -> $output:ty;)+) => {
        trait AnyHandler: Send + Sync {
            fn get_info(&self) -> ServerConfig;
            fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]>;
            fn get_tool(&self, name: &str) -> Option<Tool>;
            fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter>;
            $(fn $method(&self, $($argument: $type),+) -> BoxFuture<'_, $output>;)+
        }

        #[expect(deprecated, reason = "clients of older revisions use some of the methods")]
        impl<H: ServerHandler> AnyHandler for H {
            fn get_info(&self) -> ServerConfig {
                ServerHandler::get_info(self)
            }

            fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
                ServerHandler::supported_protocol_versions(self)
            }

            fn get_tool(&self, name: &str) -> Option<Tool> {
                ServerHandler::get_tool(self, name)
            }

            fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
                ServerHandler::accepted_subscription_filter(self, requested)
            }

            $(fn $method(&self, $($argument: $type),+) -> BoxFuture<'_, $output> {
                Box::pin(ServerHandler::$method(self, $($argument),+))
            })+
        }

        impl ServerHandler for SessionHandler {
            fn get_info(&self) -> ServerConfig {
                AnyHandler::get_info(&*self.0)
            }

            fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
                AnyHandler::supported_protocol_versions(&*self.0)
            }

            fn get_tool(&self, name: &str) -> Option<Tool> {
                AnyHandler::get_tool(&*self.0, name)
            }

            fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
                AnyHandler::accepted_subscription_filter(&*self.0, requested)
            }

            $(fn $method(&self, $($argument: $type),+) -> impl Future<Output = $output> + Send + '_ {
                AnyHandler::$method(&*self.0, $($argument),+)
            })+
        }
    };
}

type Request = RequestContext<RoleServer>;
type Notification = NotificationContext<RoleServer>;

// Every asynchronous method of rmcp's trait: one that is missing here would get rmcp's default for all handlers.
forward! {
    initialize(params: InitializeRequestParams, context: Request) -> Result<InitializeResult, ErrorData>;
    discover(context: Request) -> Result<DiscoverResult, ErrorData>;
    ping(context: Request) -> Result<(), ErrorData>;
    set_level(params: crate::logging::SetLevelParams, context: Request) -> Result<(), ErrorData>;
    complete(params: CompleteRequestParams, context: Request) -> Result<CompleteResult, ErrorData>;
    list_tools(page: Option<PaginatedRequestParams>, context: Request) -> Result<ListToolsResult, ErrorData>;
    call_tool(params: CallToolRequestParams, context: Request) -> Result<CallToolResponse, ErrorData>;
    list_prompts(page: Option<PaginatedRequestParams>, context: Request) -> Result<ListPromptsResult, ErrorData>;
    get_prompt(params: GetPromptRequestParams, context: Request) -> Result<GetPromptResponse, ErrorData>;
    list_resources(page: Option<PaginatedRequestParams>, context: Request) -> Result<ListResourcesResult, ErrorData>;
    list_resource_templates(
        page: Option<PaginatedRequestParams>, context: Request
    ) -> Result<ListResourceTemplatesResult, ErrorData>;
    read_resource(params: ReadResourceRequestParams, context: Request) -> Result<ReadResourceResponse, ErrorData>;
    subscribe(params: SubscribeRequestParams, context: Request) -> Result<(), ErrorData>;
    unsubscribe(params: UnsubscribeRequestParams, context: Request) -> Result<(), ErrorData>;
    listen(context: SubscriptionContext) -> Result<(), ErrorData>;
    get_task(params: GetTaskParams, context: Request) -> Result<GetTaskResult, ErrorData>;
    update_task(params: UpdateTaskParams, context: Request) -> Result<(), ErrorData>;
    cancel_task(params: CancelTaskParams, context: Request) -> Result<(), ErrorData>;
    on_custom_request(request: CustomRequest, context: Request) -> Result<CustomResult, ErrorData>;
    on_initialized(context: Notification) -> ();
    on_cancelled(params: CancelledNotificationParam, context: Notification) -> ();
    on_progress(params: ProgressNotificationParam, context: Notification) -> ();
    on_roots_list_changed(context: Notification) -> ();
    on_custom_notification(notification: CustomNotification, context: Notification) -> ();
}

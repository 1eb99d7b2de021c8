//! The tools, prompts and resources that the official conformance suite requires of a server.
//!
//! The suite tests the protocol (transports, sessions, eras) through fixtures with known behavior. In builds
//! with the feature `test-hooks` they can be served instead of Greenroom's own. The lists and fixed answers are the JSON
//! files here; `asking_tools.json` holds the tools that send requests to the client. Start with
//! `tables.rs`.
//!
//! The extension `tasks` is not supported; the suite runs it without scoring.

// The suite still tests logging, sampling, roots and subscriptions of the legacy era.
#![expect(deprecated)]

mod acts;
mod inputs;
mod tables;

pub use acts::lend_channels;

use crate::{session_handler::SessionHandler, transport::direct::SessionPeer};
use acts::FixtureContext;
use inputs::{InputCall, InputStep};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, PromptMessage,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
        ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams,
        SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, SubscriptionContext},
};
use serde_json::json;
use tables::{ListChange, PromptAct, ToolAct};
use tokio::sync::broadcast::{self, error::RecvError};

/// Enough for all changes of one test; a subscription that missed one was notified of another.
const CHANGES: usize = 16;

#[derive(Clone)]
pub struct Fixture {
    changes: broadcast::Sender<ListChange>,
}

impl Fixture {
    pub fn new() -> Self {
        Self { changes: broadcast::Sender::new(CHANGES) }
    }
}

/// As for Greenroom's own tools: whether a call may take the direct path.
pub fn is_quick(tool: &str) -> bool {
    let entry = tables::tools().ok().and_then(|tools| tools.into_iter().find(|entry| entry.name == tool));
    entry.is_some_and(|entry| matches!(entry.does, ToolAct::Answer(_)) && !entry.has_headers())
}

impl Default for Fixture {
    fn default() -> Self {
        Self::new()
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging();
        let implementation = Implementation::new("greenroom-conformance", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities.build()).with_server_info(implementation)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        SessionPeer::attach(SessionHandler::new(self.clone()), &context);
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: FixtureContext,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tables::tools()?.into_iter().map(|entry| entry.listed()).collect()))
    }

    /// Used by the transport, which compares headers with arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        Some(tables::tools().ok()?.into_iter().find(|entry| entry.name == name)?.listed())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: FixtureContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let entry = tables::tools()?.into_iter().find(|entry| entry.name == call.name);
        let entry = entry.ok_or_else(|| ErrorData::invalid_params(format!("unknown tool: {}", call.name), None))?;
        let arguments = call.arguments.unwrap_or_default();
        let result = match entry.does {
            ToolAct::Answer(value) => tables::answer(value)?,
            ToolAct::Log => acts::log(&context).await?,
            ToolAct::Progress => acts::progress(&context).await?,
            ToolAct::Disconnect => acts::disconnect(&context).await,
            ToolAct::Announce(change) => acts::announce(change, &self.changes, &context).await?,
            ToolAct::Require(needed) => acts::require(needed, &context)?,
            ToolAct::Ask(request) => acts::ask(request, &arguments, &context).await?,
            ToolAct::Inputs(inputs) => {
                let call = InputCall {
                    name: &entry.name,
                    responses: call.input_responses.as_ref(),
                    state: call.request_state.as_deref(),
                    capabilities: context.client_capabilities().unwrap_or_default(),
                };
                match inputs.step(&call)? {
                    InputStep::Ask(result) => return Ok(result.into()),
                    // The suite expects this word for a state that came back unchanged.
                    InputStep::Done(responses) => acts::text_result(format!("state-ok: {responses}")),
                }
            }
        };
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: FixtureContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(tables::prompts()?.into_iter().map(|entry| entry.listed).collect()))
    }

    async fn get_prompt(
        &self,
        get: GetPromptRequestParams,
        context: FixtureContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        let entry = tables::prompts()?.into_iter().find(|entry| entry.listed.name == get.name);
        let entry = entry.ok_or_else(|| ErrorData::invalid_params(format!("unknown prompt: {}", get.name), None))?;
        let messages = match entry.does {
            PromptAct::Messages(value) => tables::messages(value, &get.arguments.unwrap_or_default())?,
            PromptAct::Inputs(inputs) => {
                let call = InputCall {
                    name: &get.name,
                    responses: get.input_responses.as_ref(),
                    state: get.request_state.as_deref(),
                    capabilities: context.client_capabilities().unwrap_or_default(),
                };
                match inputs.step(&call)? {
                    InputStep::Ask(result) => return Ok(result.into()),
                    InputStep::Done(responses) => vec![PromptMessage::new_text(Role::User, responses.to_string())],
                }
            }
        };
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(&self, complete: CompleteRequestParams, _: FixtureContext) -> Result<CompleteResult, ErrorData> {
        let known = ["paris", "park", "party", "test"];
        let fitting = known.into_iter().filter(|word| word.starts_with(&complete.argument.value));
        let fitting = CompletionInfo::with_all_values(fitting.map(str::to_owned).collect());
        Ok(CompleteResult::new(fitting.map_err(|error| ErrorData::internal_error(error, None))?))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: FixtureContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        let direct = tables::resources()?.into_iter().filter(|entry| !entry.is_template());
        Ok(ListResourcesResult::with_all_items(direct.map(|entry| entry.listed()).collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: FixtureContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = tables::resources()?.into_iter().filter(|entry| entry.is_template());
        Ok(ListResourceTemplatesResult::with_all_items(templates.map(|entry| entry.listed_template()).collect()))
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        _: FixtureContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![resource(&read.uri)?]).into())
    }

    /// The fixtures never change, so subscriptions are not stored.
    async fn subscribe(&self, subscribe: SubscribeRequestParams, _: FixtureContext) -> Result<(), ErrorData> {
        resource(&subscribe.uri).map(drop)
    }

    async fn unsubscribe(&self, unsubscribe: UnsubscribeRequestParams, _: FixtureContext) -> Result<(), ErrorData> {
        resource(&unsubscribe.uri).map(drop)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut changes, accepted) = (self.changes.subscribe(), subscription.accepted());
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let sent = match change {
                Ok(ListChange::Tools) if accepted.tools_list_changed == Some(true) => {
                    subscription.sink().notify_tool_list_changed().await
                }
                Ok(ListChange::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    subscription.sink().notify_prompt_list_changed().await
                }
                Ok(_) | Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return Ok(()),
            };
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
    }

    /// Any level enables all messages, which have the level that the suite sets. rmcp also calls this in the modern
    /// era, which does not have the method.
    async fn set_level(&self, _: SetLevelRequestParams, context: FixtureContext) -> Result<(), ErrorData> {
        match acts::is_modern(&context) {
            true => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
            false => Ok(()),
        }
    }
}

fn resource(uri: &str) -> Result<ResourceContents, ErrorData> {
    let found = tables::resources()?.iter().find_map(|entry| entry.at(uri));
    found.ok_or_else(|| ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))))
}

//! Fixture tools that do something before they answer.

use super::tables::{self, ListChange};
use crate::transport::channel::{SessionChannel, SessionChannels};
use http::{Request, request::Parts};
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolResult, ClientCapabilities, ClientResult, ContentBlock, InputRequest, JsonObject, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, ServerRequest,
    },
    service::{RequestContext, ServiceError},
    transport::common::http_header::HEADER_SESSION_ID,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::broadcast;

/// The suite expects messages while the tool still runs.
const PAUSE: Duration = Duration::from_millis(50);

pub type FixtureContext = RequestContext<RoleServer>;

pub fn text_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Legacy clients set a log level once, with `logging/setLevel`; modern ones set it with each request.
pub async fn log(context: &FixtureContext) -> Result<CallToolResult, ErrorData> {
    let is_wanted = match is_modern(context) {
        true => matches!(context.meta.log_level(), Some(LoggingLevel::Debug | LoggingLevel::Info)),
        false => true,
    };
    for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        if is_wanted {
            let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
            context.peer.notify_logging_message(message).await.map_err(unsent)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text_result("Logging is complete."))
}

pub async fn progress(context: &FixtureContext) -> Result<CallToolResult, ErrorData> {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let report = ProgressNotificationParam::new(token, done).with_total(100.0);
            context.peer.notify_progress(report).await.map_err(unsent)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text_result("Progress is complete."))
}

/// Ends the stream of this call before its answer; the client gets the answer when it resumes (SEP-1699).
pub async fn disconnect(context: &FixtureContext) -> CallToolResult {
    let is_closed = channel(context).is_some_and(|channel| channel.outbox.hang_up(&context.id));
    tokio::time::sleep(PAUSE).await;
    text_result(format!("The stream was closed: {is_closed}."))
}

/// Attaches the session channels to a request, for the tools.
pub fn lend_channels<B>(mut request: Request<B>, channels: &Arc<SessionChannels>) -> Request<B> {
    request.extensions_mut().insert(Arc::clone(channels));
    request
}

fn channel(context: &FixtureContext) -> Option<Arc<SessionChannel>> {
    let request = context.extensions.get::<Parts>()?;
    let id = request.headers.get(HEADER_SESSION_ID)?.to_str().ok()?;
    request.extensions.get::<Arc<SessionChannels>>()?.get(id)
}

/// Notifies the subscriptions of modern clients, and the legacy client that calls.
pub async fn announce(
    change: ListChange,
    changes: &broadcast::Sender<ListChange>,
    context: &FixtureContext,
) -> Result<CallToolResult, ErrorData> {
    if !is_modern(context) {
        let sent = match change {
            ListChange::Tools => context.peer.notify_tool_list_changed().await,
            ListChange::Prompts => context.peer.notify_prompt_list_changed().await,
        };
        sent.map_err(unsent)?;
    }
    let listeners = changes.send(change).unwrap_or(0);
    Ok(text_result(format!("{listeners} subscriptions were notified.")))
}

pub fn require(needed: ClientCapabilities, context: &FixtureContext) -> Result<CallToolResult, ErrorData> {
    let can = context.client_capabilities().unwrap_or_default();
    match needed.sampling.is_some() && can.sampling.is_none() {
        true => Err(ErrorData::missing_required_client_capability(needed)),
        false => Ok(text_result("The client has the required capability.")),
    }
}

/// Sends a request to the client and waits for its answer.
pub async fn ask(
    request: Value,
    arguments: &JsonObject,
    context: &FixtureContext,
) -> Result<CallToolResult, ErrorData> {
    let request = match tables::parse(tables::filled(request, arguments))? {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ErrorData::internal_error("the fixture supports no other request", None)),
    };
    let text = match context.peer.send_request(request).await {
        Ok(ClientResult::CreateMessageResult(result)) => json!(result.message).to_string(),
        Ok(ClientResult::ElicitResult(result)) => json!(result).to_string(),
        Ok(_) => {
            return Ok(CallToolResult::error(vec![ContentBlock::text("The client returned an unexpected result.")]));
        }
        Err(error) => return Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())])),
    };
    Ok(text_result(format!("The client answered: {text}")))
}

pub fn is_modern(context: &FixtureContext) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn unsent(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

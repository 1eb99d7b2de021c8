//! Tools that do something before they answer.

use super::tables::{self, Change};
use crate::transport::line::{Line, Lines};
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

/// The suite wants to see messages that come while the tool still works.
const PAUSE: Duration = Duration::from_millis(50);

pub type Context = RequestContext<RoleServer>;

pub fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Legacy clients ask once, with `logging/setLevel`, and then for everything here; modern ones ask with each request.
pub async fn log(context: &Context) -> Result<CallToolResult, ErrorData> {
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
    Ok(said("All is logged."))
}

pub async fn progress(context: &Context) -> Result<CallToolResult, ErrorData> {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let report = ProgressNotificationParam::new(token, done).with_total(100.0);
            context.peer.notify_progress(report).await.map_err(unsent)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(said("All is reported."))
}

/// Ends the stream of this call before its answer, which the client gets when it comes back for it (SEP-1699).
pub async fn disconnect(context: &Context) -> CallToolResult {
    let is_closed = line(context).is_some_and(|line| line.outbox.hang_up(&context.id));
    tokio::time::sleep(PAUSE).await;
    said(format!("The stream was closed: {is_closed}."))
}

/// The transport lends its sessions to the tools, with each request.
pub fn lend<B>(mut request: Request<B>, lines: &Arc<Lines>) -> Request<B> {
    request.extensions_mut().insert(Arc::clone(lines));
    request
}

fn line(context: &Context) -> Option<Arc<Line>> {
    let request = context.extensions.get::<Parts>()?;
    let id = request.headers.get(HEADER_SESSION_ID)?.to_str().ok()?;
    request.extensions.get::<Arc<Lines>>()?.get(id)
}

/// To the subscriptions of modern clients, and to the legacy client that calls.
pub async fn announce(
    change: Change,
    changes: &broadcast::Sender<Change>,
    context: &Context,
) -> Result<CallToolResult, ErrorData> {
    if !is_modern(context) {
        let told = match change {
            Change::Tools => context.peer.notify_tool_list_changed().await,
            Change::Prompts => context.peer.notify_prompt_list_changed().await,
        };
        told.map_err(unsent)?;
    }
    let listeners = changes.send(change).unwrap_or(0);
    Ok(said(format!("{listeners} subscriptions were told.")))
}

pub fn require(needed: ClientCapabilities, context: &Context) -> Result<CallToolResult, ErrorData> {
    let can = context.client_capabilities().unwrap_or_default();
    match needed.sampling.is_some() && can.sampling.is_none() {
        true => Err(ErrorData::missing_required_client_capability(needed)),
        false => Ok(said("The client has what is needed.")),
    }
}

/// The call waits for the client's answer.
pub async fn ask(request: Value, arguments: &JsonObject, context: &Context) -> Result<CallToolResult, ErrorData> {
    let request = match tables::parse(tables::filled(request, arguments))? {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ErrorData::internal_error("the fixture asks for nothing else", None)),
    };
    let text = match context.peer.send_request(request).await {
        Ok(ClientResult::CreateMessageResult(result)) => json!(result.message).to_string(),
        Ok(ClientResult::ElicitResult(result)) => json!(result).to_string(),
        Ok(_) => return Ok(CallToolResult::error(vec![ContentBlock::text("The client answered something else.")])),
        Err(error) => return Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())])),
    };
    Ok(said(format!("The client answered: {text}")))
}

pub fn is_modern(context: &Context) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn unsent(error: ServiceError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

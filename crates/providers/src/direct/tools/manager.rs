//! The MCP manager as the [`McpToolbox`] of agents on model APIs.

use super::{McpToolbox, ServerCallOutcome, ServerTool, ServerToolList, ToolReport, ToolboxFuture};
use crate::{
    TurnEvent,
    direct::{ToolCallOutcome, ToolResultContent},
};
use domain::mcp::McpSecrets;
use serde_json::{Map, Value, json};
use std::fmt;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;
use workbench::mcp::{self, CallOptions, McpCallResult, McpManager, McpProgress, PlacedMcpServer};

#[derive(Clone)]
pub struct ManagedToolbox(pub McpManager);

impl fmt::Debug for ManagedToolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ManagedToolbox")
    }
}

impl McpToolbox for ManagedToolbox {
    fn list(&self, servers: Vec<PlacedMcpServer>) -> ToolboxFuture<Vec<ServerToolList>> {
        let manager = self.0.clone();
        Box::pin(async move {
            let mut requests = JoinSet::new();
            for (order, server) in servers.into_iter().enumerate() {
                let manager = manager.clone();
                requests.spawn(async move {
                    let tools = manager.tools_of(&server).await;
                    let tools = tools
                        .map(|listing| listing.tools.iter().map(listed).collect())
                        .map_err(|failure| redacted(&server, &failure));
                    (order, ServerToolList { server, tools })
                });
            }
            let mut listings = requests.join_all().await;
            listings.sort_by_key(|(order, _)| *order);
            listings.into_iter().map(|(_, listing)| listing).collect()
        })
    }

    fn call(
        &self,
        server: PlacedMcpServer,
        tool: String,
        input: Map<String, Value>,
        cancel: CancellationToken,
        output: mpsc::Sender<ToolReport>,
        call: String,
    ) -> ToolboxFuture<ServerCallOutcome> {
        let manager = self.0.clone();
        Box::pin(async move {
            let (progress, mut reports) = mpsc::channel::<McpProgress>(16);
            let options = CallOptions { progress: Some(progress), cancel, ..CallOptions::default() };
            let forward = async {
                while let Some(McpProgress { message, .. }) = reports.recv().await {
                    if let Some(message) = message
                        && output.send((call.clone(), format!("{message}\n"))).await.is_err()
                    {
                        return;
                    }
                }
            };
            let (result, ()) = tokio::join!(manager.call_of(&server, &tool, input, options), forward);
            match result {
                Ok(result) => called(result),
                Err(failure) => {
                    let text = format!("{} ({})", redacted(&server, &failure), failure.code());
                    ServerCallOutcome { outcome: ToolCallOutcome::text(text, true), notices: Vec::new() }
                }
            }
        })
    }
}

/// The error is shown to the room and the model, so secrets are removed.
fn redacted(server: &PlacedMcpServer, failure: &mcp::McpFailure) -> String {
    McpSecrets::from_transport(&server.server.config.transport).redact(failure.to_string())
}

fn listed(tool: &mcp::McpTool) -> ServerTool {
    ServerTool {
        name: tool.name.clone(),
        description: tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default(),
        schema: Value::Object(tool.input_schema.clone()),
    }
}

/// The room stores the whole result; the model gets text and images.
fn called(result: McpCallResult) -> ServerCallOutcome {
    let notice = |notice: &mcp::McpNotice| TurnEvent::Status {
        status: "mcp_server_restarted".into(),
        message: notice.to_string(),
    };
    let mut content: Vec<ToolResultContent> = result
        .content
        .iter()
        .map(|part| match part {
            mcp::McpContent::Image { data, media_type } => {
                ToolResultContent::Image { media_type: media_type.clone(), data: data.clone() }
            }
            other => ToolResultContent::Text(text(other)),
        })
        .collect();
    if content.is_empty() {
        content.push(ToolResultContent::Text(result.text()));
    }
    let mut shown = json!(result.content);
    if let (Value::Array(parts), Some(structured)) = (&mut shown, &result.structured) {
        parts.push(json!({"type": "structured", "value": structured}));
    }
    ServerCallOutcome {
        notices: result.notices.iter().map(notice).collect(),
        outcome: ToolCallOutcome { for_room: shown, for_model: content, is_error: result.is_error },
    }
}

fn text(part: &mcp::McpContent) -> String {
    McpCallResult { content: vec![part.clone()], ..McpCallResult::default() }.text()
}

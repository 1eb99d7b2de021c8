//! The MCP manager as the toolbox of agents on bare models.

use super::{Called, Listed, Listing, Report, Toolbox, ToolboxFuture};
use crate::{
    TurnEvent,
    direct::{Content, Outcome},
};
use domain::mcp::{Secrets, Server};
use serde_json::{Map, Value, json};
use std::fmt;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;
use workbench::mcp::{self, CallOptions, CallResult, Manager, Progress};

#[derive(Clone)]
pub struct Managed(pub Manager);

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Managed")
    }
}

impl Toolbox for Managed {
    fn list(&self, servers: Vec<Server>) -> ToolboxFuture<Vec<Listing>> {
        let manager = self.0.clone();
        Box::pin(async move {
            let mut asking = JoinSet::new();
            for (order, server) in servers.into_iter().enumerate() {
                let manager = manager.clone();
                asking.spawn(async move {
                    let tools = manager.tools(&server).await;
                    let tools = tools
                        .map(|listing| listing.tools.iter().map(listed).collect())
                        .map_err(|failure| fit_to_tell(&server, &failure));
                    (order, Listing { server, tools })
                });
            }
            let mut listings = asking.join_all().await;
            listings.sort_by_key(|(order, _)| *order);
            listings.into_iter().map(|(_, listing)| listing).collect()
        })
    }

    fn call(
        &self,
        server: Server,
        tool: String,
        input: Map<String, Value>,
        cancel: CancellationToken,
        output: mpsc::Sender<Report>,
        call: String,
    ) -> ToolboxFuture<Called> {
        let manager = self.0.clone();
        Box::pin(async move {
            let (progress, mut told) = mpsc::channel::<Progress>(16);
            let options = CallOptions { progress: Some(progress), cancel, ..CallOptions::default() };
            let forward = async {
                while let Some(Progress { message, .. }) = told.recv().await {
                    if let Some(message) = message
                        && output.send((call.clone(), format!("{message}\n"))).await.is_err()
                    {
                        return;
                    }
                }
            };
            let (result, ()) = tokio::join!(manager.call(&server, &tool, input, options), forward);
            match result {
                Ok(result) => called(result),
                Err(failure) => {
                    let text = format!("{} ({})", fit_to_tell(&server, &failure), failure.code());
                    Called { outcome: Outcome::text(text, true), notices: Vec::new() }
                }
            }
        })
    }
}

/// What became of a server is for the room and the model: its keys are not.
fn fit_to_tell(server: &Server, failure: &mcp::Failure) -> String {
    Secrets::of(&server.config.transport).strike(failure.to_string())
}

fn listed(tool: &mcp::Tool) -> Listed {
    Listed {
        name: tool.name.clone(),
        description: tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default(),
        schema: Value::Object(tool.input_schema.clone()),
    }
}

/// The room keeps all that came; the model is shown text and images.
fn called(result: CallResult) -> Called {
    let notice =
        |notice: &mcp::Notice| TurnEvent::Status { status: "mcp_server_restarted".into(), message: notice.to_string() };
    let mut content: Vec<Content> = result
        .content
        .iter()
        .map(|part| match part {
            mcp::Content::Image { data, media_type } => {
                Content::Image { media_type: media_type.clone(), data: data.clone() }
            }
            other => Content::Text(text(other)),
        })
        .collect();
    if content.is_empty() {
        content.push(Content::Text(result.text()));
    }
    let mut shown = json!(result.content);
    if let (Value::Array(parts), Some(structured)) = (&mut shown, &result.structured) {
        parts.push(json!({"type": "structured", "value": structured}));
    }
    Called {
        notices: result.notices.iter().map(notice).collect(),
        outcome: Outcome { shown, content, is_error: result.is_error },
    }
}

fn text(part: &mcp::Content) -> String {
    CallResult { content: vec![part.clone()], ..CallResult::default() }.text()
}

//! The client under test by the MCP conformance suite: our manager, with logins automated by `login`.
//!
//! The suite starts it once per scenario, with the address of its own server as the last argument and the rest in the
//! environment. Two scenarios use elicitation, which the manager declines; they use the manager's transport with a
//! client that answers (`elicitation`).

mod elicitation;
mod login;

use anyhow::{Context as _, bail};
use domain::mcp::{McpTransport, NamedMcpServer};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};
use workbench::{
    mcp::{CallOptions, McpClientSettings, McpFailure, McpManager, McpTool},
    process::Supervisor,
};

/// Shorter than the suite's own timeout, so that the suite gets the error.
const DEADLINE: Duration = Duration::from_secs(110);
/// The maximum number of login attempts.
const LOGINS: usize = 3;
/// How often each tool is called if the scenario names none: the server may change its response in between.
const ROUNDS: usize = 3;

#[derive(Default, Deserialize)]
struct ScenarioContext {
    #[serde(default, rename = "toolCalls", alias = "tool_calls")]
    tool_calls: Vec<ScenarioToolCall>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

#[derive(Deserialize)]
struct ScenarioToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[expect(clippy::disallowed_methods, reason = "the suite configures its client this way")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().next_back().context("the last argument must be the server's address")?;
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").context("MCP_CONFORMANCE_SCENARIO is not set")?;
    let context = match variable("MCP_CONFORMANCE_CONTEXT") {
        Some(text) => serde_json::from_str(&text).context("the suite's context")?,
        None => ScenarioContext::default(),
    };
    let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let run = async {
        match scenario.as_str() {
            "elicitation-sep1034-client-defaults" | "sep-2322-client-request-state" => {
                elicitation::run(&url, &version).await
            }
            _ => through_the_manager(&url, &context).await,
        }
    };
    tokio::time::timeout(DEADLINE, run).await.with_context(|| format!("{scenario} takes too long"))?
}

async fn through_the_manager(url: &str, context: &ScenarioContext) -> anyhow::Result<()> {
    // No process is started here, so no keeper is needed.
    let manager = McpManager::new(Supervisor::new(PathBuf::new()), McpClientSettings::new(PathBuf::new()));
    let mut server =
        NamedMcpServer::new("conformance", McpTransport::Http { url: url.to_owned(), headers: BTreeMap::new() });
    let mut scopes = BTreeSet::new();
    let mut outcome = use_all(&manager, &server, context).await;
    for _ in 0..LOGINS {
        let Err(McpFailure::Unauthorized { challenge, .. }) = &outcome else { break };
        let token = login::token(url, challenge.clone(), &mut scopes, context).await?;
        let headers = [("authorization".to_owned(), format!("Bearer {token}"))].into();
        server.config.transport = McpTransport::Http { url: url.to_owned(), headers };
        outcome = use_all(&manager, &server, context).await;
    }
    manager.close().await;
    match outcome {
        Ok(()) => Ok(()),
        Err(failure) => bail!("the server {failure}"),
    }
}

async fn use_all(manager: &McpManager, server: &NamedMcpServer, context: &ScenarioContext) -> Result<(), McpFailure> {
    let listing = manager.tools(server).await?;
    if context.tool_calls.is_empty() {
        for tool in (0..ROUNDS).flat_map(|_| &listing.tools) {
            manager.call(server, &tool.name, sample_arguments(tool), CallOptions::default()).await?;
        }
    }
    for call in &context.tool_calls {
        manager.call(server, &call.name, call.arguments.clone(), CallOptions::default()).await?;
    }
    Ok(())
}

/// Returns a sample value for each required argument.
fn sample_arguments(tool: &McpTool) -> Map<String, Value> {
    let required = tool.input_schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let value = |name: &str| match tool.input_schema["properties"][name]["type"].as_str() {
        Some("number") => json!(1.5),
        Some("integer") => json!(1),
        Some("string") => json!("test"),
        Some("boolean") => json!(true),
        _ => Value::Null,
    };
    required.filter_map(Value::as_str).map(|name| (name.to_owned(), value(name))).collect()
}

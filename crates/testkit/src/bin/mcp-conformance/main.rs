//! The client that the MCP conformance suite examines: our manager, with a person's part in a login played by `login`.
//!
//! The suite starts it once per scenario, with the address of its own server as the last argument and the rest in the
//! environment. Two scenarios are about questions to a person, which the manager declines; they use the manager's
//! transport with a client that answers (`questions`).

mod login;
mod questions;

use anyhow::{Context as _, bail};
use domain::mcp::{Server, Transport};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};
use workbench::{
    mcp::{CallOptions, Failure, Manager, Settings, Tool},
    process::Supervisor,
};

/// Below the suite's own, so that it hears why.
const DEADLINE: Duration = Duration::from_secs(110);
/// Logins in a row; a server that is never content is given up.
const LOGINS: usize = 3;
/// How often each tool is called where the scenario names none: a server may change its mind in between.
const ROUNDS: usize = 3;

#[derive(Default, Deserialize)]
struct Context {
    #[serde(default, rename = "toolCalls", alias = "tool_calls")]
    tool_calls: Vec<ToolCall>,
    client_id: Option<String>,
    client_secret: Option<String>,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[expect(clippy::disallowed_methods, reason = "the suite speaks to its client this way")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().next_back().context("the last argument is the server's address")?;
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").context("the suite names the scenario")?;
    let context = match variable("MCP_CONFORMANCE_CONTEXT") {
        Some(text) => serde_json::from_str(&text).context("the suite's context")?,
        None => Context::default(),
    };
    let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let run = async {
        match scenario.as_str() {
            "elicitation-sep1034-client-defaults" | "sep-2322-client-request-state" => {
                questions::run(&url, &version).await
            }
            _ => through_the_manager(&url, &context).await,
        }
    };
    tokio::time::timeout(DEADLINE, run).await.with_context(|| format!("{scenario} takes too long"))?
}

async fn through_the_manager(url: &str, context: &Context) -> anyhow::Result<()> {
    // Nothing is started here, so nothing keeps it.
    let manager = Manager::new(Supervisor::new(PathBuf::new()), Settings::new(PathBuf::new()));
    let mut server = Server::new("conformance", Transport::Http { url: url.to_owned(), headers: BTreeMap::new() });
    let mut scopes = BTreeSet::new();
    let mut outcome = use_all(&manager, &server, context).await;
    for _ in 0..LOGINS {
        let Err(Failure::Unauthorized { challenge, .. }) = &outcome else { break };
        let token = login::token(url, challenge.clone(), &mut scopes, context).await?;
        let headers = [("authorization".to_owned(), format!("Bearer {token}"))].into();
        server.config.transport = Transport::Http { url: url.to_owned(), headers };
        outcome = use_all(&manager, &server, context).await;
    }
    manager.close().await;
    match outcome {
        Ok(()) => Ok(()),
        Err(failure) => bail!("the server {failure}"),
    }
}

async fn use_all(manager: &Manager, server: &Server, context: &Context) -> Result<(), Failure> {
    let listing = manager.tools(server).await?;
    if context.tool_calls.is_empty() {
        for tool in (0..ROUNDS).flat_map(|_| &listing.tools) {
            manager.call(server, &tool.name, plausible(tool), CallOptions::default()).await?;
        }
    }
    for call in &context.tool_calls {
        manager.call(server, &call.name, call.arguments.clone(), CallOptions::default()).await?;
    }
    Ok(())
}

/// Something for each argument that a tool must have.
fn plausible(tool: &Tool) -> Map<String, Value> {
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

//! Opens a session: loads an existing one or creates a new one, with its MCP servers, mode and model.

use super::{
    folder,
    preset::{ModelChoice, SessionLoadPolicy},
    process::{AcpLauncher, AcpProcess, protocol_error, status},
};
use crate::{AgentWorkspace, TurnEvent, agent_tokens::HostToolsAccess, gateway, host_tools, jsonrpc::CallError};
use domain::{mcp::McpTransport, time::Timestamp, usage::Cost};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

/// Includes the start of the MCP servers.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
const SETTING_TIMEOUT: Duration = Duration::from_secs(10);

const DISTRUSTED: &str = "The workspace has its own Gemini settings (.gemini), which could run programs without approval. \
                          Gemini runs without them, and also without MCP servers, Greenroom's tools and skills. \
                          Remove .gemini/settings.json and .gemini/.env from the workspace to enable these again.";

/// An open session.
#[derive(Clone, PartialEq, Debug)]
pub struct AcpSession {
    pub id: String,
    /// The vendor's total cost so far; unknown for a loaded session.
    pub cost_so_far: Option<Cost>,
}

impl AcpLauncher {
    /// Initializes the agent and opens the `wanted` session or a new one. Status messages for users are added to
    /// `notes`.
    pub async fn open(
        &self,
        agent: &mut AcpProcess,
        workspace: &AgentWorkspace,
        wanted: Option<&str>,
        notes: &mut Vec<TurnEvent>,
    ) -> Result<(), CallError> {
        agent.initialize().await?;
        self.can_steer.store(agent.capabilities.is_some_and(|can| can.steer), Ordering::Relaxed);
        if agent.launch_settings.overrides.restricted {
            notes.push(status("workplace_not_trusted", DISTRUSTED.to_owned()));
        }
        let servers = self.mcp_servers(agent, workspace, notes);
        let params = json!({"cwd": workspace.path_inside(&workspace.folder), "mcpServers": servers});
        let loaded = match wanted {
            Some(session) => self.load(agent, workspace, session, &params).await?,
            None => None,
        };
        let is_resumed = loaded.is_some();
        let (id, result) = match loaded {
            Some(result) => (wanted.unwrap_or_default().to_owned(), result),
            None => {
                let result = self.request_with_login(agent, "session/new", &params).await?;
                let id = result["sessionId"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
                (id.ok_or_else(|| protocol_error("it created a session without an id"))?, result)
            }
        };
        if !is_resumed && self.preset.load == SessionLoadPolicy::NotFresh {
            let remembered = folder::remember_session(&self.preset, workspace, &id, Timestamp::now());
            if let Err(error) = remembered {
                tracing::warn!(%error, agent = self.preset.name, "could not record the age of a session");
            }
        }
        self.set_mode(agent, &id, &result).await?;
        self.set_model(agent, workspace, &id, &result, notes).await?;
        agent.session = Some(AcpSession { id, cost_so_far: (!is_resumed).then_some(Cost::ZERO) });
        Ok(())
    }

    /// Returns `None` if the session does not exist any more or cannot be loaded.
    async fn load(
        &self,
        agent: &mut AcpProcess,
        workspace: &AgentWorkspace,
        session: &str,
        params: &Value,
    ) -> Result<Option<Value>, CallError> {
        let can_load = self.preset.load == SessionLoadPolicy::WhenSupported
            || folder::is_old_enough_to_load(&self.preset, workspace, session, Timestamp::now());
        if !agent.capabilities.is_some_and(|can| can.load) || !can_load {
            return Ok(None);
        }
        let mut params = params.clone();
        params["sessionId"] = json!(session);
        match self.request_with_login(agent, "session/load", &params).await {
            Ok(result) => {
                agent.drain_replay().await?;
                Ok(Some(result))
            }
            Err(error @ CallError::Refused { .. }) if !needs_login(&error) => {
                tracing::info!(agent = self.preset.name, %error, "could not load a session");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a request, and logs in first if the agent requires it.
    async fn request_with_login(
        &self,
        agent: &mut AcpProcess,
        method: &str,
        params: &Value,
    ) -> Result<Value, CallError> {
        match (agent.request(method, params.clone(), SESSION_TIMEOUT).await, &self.preset.auth) {
            (Err(error), Some(auth)) if needs_login(&error) => {
                agent.request("authenticate", json!({"methodId": auth}), SESSION_TIMEOUT).await?;
                agent.request(method, params.clone(), SESSION_TIMEOUT).await
            }
            (answer, _) => answer,
        }
    }

    fn mcp_servers(&self, agent: &AcpProcess, workspace: &AgentWorkspace, notes: &mut Vec<TurnEvent>) -> Vec<Value> {
        let pairs = |pairs: &BTreeMap<String, String>| -> Vec<Value> {
            pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
        };
        let mut servers = Vec::new();
        for server in &workspace.mcp_servers {
            let inside = agent.access.as_ref().map(|access| gateway::server_inside(server, access.reveal()));
            let server = match &inside {
                Some(Some(inside)) => inside,
                Some(None) => {
                    let detail =
                        format!("The MCP server {} was skipped: SSE does not work inside of a sandbox.", server.name);
                    notes.push(status("mcp_server_skipped", detail));
                    continue;
                }
                None => server,
            };
            let can = |kind: &str| agent.capabilities.is_some_and(|can| if kind == "sse" { can.sse } else { can.http });
            match &server.config.transport {
                _ if server.name == host_tools::SERVER_NAME => notes.push(status(
                    "mcp_server_skipped",
                    format!("The MCP server {} was skipped: this name is reserved for Greenroom.", server.name),
                )),
                McpTransport::Stdio { command, args, env } => {
                    servers.push(json!({"name": server.name, "command": command, "args": args, "env": pairs(env)}))
                }
                remote @ (McpTransport::Http { url, headers } | McpTransport::Sse { url, headers }) => {
                    let (kind, name) = (remote.kind(), &server.name);
                    if can(kind) {
                        servers.push(json!({"type": kind, "name": name, "url": url, "headers": pairs(headers)}));
                    } else {
                        let (agent, over) = (&self.preset.name, kind.to_uppercase());
                        let detail = format!("{agent} cannot use the MCP server {name}: it does not support {over}.");
                        notes.push(status("mcp_server_skipped", detail));
                    }
                }
            }
        }
        match self.host_tools_server(agent) {
            Some(server) => servers.push(server),
            None => notes.push(status(
                "mcp_server_skipped",
                format!(
                    "{} has no Greenroom tools inside of a sandbox: it does not support MCP over HTTP.",
                    self.preset.name
                ),
            )),
        }
        servers
    }

    /// The MCP server configuration of the host tools.
    fn host_tools_server(&self, agent: &AcpProcess) -> Option<Value> {
        let (name, HostToolsAccess { address, program, .. }) = (host_tools::SERVER_NAME, &self.host_tools_endpoint);
        let is_inside = agent.access.is_some();
        let server = match is_inside {
            true => format!("http://127.0.0.1:{}", gateway::HOST_TOOLS_PORT),
            false => format!("http://{address}"),
        };
        let variable = |name: &str, value: &str| json!({"name": name, "value": value});
        // With a proxy, some agents also send local requests to it, which would reveal the token. Our own program
        // bypasses the proxy.
        // Inside, the proxy is not used for this address.
        if agent.capabilities.is_some_and(|can| can.http) && (is_inside || !agent.is_proxied) {
            let authorization = variable("Authorization", &format!("Bearer {}", agent.agent_token.reveal()));
            return Some(
                json!({"type": "http", "name": name, "url": format!("{server}/mcp"), "headers": [authorization]}),
            );
        }
        if is_inside {
            return None;
        }
        // In the environment, because a command line is visible to other users.
        let mut env =
            vec![variable("GREENROOM_SERVER", &server), variable("GREENROOM_TOKEN", agent.agent_token.reveal())];
        env.extend(["NO_PROXY", "no_proxy"].map(|name| variable(name, &address.ip().to_string())));
        Some(json!({"name": name, "command": program, "args": ["mcp"], "env": env}))
    }

    /// Selects the mode in which the agent requests permissions. Without it, the tool policy would have no effect.
    async fn set_mode(&self, agent: &mut AcpProcess, session: &str, result: &Value) -> Result<(), CallError> {
        let Some(mode) = self.preset.mode else { return Ok(()) };
        if result["modes"]["currentModeId"] == mode {
            return Ok(());
        }
        let offered = result["modes"]["availableModes"].as_array().into_iter().flatten();
        if !offered.into_iter().any(|offered| offered["id"] == mode) {
            return Err(protocol_error(&format!(
                "it does not have the mode {mode:?}, which is required for approvals; update it"
            )));
        }
        agent.request("session/set_mode", json!({"sessionId": session, "modeId": mode}), SETTING_TIMEOUT).await?;
        Ok(())
    }

    async fn set_model(
        &self,
        agent: &mut AcpProcess,
        workspace: &AgentWorkspace,
        session: &str,
        result: &Value,
        notes: &mut Vec<TurnEvent>,
    ) -> Result<(), CallError> {
        let (Some(model), ModelChoice::Session) = (&workspace.agent.spec.model, self.preset.model) else {
            return Ok(());
        };
        let options = result["configOptions"].as_array().into_iter().flatten();
        let option = options.into_iter().find(|option| option["category"] == "model" || option["id"] == "model");
        let (method, params) = if let Some(option) = option {
            let params = json!({"sessionId": session, "configId": option["id"], "value": model});
            ("session/set_config_option", params)
        } else if result["models"].is_object() {
            ("session/set_model", json!({"sessionId": session, "modelId": model}))
        } else {
            let message = format!("{} does not support choosing a model; it uses its default.", self.preset.name);
            notes.push(status("model_ignored", message));
            return Ok(());
        };
        match agent.request(method, params, SETTING_TIMEOUT).await {
            Err(CallError::Refused { message, .. }) => {
                let message =
                    format!("{} rejected the model {model} and uses its default. ({message})", self.preset.name);
                notes.push(status("model_ignored", message));
                Ok(())
            }
            answer => answer.map(drop),
        }
    }
}

/// Whether the agent requires a login.
fn needs_login(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code: -32000, .. })
}

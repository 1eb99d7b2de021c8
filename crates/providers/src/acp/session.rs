//! How an agent's session is opened: an old one loaded, or a new one made, with its MCP servers, its mode and its model.

use super::{
    agent::{Agent, Maker, status, wrong},
    folder,
    preset::{Load, ModelChoice},
};
use crate::{
    Place, TurnEvent,
    host_tools::{self, pass::Door},
    jsonrpc::CallError,
};
use domain::{mcp::Transport, time::Timestamp, usage::Cost};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Includes the start of the MCP servers.
const SESSION: Duration = Duration::from_secs(60);
const SETTING: Duration = Duration::from_secs(10);

const DISTRUSTED: &str = "The room's folder has Gemini settings of its own (.gemini), which could run programs unasked. \
                          Gemini works without them, and also without MCP servers, Greenroom's tools and skills. \
                          Remove .gemini/settings.json and .gemini/.env there to have them back.";

/// The session, and what is known of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Opened {
    pub id: String,
    /// What the vendor said it has cost so far; not known of a session that was loaded.
    pub spent: Option<Cost>,
}

impl Maker {
    /// Greets the agent and opens the session that is wanted, or a new one. What people should know of it goes to `notes`.
    pub async fn open(
        &self,
        agent: &mut Agent,
        place: &Place,
        wanted: Option<&str>,
        notes: &mut Vec<TurnEvent>,
    ) -> Result<(), CallError> {
        agent.initialize().await?;
        if agent.made_for.surroundings.restricted {
            notes.push(status("workplace_not_trusted", DISTRUSTED.to_owned()));
        }
        let servers = self.mcp_servers(agent, place, notes);
        let params = json!({"cwd": place.workplace, "mcpServers": servers});
        let loaded = match wanted {
            Some(session) => self.load(agent, place, session, &params).await?,
            None => None,
        };
        let is_resumed = loaded.is_some();
        let (id, result) = match loaded {
            Some(result) => (wanted.unwrap_or_default().to_owned(), result),
            None => {
                let result = self.admitted(agent, "session/new", &params).await?;
                let id = result["sessionId"].as_str().filter(|id| !id.is_empty()).map(str::to_owned);
                (id.ok_or_else(|| wrong("it made a session without an id"))?, result)
            }
        };
        if !is_resumed && self.preset.load == Load::NotFresh {
            let remembered = folder::remember_session(&self.preset, place, &id, Timestamp::now());
            if let Err(error) = remembered {
                tracing::warn!(%error, agent = self.preset.name, "the age of a session is not remembered");
            }
        }
        self.mode(agent, &id, &result).await?;
        self.model(agent, place, &id, &result, notes).await?;
        agent.session = Some(Opened { id, spent: (!is_resumed).then_some(Cost::ZERO) });
        Ok(())
    }

    /// `None` when it is not there any more, or cannot be had.
    async fn load(
        &self,
        agent: &mut Agent,
        place: &Place,
        session: &str,
        params: &Value,
    ) -> Result<Option<Value>, CallError> {
        let settled =
            self.preset.load == Load::Declared || folder::is_settled(&self.preset, place, session, Timestamp::now());
        if !agent.can.is_some_and(|can| can.load) || !settled {
            return Ok(None);
        }
        let mut params = params.clone();
        params["sessionId"] = json!(session);
        match self.admitted(agent, "session/load", &params).await {
            Ok(result) => {
                agent.listen_out().await?;
                Ok(Some(result))
            }
            Err(error @ CallError::Refused { .. }) if !is_stranger(&error) => {
                tracing::info!(agent = self.preset.name, %error, "a session could not be loaded");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A request that may need a login first.
    async fn admitted(&self, agent: &mut Agent, method: &str, params: &Value) -> Result<Value, CallError> {
        match (agent.ask(method, params.clone(), SESSION).await, &self.preset.auth) {
            (Err(error), Some(auth)) if is_stranger(&error) => {
                agent.ask("authenticate", json!({"methodId": auth}), SESSION).await?;
                agent.ask(method, params.clone(), SESSION).await
            }
            (answer, _) => answer,
        }
    }

    fn mcp_servers(&self, agent: &Agent, place: &Place, notes: &mut Vec<TurnEvent>) -> Vec<Value> {
        let pairs = |pairs: &BTreeMap<String, String>| -> Vec<Value> {
            pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
        };
        let mut servers = Vec::new();
        for server in &place.mcp_servers {
            let can = |kind: &str| agent.can.is_some_and(|can| if kind == "sse" { can.sse } else { can.http });
            match &server.config.transport {
                _ if server.name == host_tools::SERVER => notes.push(status(
                    "mcp_server_skipped",
                    format!("The MCP server {} was left out: Greenroom's own has that name.", server.name),
                )),
                Transport::Stdio { command, args, env } => {
                    servers.push(json!({"name": server.name, "command": command, "args": args, "env": pairs(env)}))
                }
                remote @ (Transport::Http { url, headers } | Transport::Sse { url, headers }) => {
                    let (kind, name) = (remote.kind(), &server.name);
                    if can(kind) {
                        servers.push(json!({"type": kind, "name": name, "url": url, "headers": pairs(headers)}));
                    } else {
                        let (agent, over) = (&self.preset.name, kind.to_uppercase());
                        let detail = format!("{agent} cannot use the MCP server {name}: it takes none over {over}.");
                        notes.push(status("mcp_server_skipped", detail));
                    }
                }
            }
        }
        servers.push(self.own_server(agent));
        servers
    }

    /// Greenroom itself, for the host tools.
    fn own_server(&self, agent: &Agent) -> Value {
        let (name, Door { address, program, .. }) = (host_tools::SERVER, &self.door);
        let server = format!("http://{address}");
        let variable = |name: &str, value: &str| json!({"name": name, "value": value});
        // Not every agent spares this machine when it asks a proxy for everything else, and the proxy would learn the secret.
        // Our own program is told to.
        if agent.can.is_some_and(|can| can.http) && !agent.is_proxied {
            let authorization = variable("Authorization", &format!("Bearer {}", agent.pass.reveal()));
            return json!({"type": "http", "name": name, "url": format!("{server}/mcp"), "headers": [authorization]});
        }
        // In its environment: on a command line others could read it.
        let mut env = vec![variable("GREENROOM_SERVER", &server), variable("GREENROOM_TOKEN", agent.pass.reveal())];
        env.extend(["NO_PROXY", "no_proxy"].map(|name| variable(name, &address.ip().to_string())));
        json!({"name": name, "command": program, "args": ["mcp"], "env": env})
    }

    /// The mode in which the agent asks before it acts. Without it, the tool policy would mean nothing.
    async fn mode(&self, agent: &mut Agent, session: &str, result: &Value) -> Result<(), CallError> {
        let Some(mode) = self.preset.mode else { return Ok(()) };
        if result["modes"]["currentModeId"] == mode {
            return Ok(());
        }
        let offered = result["modes"]["availableModes"].as_array().into_iter().flatten();
        if !offered.into_iter().any(|offered| offered["id"] == mode) {
            return Err(wrong(&format!("it has no mode {mode:?}, in which it asks before it acts; update it")));
        }
        agent.ask("session/set_mode", json!({"sessionId": session, "modeId": mode}), SETTING).await?;
        Ok(())
    }

    async fn model(
        &self,
        agent: &mut Agent,
        place: &Place,
        session: &str,
        result: &Value,
        notes: &mut Vec<TurnEvent>,
    ) -> Result<(), CallError> {
        let (Some(model), ModelChoice::Session) = (&place.agent.spec.model, self.preset.model) else { return Ok(()) };
        let options = result["configOptions"].as_array().into_iter().flatten();
        let option = options.into_iter().find(|option| option["category"] == "model" || option["id"] == "model");
        let (method, params) = if let Some(option) = option {
            let params = json!({"sessionId": session, "configId": option["id"], "value": model});
            ("session/set_config_option", params)
        } else if result["models"].is_object() {
            ("session/set_model", json!({"sessionId": session, "modelId": model}))
        } else {
            let message = format!("{} does not let the model be chosen; it uses its own.", self.preset.name);
            notes.push(status("model_ignored", message));
            return Ok(());
        };
        match agent.ask(method, params, SETTING).await {
            Err(CallError::Refused { message, .. }) => {
                let message =
                    format!("{} does not take the model {model}; it uses its own. ({message})", self.preset.name);
                notes.push(status("model_ignored", message));
                Ok(())
            }
            answer => answer.map(drop),
        }
    }
}

/// Whether the agent wants a login first.
fn is_stranger(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code: -32000, .. })
}

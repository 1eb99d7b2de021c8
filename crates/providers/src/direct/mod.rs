//! Agents directly on a model API: Anthropic's Messages, or chat completions of OpenAI and compatible servers, with our
//! own tool loop and tools.
//!
//! `wire` encodes and decodes the two APIs and is pure, `client` sends the requests. `tool_loop` is a pure state
//! machine, `turn` runs its effects. `tools` are the tools of such an agent; `xml` is the call syntax for models
//! without native tool calls. Nothing is stored between turns: the conversation is in the room.

mod client;
mod conversation;
mod prompt;
mod retry;
mod skills;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tool_loop;
pub mod tools;
mod turn;
mod wire;
pub mod xml;

pub use client::{ApiKey, Deadlines, is_local};
pub use conversation::ToolResultContent;
pub use tool_loop::ToolCallOutcome;
pub use wire::ModelApiKind;

use crate::{Capabilities, InspectFuture, Inspection, Provider, TurnChannel, TurnFuture, TurnRequest};
use client::ModelClient;
use domain::{agent::AgentSpec, mcp::url_without_secrets};
use std::sync::Arc;
use tools::McpToolbox;

/// One API at one address, and its provider name.
#[derive(Clone, Debug)]
pub struct DirectProviderConfig {
    pub name: String,
    pub api: ModelApiKind,
    pub base_url: String,
    pub key: Option<ApiKey>,
    /// The environment variable of the key; `None` if no key is needed.
    pub key_variable: Option<String>,
    pub deadlines: Deadlines,
    /// How often a request is retried after a transient failure.
    pub retries: u32,
    pub default_model: Option<String>,
    /// In tokens, for agents that do not set it.
    pub context_window: u32,
    pub answer_tokens: u32,
}

impl DirectProviderConfig {
    /// Returns advice if a key is needed and missing.
    fn missing_key(&self) -> Option<String> {
        let variable = self.key_variable.as_ref().filter(|_| self.key.is_none() && !is_local(&self.base_url))?;
        Some(format!("{} needs a key: set {variable} in the environment of the server and restart it.", self.name))
    }

    fn key_advice(&self) -> String {
        match &self.key_variable {
            Some(variable) => {
                format!("Check the key in {variable}, in the environment of the server.")
            }
            None => format!(
                "The server at {} requires a key: set the name of its environment variable in the configuration.",
                url_without_secrets(&self.base_url)
            ),
        }
    }

    fn is_openai_service(&self) -> bool {
        self.api == ModelApiKind::Chat && url_without_secrets(&self.base_url).contains("://api.openai.com")
    }
}

#[derive(Debug)]
struct DirectShared {
    config: DirectProviderConfig,
    client: ModelClient,
    toolbox: Arc<dyn McpToolbox>,
}

#[derive(Debug)]
pub struct DirectProvider(Arc<DirectShared>);

impl DirectProvider {
    pub fn new(config: DirectProviderConfig, toolbox: Arc<dyn McpToolbox>) -> Self {
        let client = ModelClient::new(config.api, &config.base_url, config.key.clone(), config.deadlines.clone());
        Self(Arc::new(DirectShared { config, client, toolbox }))
    }
}

impl Provider for DirectProvider {
    fn name(&self) -> &str {
        &self.0.config.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: false, steer: true, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn supports_model_options(&self) -> bool {
        true
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), String> {
        let is_usable = |model: &String| !model.trim().is_empty() && !model.chars().any(char::is_control);
        match &spec.model {
            Some(model) if !is_usable(model) => Err("model: must be the name of a model of this API".into()),
            None if self.0.config.default_model.is_none() => {
                Err(format!("model: required, because {} has no default model", self.0.config.name))
            }
            _ => spec
                .model_options
                .as_ref()
                .map_or(Ok(()), |options| options.check().map_err(|error| format!("model_options: {error}"))),
        }
    }

    fn inspect(&self) -> InspectFuture {
        let config = &self.0.config;
        let found = match config.missing_key() {
            Some(advice) => Inspection::Missing { advice },
            None => {
                let key = match &config.key_variable {
                    Some(variable) if config.key.is_some() => format!("key from {variable}"),
                    _ => "no key".to_owned(),
                };
                Inspection::Ready {
                    version: Some(format!("{}, {key}", url_without_secrets(&config.base_url))),
                    program: None,
                }
            }
        };
        Box::pin(async move { found })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.0), request, channel))
    }
}

//! Agents directly on a model API: Anthropic's Messages, OpenAI's Responses, chat completions of OpenAI and compatible
//! servers, or Google's Gemini API, with our own tool loop and tools.
//!
//! `wire` encodes and decodes the APIs and is pure, `client` sends the requests, with what `access` says. `tool_loop` is a pure state
//! machine, `turn` runs its effects. `attachments` turns files into parts
//! of a request. `tools` are the tools of such an agent; `xml` is the call syntax for models
//! without native tool calls. Nothing is stored between turns: the conversation is in the room.

mod access;
mod attachments;
mod client;
mod conversation;
mod prompt;
mod retry;
mod settings;
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

pub use access::{ApiAccess, ApiHeader, ApiKey, is_at_host, is_local};
pub use client::Deadlines;
pub use conversation::ToolResultContent;
pub use tool_loop::ToolCallOutcome;
pub use wire::ModelApiKind;

use crate::{Capabilities, InspectFuture, Inspection, Provider, RefusedSetting, TurnChannel, TurnFuture, TurnRequest};
use client::ModelClient;
use domain::{agent::AgentSpec, mcp::url_without_secrets, prices::PriceSource};
use std::sync::Arc;
use tools::McpToolbox;

/// Where OpenAI's own service is.
pub const OPENAI_HOST: &str = "api.openai.com";

/// One API at one address, and its provider name.
#[derive(Clone, Debug)]
pub struct DirectProviderConfig {
    pub name: String,
    pub api: ModelApiKind,
    pub access: ApiAccess,
    pub prices: PriceSource,
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
        let access = &self.access;
        let variables =
            access.key_variable_names().filter(|_| !access.is_authenticated() && !is_local(&access.base_url))?;
        Some(format!("{} needs a key: set {variables} in the environment of the server and restart it.", self.name))
    }

    fn key_advice(&self) -> String {
        match self.access.key_variable_names() {
            Some(variables) => {
                format!("Check the key in {variables}, in the environment of the server.")
            }
            None => format!(
                "The server at {} requires a key: set the name of its environment variable in the configuration.",
                url_without_secrets(&self.access.base_url)
            ),
        }
    }

    fn is_openai_service(&self) -> bool {
        is_at_host(&self.access.base_url, OPENAI_HOST)
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
        let client = ModelClient::new(config.api, config.access.clone(), config.deadlines.clone());
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

    fn price_source(&self) -> PriceSource {
        self.0.config.prices
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), RefusedSetting> {
        let is_usable = |model: &String| !model.trim().is_empty() && !model.chars().any(char::is_control);
        match &spec.model {
            Some(model) if !is_usable(model) => Err(RefusedSetting {
                pointer: "/model",
                detail: "model: must be the name of a model of this API".into(),
            }),
            None if self.0.config.default_model.is_none() => {
                let detail = format!("model: required, because {} has no default model", self.0.config.name);
                Err(RefusedSetting { pointer: "/model", detail })
            }
            _ => spec.model_options.as_ref().map_or(Ok(()), |options| settings::check(self.0.config.api, options)),
        }
    }

    fn inspect(&self) -> InspectFuture {
        let config = &self.0.config;
        let found = match config.missing_key() {
            Some(advice) => Inspection::Missing { advice },
            None => Inspection::Ready { version: Some(config.access.describe()), program: None },
        };
        Box::pin(async move { found })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.0), request, channel))
    }
}

//! Agents on bare model APIs: Anthropic's Messages, and chat completions of OpenAI or whoever speaks them, with a loop and
//! tools of our own.
//!
//! `wire` knows the two APIs and is pure, `client` talks to them. `machine` is the loop and is pure, `turn` carries out what
//! it says. `tools` are those that such an agent has; `xml` is how a model calls them that knows no other way. Nothing is
//! kept between turns: what was said is in the room.

mod client;
mod conversation;
mod machine;
mod prompt;
mod retry;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod tools;
mod turn;
mod wire;
pub mod xml;

pub use client::{Deadlines, Key, is_local};
pub use conversation::Content;
pub use machine::Outcome;
pub use wire::Api;

use crate::{Capabilities, InspectFuture, Inspection, Provider, TurnChannel, TurnFuture, TurnRequest};
use client::Client;
use domain::{agent::AgentSpec, mcp::public_part};
use std::sync::Arc;
use tools::Toolbox;

/// One API at one address, under the name that agents say.
#[derive(Clone, Debug)]
pub struct Config {
    pub name: String,
    pub api: Api,
    pub base_url: String,
    pub key: Option<Key>,
    /// The variable that the key is looked for in; `None` where none is needed.
    pub key_variable: Option<String>,
    pub deadlines: Deadlines,
    /// How often a question that failed in a way that may pass is asked again.
    pub retries: u32,
    pub default_model: Option<String>,
    /// In tokens, for agents that do not say.
    pub context_window: u32,
    pub answer_tokens: u32,
}

impl Config {
    /// What to do when there is no key where one is needed.
    fn missing_key(&self) -> Option<String> {
        let variable = self.key_variable.as_ref().filter(|_| self.key.is_none() && !is_local(&self.base_url))?;
        Some(format!(
            "{} needs a key: set {variable} in the environment that the server is started in, and start it again.",
            self.name
        ))
    }

    fn key_advice(&self) -> String {
        match &self.key_variable {
            Some(variable) => {
                format!("Look at the key in {variable}, in the environment that the server is started in.")
            }
            None => format!(
                "The server at {} wants a key: name its variable in the configuration.",
                public_part(&self.base_url)
            ),
        }
    }

    fn is_vendors_own(&self) -> bool {
        self.api == Api::Chat && public_part(&self.base_url).contains("://api.openai.com")
    }
}

#[derive(Debug)]
struct Shared {
    config: Config,
    client: Client,
    toolbox: Arc<dyn Toolbox>,
}

#[derive(Debug)]
pub struct Direct(Arc<Shared>);

impl Direct {
    pub fn new(config: Config, toolbox: Arc<dyn Toolbox>) -> Self {
        let client = Client::new(config.api, &config.base_url, config.key.clone(), config.deadlines.clone());
        Self(Arc::new(Shared { config, client, toolbox }))
    }
}

impl Provider for Direct {
    fn name(&self) -> &str {
        &self.0.config.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: false, steer: true, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn takes_model_options(&self) -> bool {
        true
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), String> {
        let is_usable = |model: &String| !model.trim().is_empty() && !model.chars().any(char::is_control);
        match &spec.model {
            Some(model) if !is_usable(model) => Err("model: give the name of a model of this API".into()),
            None if self.0.config.default_model.is_none() => {
                Err(format!("model: name one; {} has none that is always there", self.0.config.name))
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
                Inspection::Ready { version: Some(format!("{}, {key}", public_part(&config.base_url))), program: None }
            }
        };
        Box::pin(async move { found })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.0), request, channel))
    }
}

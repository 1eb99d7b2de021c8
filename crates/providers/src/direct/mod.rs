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
mod endpoints;
mod http;
mod models;
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
pub(crate) mod wire;
pub mod xml;

pub use access::{AccessSource, ApiAccess, ApiHeader, ApiKey, is_at_host, is_local};
pub use client::Deadlines;
pub use conversation::ToolResultContent;
pub use endpoints::{LocalServer, ModelEndpoints};
pub use http::ModelHttp;
pub use models::{ListedModel, MAX_MODELS};
pub use tool_loop::ToolCallOutcome;
pub use wire::ModelApiKind;

use crate::{
    Capabilities, InspectFuture, Inspection, ListModelsFuture, ModelAccess, ModelApiUse, ModelListError, Provider,
    RefusedSetting, TurnChannel, TurnFuture, TurnRequest,
};
use client::ModelClient;
use domain::{
    agent::{AgentSpec, Thinking},
    mcp::url_without_secrets,
    prices::PriceSource,
    provider_settings::WorkspaceProviders,
};
use std::{sync::Arc, time::Duration};
use tools::McpToolbox;
use wire::failure::{ModelFailure, ModelFailureKind};

/// Where OpenAI's own service is.
pub const OPENAI_HOST: &str = "api.openai.com";

/// How long listing models may take. People wait for it.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// One API at one address, and its provider name.
#[derive(Clone, Debug)]
pub struct DirectProviderConfig {
    pub name: String,
    /// What people call it.
    pub label: String,
    /// The provider under which a workspace sets the key and the address.
    pub settings: String,
    /// Whether it is the API of a vendor, at whatever address.
    pub is_vendor: bool,
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
        Some(format!(
            "{} needs a key: add one in the provider settings, or set {variables} in the environment of the server and \
             restart it.",
            self.name
        ))
    }

    fn key_advice(&self) -> String {
        match (self.access.source(), self.access.key_variable_names()) {
            (Some(AccessSource::Settings), _) => "Check the key in the provider settings.".to_owned(),
            (_, Some(variables)) => {
                format!(
                    "Check the key in {variables}, in the environment of the server, or set one in the provider settings."
                )
            }
            (_, None) => format!(
                "The server at {} requires a key: set one in the provider settings.",
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
    http: ModelHttp,
}

#[derive(Debug)]
pub struct DirectProvider(Arc<DirectShared>);

impl DirectProvider {
    pub fn new(config: DirectProviderConfig, toolbox: Arc<dyn McpToolbox>, http: ModelHttp) -> Self {
        let client = ModelClient::new(config.api, config.access.clone(), config.deadlines.clone(), http.clone());
        Self(Arc::new(DirectShared { config, client, toolbox, http }))
    }
}

impl Provider for DirectProvider {
    fn name(&self) -> &str {
        &self.0.config.name
    }

    fn label(&self) -> &str {
        &self.0.config.label
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: false, steer: true, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn efforts(&self) -> &'static [Thinking] {
        &[Thinking::Off, Thinking::Low, Thinking::Medium, Thinking::High]
    }

    fn supports_model_options(&self) -> bool {
        true
    }

    fn price_source(&self) -> PriceSource {
        self.0.config.prices
    }

    fn with_settings(&self, settings: &WorkspaceProviders) -> Option<Arc<dyn Provider>> {
        let DirectShared { config, toolbox, http, .. } = &*self.0;
        let own = settings.get(&config.settings).filter(|_| settings.has_own_access(&config.settings))?;
        let mut config = config.clone();
        if own.base_url.as_ref().is_some_and(|url| !access::is_same_host(url, &config.access.base_url)) {
            // What another server charges is not known.
            config.prices = PriceSource::Unknown;
        }
        config.access = config.access.with_settings(own, settings.is_operators);
        Some(Arc::new(Self::new(config, Arc::clone(toolbox), http.clone())))
    }

    fn is_vendor_api(&self) -> bool {
        self.0.config.is_vendor
    }

    fn model_apis(&self) -> Vec<ModelApiUse> {
        let DirectProviderConfig { settings, access, .. } = &self.0.config;
        let key_variables = access.key_variable_names().unwrap_or_default();
        vec![ModelApiUse { settings: settings.clone(), has_server_key: access.is_authenticated(), key_variables }]
    }

    fn model_access(&self) -> Option<ModelAccess> {
        let access = &self.0.config.access;
        Some(ModelAccess {
            base_url: url_without_secrets(&access.base_url),
            has_key: access.is_authenticated(),
            source: access.source(),
        })
    }

    fn list_models(&self) -> ListModelsFuture {
        let DirectShared { config, client, .. } = &*self.0;
        let (missing_key, key_advice, client) = (config.missing_key(), config.key_advice(), client.clone());
        Box::pin(async move {
            if let Some(advice) = missing_key {
                return Err(ModelListError::Key(advice));
            }
            client.list_models(LIST_TIMEOUT).await.map_err(|failure| list_error(failure, &key_advice))
        })
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
            Some(advice) => Inspection::NeedsKey { advice },
            None => Inspection::Ready { version: Some(config.access.describe()), program: None },
        };
        Box::pin(async move { found })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.0), request, channel))
    }
}

fn list_error(failure: ModelFailure, key_advice: &str) -> ModelListError {
    let mut message = failure.message;
    if let Some(first) = message.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    match failure.kind {
        ModelFailureKind::Authentication => ModelListError::Key(format!("{message}. {key_advice}")),
        ModelFailureKind::Unreachable | ModelFailureKind::Timeout | ModelFailureKind::Disconnected => {
            ModelListError::Unreachable(message)
        }
        _ => ModelListError::Other(message),
    }
}

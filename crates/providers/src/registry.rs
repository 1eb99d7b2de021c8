//! The providers of this server, by name.

use crate::{
    AgentSandboxes, Provider, agent_tokens::AgentTokens, direct::ModelEndpoints, gateway::ModelGateway,
    login_grants::LoginGrants,
};
use domain::{owner::Owner, provider_settings::WorkspaceProviders};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Clone, Default)]
pub struct ProviderRegistry {
    providers: Arc<BTreeMap<String, Arc<dyn Provider>>>,
    agent_tokens: AgentTokens,
    login_grants: LoginGrants,
    sandboxes: AgentSandboxes,
    gateway: ModelGateway,
    endpoints: Option<Arc<ModelEndpoints>>,
}

impl ProviderRegistry {
    pub fn new(providers: impl IntoIterator<Item = Arc<dyn Provider>>) -> Self {
        let providers = providers.into_iter().map(|provider| (provider.name().to_owned(), provider));
        Self { providers: Arc::new(providers.collect()), ..Self::default() }
    }

    /// Sets the agent tokens that the providers issue to their agents' programs.
    pub fn with_agent_tokens(self, passes: AgentTokens) -> Self {
        Self { agent_tokens: passes, ..self }
    }

    pub fn with_login_grants(self, login_grants: LoginGrants) -> Self {
        Self { login_grants, ..self }
    }

    /// Why an agent of this workspace may not use this provider, and what to do; `None` if it may.
    pub fn login_refusal(
        &self,
        workspace: &Owner,
        provider: &dyn Provider,
        settings: &WorkspaceProviders,
    ) -> Option<String> {
        let is_refused = !self.login_grants.allow(workspace) && provider.lends_login(settings);
        let (name, workspace) = (provider.name(), workspace.as_str());
        is_refused.then(|| {
            format!(
                "The programs of {name} use a login or a key of this server, which is not lent to the workspace {workspace}. Set \
                 a key of your own in the provider settings, choose another provider, or ask the operator to add {workspace} to agents.lend_login_to in the server's configuration."
            )
        })
    }

    /// Sets where the programs of agents run, and the gateway by which they reach model APIs from inside.
    pub fn with_sandboxes(self, sandboxes: AgentSandboxes, gateway: ModelGateway) -> Self {
        Self { sandboxes, gateway, ..self }
    }

    pub fn sandboxes(&self) -> &AgentSandboxes {
        &self.sandboxes
    }

    pub fn gateway(&self) -> &ModelGateway {
        &self.gateway
    }

    /// Sets how the model APIs that workspaces add themselves are called.
    pub fn with_endpoints(self, endpoints: ModelEndpoints) -> Self {
        Self { endpoints: Some(Arc::new(endpoints)), ..self }
    }

    pub fn endpoints(&self) -> Option<&Arc<ModelEndpoints>> {
        self.endpoints.as_ref()
    }

    pub fn agent_tokens(&self) -> &AgentTokens {
        &self.agent_tokens
    }

    /// The provider as a workspace with these settings uses it: with its own key and address, or one that it has added.
    pub fn resolve(&self, name: &str, settings: &WorkspaceProviders) -> Option<Arc<dyn Provider>> {
        match self.providers.get(name) {
            Some(known) => Some(known.with_settings(settings).unwrap_or_else(|| Arc::clone(known))),
            None => self.endpoints.as_ref()?.provider(name, settings),
        }
    }

    /// A provider of the server, as all workspaces have it.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.providers.get(name).cloned()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.providers.values()
    }

    /// The names for error messages: `scripted, claude_code`.
    pub fn names(&self) -> String {
        self.providers.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Debug for ProviderRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.providers.keys()).finish()
    }
}

//! The providers of this server, by name.

use crate::{AgentSandboxes, Provider, agent_tokens::AgentTokens, gateway::ModelGateway, login_grants::LoginGrants};
use domain::owner::Owner;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Clone, Default)]
pub struct ProviderRegistry {
    providers: Arc<BTreeMap<String, Arc<dyn Provider>>>,
    agent_tokens: AgentTokens,
    login_grants: LoginGrants,
    sandboxes: AgentSandboxes,
    gateway: ModelGateway,
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
    pub fn login_refusal(&self, workspace: &Owner, provider: &dyn Provider) -> Option<String> {
        let is_refused = provider.lends_login() && !self.login_grants.allow(workspace);
        let (name, workspace) = (provider.name(), workspace.as_str());
        is_refused.then(|| {
            format!(
                "The programs of {name} use a login or a key of this server, which is not lent to the workspace {workspace}. Choose \
                 another provider, or ask the operator to add {workspace} to agents.lend_login_to in the server's configuration."
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

    pub fn agent_tokens(&self) -> &AgentTokens {
        &self.agent_tokens
    }

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

//! The providers of a workspace: those of the server, with the workspace's own keys, addresses and defaults, and those
//! that it has added. Settings are read for each run, so a change holds for the next one, on every server.

use crate::Engine;
use domain::{agent::AgentSpec, owner::Owner, provider_settings::WorkspaceProviders, run::RunError};
use providers::Provider;
use std::sync::Arc;
use store::StoreError;

impl Engine {
    /// What the workspace has set, as far as it may concern this provider.
    pub(crate) async fn settings_for(
        &self,
        owner: &Owner,
        provider: &str,
    ) -> Result<Arc<WorkspaceProviders>, StoreError> {
        match self.providers().get(provider) {
            Some(known) if !known.uses_settings() => Ok(Arc::new(WorkspaceProviders::none(owner))),
            _ => Ok(Arc::new(self.store().provider_settings(owner).await?)),
        }
    }

    /// The provider of this name in a workspace.
    pub(crate) async fn provider_of(&self, owner: &Owner, name: &str) -> Result<Option<Arc<dyn Provider>>, StoreError> {
        Ok(self.providers().resolve(name, &*self.settings_for(owner, name).await?))
    }

    /// The provider that executes a run. The error ends the run.
    pub(crate) fn provider_for_run(
        &self,
        owner: &Owner,
        name: &str,
        settings: &WorkspaceProviders,
    ) -> Result<Arc<dyn Provider>, RunError> {
        let Some(provider) = self.providers().resolve(name, settings) else {
            let message = format!("this server has no provider {name:?}; it has: {}", self.provider_names(settings));
            return Err(RunError::new("no_provider", message));
        };
        if let Some(problem) = unreadable(&*provider, settings) {
            return Err(RunError::new("authentication_failed", problem));
        }
        // The grant may have been withdrawn since the agent was created.
        match self.providers().login_refusal(owner, &*provider, settings) {
            Some(message) => Err(RunError::new("login_not_lent", message)),
            None => Ok(provider),
        }
    }

    /// The names of all providers of a workspace, for error messages.
    pub(crate) fn provider_names(&self, settings: &WorkspaceProviders) -> String {
        let own = settings.settings.iter().filter(|(_, settings)| settings.is_endpoint).map(|(name, _)| name.as_str());
        std::iter::once(self.providers().names().as_str()).chain(own).collect::<Vec<_>>().join(", ")
    }
}

/// Why the settings of a provider's model APIs cannot be read. The server's key is not used instead.
pub(crate) fn unreadable(provider: &dyn Provider, settings: &WorkspaceProviders) -> Option<String> {
    let apis = provider.model_apis();
    let (name, problem) = apis.iter().find_map(|api| settings.unreadable.get_key_value(&api.settings))?;
    Some(format!("The settings of the provider {name} cannot be used: {problem}"))
}

/// Fills in what the agent leaves open and the workspace has set for the provider.
pub(crate) fn apply_defaults(spec: &mut AgentSpec, provider: &dyn Provider, settings: &WorkspaceProviders) {
    let Some(own) = settings.get(provider.name()) else { return };
    if spec.model.is_none() {
        spec.model.clone_from(&own.default_model);
    }
    if provider.supports_model_options() && own.limits != Default::default() {
        let options = spec.model_options.get_or_insert_default();
        options.context_window = options.context_window.or(own.limits.context_window);
        options.max_output_tokens = options.max_output_tokens.or(own.limits.max_output_tokens);
    }
}

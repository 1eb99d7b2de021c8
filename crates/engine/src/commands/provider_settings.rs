//! What a workspace sets for providers: keys, addresses, default models, limits, and model APIs of its own. Keys go in and
//! are never returned.

use super::ProviderView;
use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    permission::Permission,
    provider_settings::{InvalidProviderSetting, ModelLimits, ProviderSettings, WorkspaceProviders},
};
use providers::Provider;
use store::{IdempotentRequest, SettingsWrite};

/// A model API that a workspace adds: any server with chat completions.
#[derive(Debug, Clone)]
pub struct NewEndpoint {
    pub name: String,
    pub settings: ProviderSettings,
}

/// New settings of a provider. What is left out is cleared, but for the key.
#[derive(Clone, Default)]
pub struct SettingsPatch {
    /// `None` keeps the stored key, `Some(None)` removes it.
    pub key: Option<Option<String>>,
    pub base_url: Option<String>,
    pub label: Option<String>,
    pub default_model: Option<String>,
    pub limits: ModelLimits,
}

impl From<InvalidProviderSetting> for EngineError {
    fn from(InvalidProviderSetting { pointer, detail }: InvalidProviderSetting) -> Self {
        Self::refused(pointer, detail)
    }
}

impl Engine {
    /// Adds a model API under a name of its own.
    pub async fn create_endpoint(
        &self,
        actor: &Actor,
        endpoint: NewEndpoint,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<ProviderView, EngineError> {
        let owner = actor.require(Permission::ManageProviders)?;
        let NewEndpoint { name, settings } = endpoint;
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        if !(1..=64).contains(&name.len()) || !name.chars().all(letters) {
            let detail = "id: 1 to 64 lowercase letters, digits, _ and -".to_owned();
            return Err(EngineError::refused("/id", detail));
        }
        if self.providers().get(&name).is_some() {
            return Err(EngineError::Conflict(format!(
                "this server already has a provider {name:?}; choose another id"
            )));
        }
        let settings = ProviderSettings { is_endpoint: true, ..settings }.checked()?;
        if settings.base_url.is_none() {
            let detail = "base_url: the address of the API, such as https://openrouter.ai/api/v1".to_owned();
            return Err(EngineError::refused("/base_url", detail));
        }
        self.check_address(&settings, owner.belongs_to_operator())?;
        self.store().put_provider_settings(actor, &name, &settings, SettingsWrite::Create, attempt).await?;
        self.provider_view(actor, &name).await
    }

    /// Replaces the settings of a provider. A stored key stays unless the address changes: a key belongs to the address that
    /// it was given for.
    pub async fn put_provider_settings(
        &self,
        actor: &Actor,
        name: &str,
        patch: SettingsPatch,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<ProviderView, EngineError> {
        let owner = actor.require(Permission::ManageProviders)?;
        let all = self.store().provider_settings(owner).await?;
        let provider = self.providers().resolve(name, &all).ok_or(EngineError::NotFound)?;
        let before = all.get(name);
        let SettingsPatch { key, base_url, label, default_model, limits } = patch;
        let mut settings =
            ProviderSettings { is_endpoint: false, label, base_url, key: None, default_model, limits }.checked()?;
        settings.is_endpoint = before.is_some_and(|before| before.is_endpoint);
        if settings.is_endpoint && settings.base_url.is_none() {
            settings.base_url = before.and_then(|before| before.base_url.clone());
        }
        let stored = before.filter(|before| before.base_url == settings.base_url).and_then(|before| before.key.clone());
        settings.key = key.unwrap_or(stored);
        let settings = settings.checked()?;
        refuse_foreign_access(name, &*provider, &settings)?;
        if settings.label.is_some() && !settings.is_endpoint {
            let detail = "label: only a provider that you have added can be renamed".to_owned();
            return Err(EngineError::refused("/label", detail));
        }
        self.check_address(&settings, owner.belongs_to_operator())?;
        self.check_limits(&*provider, &settings)?;
        self.store().put_provider_settings(actor, name, &settings, SettingsWrite::Replace, attempt).await?;
        self.provider_view(actor, name).await
    }

    /// Deletes what the workspace has set; a model API that it has added is gone with it.
    pub async fn delete_provider_settings(
        &self,
        actor: &Actor,
        name: &str,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageProviders)?;
        Ok(self.store().delete_provider_settings(actor, name, attempt).await?)
    }

    /// The provider of the actor's workspace, with its settings.
    pub(super) async fn provider_with_settings(
        &self,
        actor: &Actor,
        name: &str,
    ) -> Result<(std::sync::Arc<dyn Provider>, WorkspaceProviders), EngineError> {
        let owner = actor.require(Permission::ManageProviders)?;
        let settings = self.store().provider_settings(owner).await?;
        let provider = self.providers().resolve(name, &settings).ok_or(EngineError::NotFound)?;
        Ok((provider, settings))
    }

    /// Refuses an address in the server's own network; a host name is checked each time it is connected to.
    fn check_address(&self, settings: &ProviderSettings, is_operators: bool) -> Result<(), EngineError> {
        let (Some(url), Some(endpoints), false) = (&settings.base_url, self.providers().endpoints(), is_operators)
        else {
            return Ok(());
        };
        match endpoints.http.refusal(url) {
            Some(detail) => Err(EngineError::refused("/base_url", detail)),
            None => Ok(()),
        }
    }

    fn check_limits(&self, provider: &dyn Provider, settings: &ProviderSettings) -> Result<(), EngineError> {
        if settings.limits != ModelLimits::default() && !provider.supports_model_options() {
            let detail = format!("limits: {} has its own; leave them out", provider.label());
            return Err(EngineError::refused("/limits", detail));
        }
        Ok(())
    }
}

/// A provider that uses the key of another one has no key of its own.
fn refuse_foreign_access(name: &str, provider: &dyn Provider, settings: &ProviderSettings) -> Result<(), EngineError> {
    if settings.key.is_none() && settings.base_url.is_none() {
        return Ok(());
    }
    let pointer = if settings.key.is_some() { "/key" } else { "/base_url" };
    match provider.model_apis().into_iter().next() {
        Some(api) if api.settings == name => Ok(()),
        Some(api) => {
            let detail =
                format!("{} uses the key and the address of {}; set them there", provider.label(), api.settings);
            Err(EngineError::refused(pointer, detail))
        }
        None => {
            let detail = format!("{} takes neither a key nor an address", provider.label());
            Err(EngineError::refused(pointer, detail))
        }
    }
}

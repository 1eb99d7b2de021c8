//! Asks a provider's model API: a test for people who set it up, and the list of its models.

use super::ProviderState;
use crate::{Engine, EngineError, provider_access::unreadable};
use domain::{
    actor::Actor,
    owner::Owner,
    permission::Permission,
    provider_settings::{ProviderSettings, WorkspaceProviders},
};
use providers::{Inspection, ModelListError, Provider, direct::ListedModel};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// How long a list of models is used again.
const CACHE_TTL: Duration = Duration::from_secs(60);
const MAX_CACHED: usize = 256;
/// How long a program may take to print its version.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Model)]
pub struct ModelView {
    /// The name that agents set as their `model`.
    pub id: String,
    /// The vendor's name for people.
    pub label: Option<String>,
}

impl From<ListedModel> for ModelView {
    fn from(ListedModel { id, label }: ListedModel) -> Self {
        Self { id, label }
    }
}

/// The result of a real call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ProviderTest)]
pub struct ProviderTestView {
    /// Whether it works.
    pub ok: bool,
    /// Whether agents can use it, or what is missing.
    pub state: ProviderState,
    /// What was found, or what is wrong and what to do.
    pub message: String,
    /// How many models the provider lists.
    pub models: Option<usize>,
    /// How long the test took.
    pub millis: u64,
}

/// The lists of models that were asked for lately, by workspace and provider.
#[derive(Debug, Default)]
pub(crate) struct ModelListCache(Mutex<BTreeMap<(Owner, String), CachedModels>>);

#[derive(Debug, Clone)]
struct CachedModels {
    at: Instant,
    /// The settings that the list was asked with: others need a new list.
    settings: Option<ProviderSettings>,
    models: Vec<ListedModel>,
}

impl ModelListCache {
    fn get(&self, key: &(Owner, String), settings: Option<&ProviderSettings>) -> Option<Vec<ListedModel>> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = lists.get(key).filter(|list| list.at.elapsed() < CACHE_TTL && list.settings.as_ref() == settings);
        cached.map(|list| list.models.clone())
    }

    fn put(&self, key: (Owner, String), list: CachedModels) {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|_, list| list.at.elapsed() < CACHE_TTL);
        if lists.len() < MAX_CACHED {
            lists.insert(key, list);
        }
    }
}

impl Engine {
    /// Lists the models of a provider, by name. A program lists those of the API that it calls.
    pub async fn provider_models(&self, actor: &Actor, name: &str) -> Result<Vec<ModelView>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let settings = self.store().provider_settings(owner).await?;
        let provider = self.providers().resolve(name, &settings).ok_or(EngineError::NotFound)?;
        if let Some(advice) = self.providers().login_refusal(owner, &*provider, &settings) {
            return Err(EngineError::refused("", advice));
        }
        let api = self.model_api(&provider, &settings);
        let own = api.model_apis().into_iter().next().and_then(|api| settings.get(&api.settings));
        let key = (owner.clone(), api.name().to_owned());
        let models = match self.model_list_cache().get(&key, own) {
            Some(models) => models,
            None => {
                let models = api.list_models().await.map_err(|error| EngineError::ProviderFailed(error.to_string()))?;
                let list = CachedModels { at: Instant::now(), settings: own.cloned(), models: models.clone() };
                self.model_list_cache().put(key, list);
                models
            }
        };
        Ok(models.into_iter().map(ModelView::from).collect())
    }

    /// Tests a provider with a real and cheap call: its program prints its version, its API lists its models.
    pub async fn test_provider(&self, actor: &Actor, name: &str) -> Result<ProviderTestView, EngineError> {
        let (provider, settings) = self.provider_with_settings(actor, name).await?;
        let began = Instant::now();
        let millis = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let failed = |state, message| ProviderTestView { ok: false, state, message, models: None, millis: millis() };
        if let Some(problem) = unreadable(&*provider, &settings) {
            return Ok(failed(ProviderState::NeedsKey, problem));
        }
        if let Some(advice) = self.providers().login_refusal(&actor.workspace, &*provider, &settings) {
            return Ok(failed(ProviderState::NotAllowed, advice));
        }
        match timeout(INSPECT_TIMEOUT, provider.inspect()).await {
            Ok(Inspection::Ready { .. }) => {}
            Ok(Inspection::NeedsKey { advice }) => return Ok(failed(ProviderState::NeedsKey, advice)),
            Ok(Inspection::Missing { advice }) => return Ok(failed(ProviderState::NotInstalled, advice)),
            Err(_) => {
                let message = format!("{} did not answer within {} s.", provider.label(), INSPECT_TIMEOUT.as_secs());
                return Ok(failed(ProviderState::Unreachable, message));
            }
        }
        if provider.model_apis().is_empty() {
            let message = format!("{} is ready.", provider.label());
            return Ok(ProviderTestView {
                ok: true,
                state: ProviderState::Ready,
                message,
                models: None,
                millis: millis(),
            });
        }
        let api = self.model_api(&provider, &settings);
        Ok(match api.list_models().await {
            Ok(models) => {
                let message = format!("{} works and offers {} models.", api.label(), models.len());
                let models = Some(models.len());
                ProviderTestView { ok: true, state: ProviderState::Ready, message, models, millis: millis() }
            }
            Err(ModelListError::Key(message)) => failed(ProviderState::NeedsKey, message),
            Err(ModelListError::Unreachable(message) | ModelListError::Other(message)) => {
                failed(ProviderState::Unreachable, message)
            }
        })
    }

    /// The provider that calls the same API without a program; the provider itself if there is none.
    fn model_api(&self, provider: &Arc<dyn Provider>, settings: &WorkspaceProviders) -> Arc<dyn Provider> {
        let first = provider.model_apis().into_iter().next().filter(|_| provider.runs_program());
        first.and_then(|api| self.providers().resolve(&api.settings, settings)).unwrap_or_else(|| Arc::clone(provider))
    }
}

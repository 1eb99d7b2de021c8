//! Providers that are not in the configuration: the model APIs that a workspace has added, and model servers that run on
//! this machine.

use super::{
    ApiAccess, Deadlines, DirectProvider, DirectProviderConfig, ListedModel, ModelApiKind, ModelHttp,
    client::ModelClient, tools::McpToolbox,
};
use crate::Provider;
use domain::{prices::PriceSource, provider_settings::WorkspaceProviders};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// How long a local server may take to answer. The list of providers waits for it.
const PROBE_TIMEOUT: Duration = Duration::from_millis(400);

/// A model server that is looked for on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalServer {
    /// The name of its provider.
    pub name: String,
    pub label: String,
    pub base_url: String,
}

/// Makes a provider for each of them. Cheap: connections are shared.
#[derive(Debug)]
pub struct ModelEndpoints {
    pub toolbox: Arc<dyn McpToolbox>,
    pub http: ModelHttp,
    pub deadlines: Deadlines,
    pub retries: u32,
    pub local: Vec<LocalServer>,
}

/// Most of these models are small; an agent can set larger values.
const CONTEXT_WINDOW: u32 = 32_768;
const ANSWER_TOKENS: u32 = 4_096;

impl ModelEndpoints {
    /// The provider of this name in a workspace with these settings.
    pub fn provider(&self, name: &str, settings: &WorkspaceProviders) -> Option<Arc<dyn Provider>> {
        let own = settings.get(name);
        let local = self.local.iter().find(|server| server.name == name);
        let base_url =
            own.and_then(|own| own.base_url.clone()).or_else(|| local.map(|server| server.base_url.clone()))?;
        let is_local = own.is_none_or(|own| own.base_url.is_none());
        let access = self.access(&base_url, settings.is_operators);
        let config = DirectProviderConfig {
            name: name.to_owned(),
            label: own
                .and_then(|own| own.label.clone())
                .or_else(|| local.map(|server| server.label.clone()))
                .unwrap_or_else(|| name.to_owned()),
            settings: name.to_owned(),
            is_vendor: false,
            api: ModelApiKind::Chat,
            access: own.map_or(access.clone(), |own| access.with_settings(own, settings.is_operators)),
            prices: if is_local { PriceSource::Free } else { PriceSource::Unknown },
            deadlines: self.deadlines.clone(),
            retries: self.retries,
            default_model: None,
            context_window: CONTEXT_WINDOW,
            answer_tokens: ANSWER_TOKENS,
        };
        Some(Arc::new(DirectProvider::new(config, Arc::clone(&self.toolbox), self.http.clone())))
    }

    /// The local servers that answer now and that this workspace may use, with their models. All are asked at once, with a
    /// short deadline.
    pub async fn find_local(&self, settings: &WorkspaceProviders) -> Vec<(LocalServer, Vec<ListedModel>)> {
        let mut asked = JoinSet::new();
        for server in &self.local {
            if !settings.is_operators && self.http.refusal(&server.base_url).is_some() {
                continue;
            }
            let access = self.access(&server.base_url, settings.is_operators);
            let client = ModelClient::new(ModelApiKind::Chat, access, self.deadlines.clone(), self.http.clone());
            let server = server.clone();
            asked.spawn(async move { Some((server, client.list_models(PROBE_TIMEOUT).await.ok()?)) });
        }
        let mut found: Vec<_> = asked.join_all().await.into_iter().flatten().collect();
        found.sort_unstable_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        found
    }

    fn access(&self, base_url: &str, is_operators: bool) -> ApiAccess {
        ApiAccess {
            base_url: base_url.to_owned(),
            base_url_variable: None,
            key: None,
            key_variables: Vec::new(),
            headers: Vec::new(),
            is_guarded: !is_operators,
        }
    }
}

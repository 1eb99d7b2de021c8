//! Lists the providers of a workspace: what each needs to be ready, and whose key and address it uses.

use super::{
    CapabilitiesView, InspectedProvider, InspectionView,
    inspect::{capabilities_view, inspection_view},
};
use crate::{Engine, EngineError, provider_access::unreadable};
use domain::{
    actor::Actor,
    agent::Thinking,
    permission::Permission,
    provider_settings::{ModelLimits, WorkspaceProviders},
};
use providers::{
    AgentSandboxes, Inspection, Provider,
    direct::{AccessSource, LocalServer},
};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Provider)]
pub struct ProviderView {
    /// The name that agents set as their `provider`.
    pub id: String,
    /// The same as `id`.
    pub name: String,
    /// What it is.
    pub kind: ProviderKind,
    /// What people call it.
    pub label: String,
    /// Whether agents can use it, or what is missing.
    pub state: ProviderState,
    /// The one thing to do before it is ready; `null` if it is.
    pub hint: Option<String>,
    /// Where its key or address comes from; `null` if it has neither.
    pub source: Option<ProviderSource>,
    /// The address of its model API. That of the server's configuration is only for the operator.
    pub base_url: Option<String>,
    /// Whether there is a key for its model API, of the workspace or of the server.
    pub has_key: bool,
    /// The provider whose key and address its model calls use: `anthropic` for `claude_code`. Set them there.
    pub settings_provider: Option<String>,
    /// The model of agents that choose none.
    pub default_model: Option<String>,
    /// Limits of model calls, for agents that do not set their own.
    pub limits: ModelLimits,
    /// What the provider supports.
    pub capabilities: CapabilitiesView,
    /// The reasoning efforts that a room can choose for an agent of it.
    pub efforts: Vec<Thinking>,
    /// Whether the provider can run on this machine.
    pub inspection: InspectionView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// A program on the server's machine, such as Claude Code.
    Program,
    /// The API of a vendor.
    Api,
    /// Another server with a chat completions API: added by the workspace, configured by the operator, or found on the
    /// server's machine.
    Endpoint,
    /// Offline and without a model.
    Demo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderState {
    Ready,
    /// The key of its model API is missing or cannot be read.
    NeedsKey,
    NotInstalled,
    /// Its address does not answer.
    Unreachable,
    /// This workspace may not use the server's login, or the machine has no sandbox for its program.
    NotAllowed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderSource {
    /// Variables of the server's environment.
    Environment,
    /// The operator's configuration.
    Configuration,
    /// The workspace's own settings. They come before the others.
    Settings,
    /// Found on the server's machine.
    Found,
}

impl Engine {
    /// Lists the providers of the actor's workspace by name. Which programs there are, and in which versions, is only for
    /// the operator.
    pub async fn providers_of(&self, actor: &Actor) -> Result<Vec<ProviderView>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        let settings = self.store().provider_settings(owner).await?;
        let found = async {
            match self.providers().endpoints() {
                Some(endpoints) => endpoints.find_local(&settings).await,
                None => Vec::new(),
            }
        };
        let (inspected, found) = tokio::join!(self.inspect_providers(), found);
        let mut views = Vec::new();
        for inspected in inspected {
            let Some(known) = self.providers().get(&inspected.name) else { continue };
            let (provider, inspected) = match known.with_settings(&settings) {
                // Such a provider needs no program, so its inspection takes no time.
                Some(own) => {
                    let found = own.inspect().await;
                    let needs_key = matches!(found, Inspection::NeedsKey { .. });
                    (own, InspectedProvider { inspection: inspection_view(found), needs_key, ..inspected })
                }
                None => (known, inspected),
            };
            views.push(self.describe_provider(actor, &settings, &*provider, inspected, None));
        }
        let own = settings.settings.iter().filter(|(_, own)| own.is_endpoint).map(|(name, _)| name);
        let local = found
            .iter()
            .map(|(server, _)| &server.name)
            .filter(|name| settings.get(name).is_none_or(|own| !own.is_endpoint));
        for name in own.chain(local) {
            // A provider of the server comes before one that was added or found.
            if self.providers().get(name).is_some() {
                continue;
            }
            let Some(provider) = self.providers().resolve(name, &settings) else { continue };
            let inspection = inspection_view(provider.inspect().await);
            let capabilities = capabilities_view(provider.capabilities());
            let inspected = InspectedProvider { name: name.clone(), capabilities, inspection, needs_key: false };
            let server = found.iter().map(|(server, _)| server).find(|server| server.name == *name);
            views.push(self.describe_provider(actor, &settings, &*provider, inspected, server));
        }
        views.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(views)
    }

    /// One provider of the actor's workspace, as the list has it.
    pub async fn provider_view(&self, actor: &Actor, name: &str) -> Result<ProviderView, EngineError> {
        let all = self.providers_of(actor).await?;
        all.into_iter().find(|view| view.id == name).ok_or(EngineError::NotFound)
    }

    fn describe_provider(
        &self,
        actor: &Actor,
        settings: &WorkspaceProviders,
        provider: &dyn Provider,
        inspected: InspectedProvider,
        found: Option<&LocalServer>,
    ) -> ProviderView {
        let InspectedProvider { name, capabilities, mut inspection, needs_key } = inspected;
        let may_operate = actor.may(Permission::Operate);
        if let InspectionView::Ready { version, program } = &mut inspection
            && !may_operate
        {
            (*version, *program) = (None, None);
        }
        let apis = provider.model_apis();
        let access = provider.model_access();
        let has_own_key = apis.iter().any(|api| settings.get(&api.settings).is_some_and(|own| own.key.is_some()));
        let has_server_key = apis.iter().any(|api| api.has_server_key && !settings.has_own_access(&api.settings));
        let has_key = access.as_ref().map_or(has_own_key || has_server_key, |access| access.has_key);
        let (state, hint) = if let Some(problem) = unreadable(provider, settings) {
            (ProviderState::NeedsKey, Some(problem))
        } else if let Some(advice) = self.providers().login_refusal(&actor.workspace, provider, settings) {
            inspection = InspectionView::Missing { advice: advice.clone() };
            (ProviderState::NotAllowed, Some(advice))
        } else {
            match &inspection {
                InspectionView::Missing { advice } if needs_key => (ProviderState::NeedsKey, Some(advice.clone())),
                InspectionView::Missing { advice } => (ProviderState::NotInstalled, Some(advice.clone())),
                InspectionView::Ready { .. } => self.state_of_program(provider, has_key),
            }
        };
        let own = settings.get(&name);
        let kind = match &access {
            Some(_) if provider.is_vendor_api() => ProviderKind::Api,
            Some(_) => ProviderKind::Endpoint,
            None if provider.runs_program() => ProviderKind::Program,
            None => ProviderKind::Demo,
        };
        let source = match access.as_ref().and_then(|access| access.source) {
            Some(AccessSource::Settings) => Some(ProviderSource::Settings),
            Some(AccessSource::Environment) => Some(ProviderSource::Environment),
            None if apis.iter().any(|api| settings.has_own_access(&api.settings)) => Some(ProviderSource::Settings),
            None if found.is_some() => Some(ProviderSource::Found),
            None if kind == ProviderKind::Endpoint => Some(ProviderSource::Configuration),
            None if has_server_key => Some(ProviderSource::Environment),
            None if kind == ProviderKind::Program && state == ProviderState::Ready => Some(ProviderSource::Found),
            None => None,
        };
        let is_shown = may_operate || matches!(source, Some(ProviderSource::Settings | ProviderSource::Found));
        ProviderView {
            label: provider.label().to_owned(),
            kind,
            state,
            hint,
            source,
            base_url: access.filter(|_| is_shown).map(|access| access.base_url),
            has_key,
            settings_provider: apis.into_iter().next().map(|api| api.settings),
            default_model: own.and_then(|own| own.default_model.clone()),
            limits: own.map(|own| own.limits).unwrap_or_default(),
            capabilities,
            efforts: provider.efforts().to_vec(),
            inspection,
            id: name.clone(),
            name,
        }
    }

    /// Whether a program that is installed can be used. Inside of a sandbox it uses no login, so it needs a key.
    fn state_of_program(&self, provider: &dyn Provider, has_key: bool) -> (ProviderState, Option<String>) {
        match (provider.runs_program(), self.providers().sandboxes()) {
            (true, AgentSandboxes::Refused(advice)) => (ProviderState::NotAllowed, Some(advice.clone())),
            (true, AgentSandboxes::Inside(_)) if !has_key => match provider.model_apis().first() {
                Some(api) => {
                    let hint = format!(
                        "{} needs a key: add one for {} in the provider settings, or set {} in the environment of the \
                         server and restart it.",
                        provider.label(),
                        api.settings,
                        api.key_variables
                    );
                    (ProviderState::NeedsKey, Some(hint))
                }
                None => (ProviderState::Ready, None),
            },
            _ => (ProviderState::Ready, None),
        }
    }
}

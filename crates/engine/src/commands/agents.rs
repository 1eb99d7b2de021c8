//! Creates, updates and deletes agents. The rules for an agent's settings are here, so that every endpoint has them.

use crate::{Engine, EngineError, provider_access::apply_defaults};
use domain::{
    actor::Actor,
    agent::{Agent, AgentSpec, MAX_SYSTEM_PROMPT_BYTES},
    ids::AgentId,
    limits::LimitOverrides,
    owner::Owner,
    permission::Permission,
    room::MemberSettings,
};
use providers::RefusedSetting;
use store::IdempotentRequest;

/// The maximum length of a list of names, and of a name in it.
const MAX_LIST: usize = 200;
const MAX_NAME: usize = 200;
/// How often a change is applied again to settings that have changed meanwhile.
const MAX_ATTEMPTS: usize = 10;

impl Engine {
    pub async fn create_agent(
        &self,
        actor: &Actor,
        spec: AgentSpec,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Agent, EngineError> {
        let owner = actor.require(Permission::ManageAgents)?;
        self.check_agent(owner, &spec, &LimitOverrides::default()).await?;
        Ok(self.store().create_agent(actor, spec, attempt).await?)
    }

    /// Changes the settings of an agent. Runs that have started keep the old ones. `change` is applied to the newest
    /// settings, again if they change meanwhile, so that two changes at once both take effect.
    pub async fn change_agent<E: From<EngineError>>(
        &self,
        actor: &Actor,
        id: AgentId,
        change: impl Fn(&AgentSpec) -> Result<AgentSpec, E>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Agent, E> {
        let owner = actor.require(Permission::ManageAgents).map_err(EngineError::from)?;
        for _ in 0..MAX_ATTEMPTS {
            let current = self.store().agent(owner, id).await.map_err(EngineError::from)?;
            let spec = change(&current.spec)?;
            self.check_agent(owner, &spec, &current.spec.limits).await?;
            match self.store().change_agent(actor, &current, spec, attempt).await {
                Err(store::StoreError::AgentChanged) => {}
                stored => return Ok(stored.map_err(EngineError::from)?),
            }
        }
        Err(EngineError::from(store::StoreError::AgentChanged).into())
    }

    /// Deletes an agent. It leaves every room; its messages stay.
    pub async fn delete_agent(
        &self,
        actor: &Actor,
        id: AgentId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::ManageAgents)?;
        Ok(self.store().delete_agent(actor, id, attempt).await?)
    }

    /// Deletes an agent and erases it without the grace period. It may be deleted already.
    pub async fn purge_agent(
        &self,
        actor: &Actor,
        id: AgentId,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<(), EngineError> {
        actor.require(Permission::Purge)?;
        Ok(self.store().purge_agent(actor, id, attempt).await?)
    }

    /// Checks what a room chooses for an agent, by the rules for the agent's own settings.
    pub(super) async fn check_chosen_model(&self, owner: &Owner, chosen: ChosenModel<'_>) -> Result<(), EngineError> {
        let ChosenModel { agent, settings: member } = chosen;
        let at = |field: &str| format!("/policy/members/{}/{field}", agent.id);
        let settings = self.settings_for(owner, &agent.spec.provider).await?;
        let Some(provider) = self.providers().resolve(&agent.spec.provider, &settings) else {
            let detail = format!("model: the provider {} of {} is missing", agent.spec.provider, agent.spec.name);
            return Err(EngineError::refused(at("model"), detail));
        };
        if let Some(effort) = member.thinking.filter(|effort| !provider.efforts().contains(effort)) {
            let names: Vec<&str> = provider.efforts().iter().map(|effort| effort.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let detail = format!(
                "thinking: {} cannot be given the effort {}; possible: {known}",
                provider.label(),
                effort.as_str()
            );
            return Err(EngineError::refused(at("thinking"), detail));
        }
        let mut spec = agent.spec.clone();
        member.apply_to(&mut spec);
        if let Err(problem) = check_model_name(&spec) {
            return Err(EngineError::invalid_field(at("model"), problem));
        }
        apply_defaults(&mut spec, &*provider, &settings);
        provider.check(&spec).map_err(|RefusedSetting { pointer, detail }| {
            let field = if pointer.contains("thinking") { "thinking" } else { "model" };
            EngineError::refused(at(field), detail)
        })
    }

    /// Checks the settings, and that this server can provide everything that they ask for.
    async fn check_agent(
        &self,
        owner: &Owner,
        spec: &AgentSpec,
        stored_limits: &LimitOverrides,
    ) -> Result<(), EngineError> {
        let settings = self.settings_for(owner, &spec.provider).await?;
        let Some(provider) = self.providers().resolve(&spec.provider, &settings) else {
            let detail = format!(
                "provider: this server has no provider {:?}; choose one of: {}.",
                spec.provider,
                self.provider_names(&settings)
            );
            return Err(EngineError::refused("/provider", detail));
        };
        check_settings(spec)?;
        if let Some(too_high) = spec.limits.first_above(&self.config().limits, stored_limits) {
            return Err(EngineError::Refused { pointer: "/limits".into(), detail: format!("limits.{too_high}") });
        }
        self.check_skills(owner, spec).await?;
        self.check_servers(owner, spec).await?;
        if spec.model_options.is_some() && !provider.supports_model_options() {
            let detail =
                format!("the provider {} has its own settings for models; leave model_options out", spec.provider);
            return Err(EngineError::Refused { pointer: "/model_options".into(), detail });
        }
        if let Some(detail) = self.providers().login_refusal(owner, &*provider, &settings) {
            return Err(EngineError::refused("/provider", detail));
        }
        let refused = |RefusedSetting { pointer, detail }| EngineError::refused(pointer, detail);
        let mut spec = spec.clone();
        apply_defaults(&mut spec, &*provider, &settings);
        provider.check(&spec).map_err(refused)
    }
}

/// What a room chooses for one of its agents.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChosenModel<'a> {
    pub agent: &'a Agent,
    pub settings: &'a MemberSettings,
}

fn is_bad_name(name: &str) -> bool {
    name.is_empty() || name.chars().count() > MAX_NAME || name.contains(char::is_control)
}

fn check_model_name(spec: &AgentSpec) -> Result<(), String> {
    match &spec.model {
        Some(model) if is_bad_name(model) => Err(format!("model: a name of one line, 1 to {MAX_NAME} characters.")),
        Some(model) if model.starts_with('-') => {
            Err("model: the name of a model does not begin with -, which would be an option of a program.".to_owned())
        }
        _ => Ok(()),
    }
}

/// The rules that need no look at the server.
fn check_settings(spec: &AgentSpec) -> Result<(), EngineError> {
    let invalid = |pointer: String, detail: String| Err(EngineError::invalid_field(pointer, detail));
    if spec.system_prompt.as_ref().is_some_and(|prompt| prompt.len() > MAX_SYSTEM_PROMPT_BYTES) {
        return invalid(
            "/system_prompt".to_owned(),
            format!("system_prompt: at most {MAX_SYSTEM_PROMPT_BYTES} bytes."),
        );
    }
    let name_lists = [
        ("/skills", &spec.skills),
        ("/mcp_servers", &spec.mcp_servers),
        ("/tools/allow", &spec.tools.allow),
        ("/tools/ask", &spec.tools.ask),
        ("/tools/deny", &spec.tools.deny),
    ];
    for (pointer, list) in name_lists {
        if list.len() > MAX_LIST {
            return invalid(pointer.to_owned(), format!("{}: at most {MAX_LIST} names.", &pointer[1..]));
        }
        if let Some(index) = list.iter().position(|name| is_bad_name(name)) {
            let detail = format!("{}: names have one line and 1 to {MAX_NAME} characters.", &pointer[1..]);
            return invalid(format!("{pointer}/{index}"), detail);
        }
    }
    if let Err(detail) = check_model_name(spec) {
        return invalid("/model".to_owned(), detail);
    }
    let values: usize = spec.skill_parameters.values().map(|given| given.len()).sum();
    if values > MAX_LIST || spec.skill_parameters.keys().any(|name| is_bad_name(name)) {
        let detail = format!("skill_parameters: at most {MAX_LIST} values.");
        return Err(EngineError::refused("/skill_parameters", detail));
    }
    let limits = &spec.limits;
    let counts = [
        ("turns", limits.turns.map(u64::from)),
        ("wall_seconds", limits.wall_seconds.map(u64::from)),
        ("first_byte_seconds", limits.first_byte_seconds.map(u64::from)),
        ("idle_seconds", limits.idle_seconds.map(u64::from)),
        ("tool_seconds", limits.tool_seconds.map(u64::from)),
        ("approval_seconds", limits.approval_seconds.map(u64::from)),
        ("output_bytes", limits.output_bytes),
    ];
    if let Some((name, _)) = counts.iter().find(|(_, limit)| *limit == Some(0)) {
        let detail = "limits: a limit is at least 1; leave it out for the server's default.";
        return invalid(format!("/limits/{name}"), detail.to_owned());
    }
    Ok(())
}

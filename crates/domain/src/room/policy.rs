//! The policy of a room: who speaks when, how long agents go on among themselves, what a new message does meanwhile, and
//! what is stored of it.
//!
//! A policy is stored as JSON. A missing field has the meaning it had before the field existed, so rooms of earlier
//! versions keep their behavior; [`RoomPolicy::for_new_room`] has the defaults of today.

use crate::{
    agent::{AgentSpec, Thinking},
    ids::AgentId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Priorities are between this and its negative.
pub const MAX_PRIORITY: i32 = 1000;
const MAX_ROUNDS: u32 = 100;
const MAX_MESSAGES: u32 = 1000;
const MAX_MINUTES: u32 = 24 * 60;

/// Who speaks when in a room. Missing fields keep their value, in a new room their default.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RoomPolicy {
    /// What happens to a message that arrives while agents are answering, unless the message sets its own policy.
    pub when_busy: WhenBusy,
    /// Who answers a message, and in which order.
    pub kind: TurnOrder,
    /// What naming agents in a message does.
    pub mentions: MentionRule,
    /// Whether agents react to each other after they have answered a message, round by round, until all skip.
    pub follow_up: bool,
    /// How many follow-up rounds, or turns of the moderator, a person's message may cause.
    #[schema(minimum = 0, maximum = 100)]
    pub max_rounds: u32,
    /// How many runs a person's message may cause.
    #[schema(minimum = 1, maximum = 1000)]
    pub max_messages: u32,
    /// For how long after a person's message agents may start follow-up rounds.
    #[schema(minimum = 1, maximum = 1440)]
    pub attended_minutes: u32,
    /// How many follow-up rounds they may start after that time, while nobody is there.
    #[schema(minimum = 0, maximum = 100)]
    pub unattended_rounds: u32,
    /// How many rounds a debate has before the judge speaks.
    #[schema(minimum = 1, maximum = 100)]
    pub debate_rounds: u32,
    /// The agent that names who speaks next, for `kind: moderator`. By default the first agent of the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moderator: Option<AgentId>,
    /// The agent that speaks after a debate. By default one with `final_response`, or the last agent of the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<AgentId>,
    /// Decides the order of agents with equal priority, together with the message. A new room gets a random one.
    pub seed: u32,
    /// Whether the provider's original data is stored with every piece of an answer too, and not only with its other events.
    /// It is several times as long as the text, and counts as stored bytes.
    pub keep_raw: bool,
    /// The settings of single agents in this room; an agent without an entry has the defaults.
    pub members: BTreeMap<AgentId, MemberSettings>,
}

/// The policy of rooms from before policies had these fields.
impl Default for RoomPolicy {
    fn default() -> Self {
        Self {
            when_busy: WhenBusy::Enqueue,
            kind: TurnOrder::InOrder,
            mentions: MentionRule::Only,
            follow_up: false,
            max_rounds: 5,
            max_messages: 30,
            attended_minutes: 10,
            unattended_rounds: 0,
            debate_rounds: 2,
            moderator: None,
            judge: None,
            seed: 0,
            keep_raw: false,
            members: BTreeMap::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// Queue the message until the current answers are finished.
    #[default]
    Enqueue,
    /// Stop the current answers, keep their partial text, then answer the message.
    Interrupt,
    /// Refuse the message with 409.
    Reject,
    /// Pass the message to the current answer, if the provider supports it.
    Steer,
}

/// Who answers a message, and in which order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOrder {
    /// All agents, one after another, in the order they joined.
    #[default]
    InOrder,
    /// All agents, one after another: by priority, equal ones in an order that the seed decides.
    Everyone,
    /// All agents at the same time.
    Concurrent,
    /// Only the agents that a message names.
    MentionOnly,
    /// One agent for each message, in turn.
    RoundRobin,
    /// One agent, which names those that speak next.
    Moderator,
    /// All agents for several rounds, then the judge.
    Debate,
}

/// What naming agents in a message does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MentionRule {
    /// Only they answer.
    #[default]
    Only,
    /// They answer before the others.
    First,
}

/// The settings of one agent in one room.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemberSettings {
    /// Agents with a higher priority speak earlier; a negative one puts an agent behind those without a priority.
    #[schema(minimum = -1000, maximum = 1000)]
    pub priority: i32,
    /// The agent reacts to every message: before the others, and again after each of them.
    pub interrupt_every_turn: bool,
    /// What the agent says makes nobody react.
    pub transparent: bool,
    /// The agent speaks once, after all others.
    pub final_response: bool,
    /// What the agent says is for people: other agents neither read it nor react to it.
    pub critic: bool,
    /// The agent reads everything and speaks only when it is named.
    pub aware_only: bool,
    /// The model of the agent's answers in this room, instead of the agent's own.
    pub model: Option<String>,
    /// How much the model reasons before it answers in this room, instead of the agent's own setting.
    pub thinking: Option<Thinking>,
}

impl MemberSettings {
    /// Returns whether other agents react to what the agent says.
    pub fn is_heard(&self) -> bool {
        !self.transparent && !self.critic
    }

    /// Returns whether the room chooses the agent's model, or how it is called.
    pub fn chooses_model(&self) -> bool {
        self.model.is_some() || self.thinking.is_some()
    }

    /// Replaces what the room chooses.
    pub fn apply_to(&self, spec: &mut AgentSpec) {
        if self.model.is_some() {
            spec.model.clone_from(&self.model);
        }
        if self.thinking.is_some() {
            let options = spec.model_options.get_or_insert_default();
            // A budget of the agent would go against the effort.
            (options.thinking, options.thinking_budget_tokens) = (self.thinking, None);
        }
    }
}

/// Why a policy is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy{field}: {problem}")]
pub struct PolicyError {
    field: String,
    problem: String,
}

impl PolicyError {
    fn new(field: &str, problem: impl Into<String>) -> Self {
        let field = if field.is_empty() { String::new() } else { format!(".{field}") };
        Self { field, problem: problem.into() }
    }
}

impl RoomPolicy {
    /// The policy of a new room. Agents do not react to each other unless somebody turns that on: nothing runs, and
    /// costs, by accident.
    pub fn for_new_room() -> Self {
        Self { when_busy: WhenBusy::Interrupt, kind: TurnOrder::Everyone, ..Self::default() }
    }

    pub fn member(&self, agent: AgentId) -> MemberSettings {
        self.members.get(&agent).cloned().unwrap_or_default()
    }

    /// Applies a merge patch (RFC 7396): named fields are replaced, `null` resets one, and the settings of an agent that
    /// are not named stay.
    pub fn merged(&self, patch: Value) -> Result<Self, PolicyError> {
        if !patch.is_object() {
            return Err(PolicyError::new("", "an object with the fields to change"));
        }
        let mut merged = serde_json::to_value(self).map_err(|error| PolicyError::new("", error.to_string()))?;
        merge(&mut merged, patch, 3);
        let policy: Self = serde_json::from_value(merged).map_err(|error| PolicyError::new("", error.to_string()))?;
        policy.check().map(|()| policy)
    }

    fn check(&self) -> Result<(), PolicyError> {
        let range = |field: &str, value: u32, least: u32, most: u32| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(PolicyError::new(field, format!("a number from {least} to {most}, not {value}"))),
        };
        range("max_rounds", self.max_rounds, 0, MAX_ROUNDS)?;
        range("max_messages", self.max_messages, 1, MAX_MESSAGES)?;
        range("attended_minutes", self.attended_minutes, 1, MAX_MINUTES)?;
        range("unattended_rounds", self.unattended_rounds, 0, MAX_ROUNDS)?;
        range("debate_rounds", self.debate_rounds, 1, MAX_ROUNDS)?;
        for (agent, settings) in &self.members {
            if settings.priority.abs() > MAX_PRIORITY {
                let field = format!("members.{agent}.priority");
                return Err(PolicyError::new(&field, format!("a number from -{MAX_PRIORITY} to {MAX_PRIORITY}")));
            }
        }
        Ok(())
    }

    /// Checks that the policy names only agents of the room.
    pub fn check_agents(&self, agents: &[AgentId]) -> Result<(), PolicyError> {
        let of_role = [("moderator", self.moderator), ("judge", self.judge)];
        let named = of_role.iter().filter_map(|&(field, agent)| Some((field, agent?)));
        for (field, agent) in named.chain(self.members.keys().map(|agent| ("members", *agent))) {
            if !agents.contains(&agent) {
                return Err(PolicyError::new(field, format!("agent {agent} is not in this room")));
            }
        }
        Ok(())
    }

    /// Forgets the settings of agents that are not in the room any more.
    pub fn retain_agents(&mut self, agents: &[AgentId]) {
        self.members.retain(|agent, _| agents.contains(agent));
        self.moderator = self.moderator.filter(|agent| agents.contains(agent));
        self.judge = self.judge.filter(|agent| agents.contains(agent));
    }
}

/// Objects are merged down to `depth`, everything else is replaced.
fn merge(target: &mut Value, patch: Value, depth: u8) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) if depth > 0 => {
            for (name, value) in patch {
                match value {
                    Value::Null => drop(target.remove(&name)),
                    value => merge(target.entry(name).or_insert(Value::Null), value, depth - 1),
                }
            }
        }
        (target, patch) => *target = patch,
    }
}

#[cfg(test)]
mod tests {
    use super::{MemberSettings, RoomPolicy, TurnOrder, WhenBusy};
    use crate::{
        agent::{AgentSpec, ModelOptions, Thinking},
        ids::AgentId,
        name::Name,
    };
    use serde_json::json;

    #[test]
    fn a_stored_policy_of_an_earlier_version_keeps_its_meaning() {
        let old: RoomPolicy = serde_json::from_value(json!({"when_busy": "enqueue"})).unwrap();
        assert_eq!(old, RoomPolicy::default());
        assert_eq!((old.kind, old.follow_up), (TurnOrder::InOrder, false));
        let new = RoomPolicy::for_new_room();
        assert_eq!((new.kind, new.when_busy, new.follow_up), (TurnOrder::Everyone, WhenBusy::Interrupt, false));
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let (ann, bob) = (AgentId::generate(), AgentId::generate());
        let policy = RoomPolicy { seed: 7, ..RoomPolicy::for_new_room() };
        let policy = policy.merged(json!({"members": {(ann.to_string()): {"priority": 3, "critic": true}}})).unwrap();
        let patch = json!({"kind": "debate", "judge": bob, "members": {(ann.to_string()): {"critic": false}}});
        let policy = policy.merged(patch).unwrap();
        assert_eq!((policy.kind, policy.judge, policy.seed), (TurnOrder::Debate, Some(bob), 7));
        assert_eq!(policy.member(ann), MemberSettings { priority: 3, ..MemberSettings::default() });
        assert_eq!(policy.member(bob), MemberSettings::default());
        let chosen =
            policy.merged(json!({"members": {(ann.to_string()): {"model": "m-2", "thinking": "high"}}})).unwrap();
        assert_eq!(chosen.member(ann).thinking, Some(Thinking::High));
        let back = chosen.merged(json!({"members": {(ann.to_string()): {"model": null, "thinking": null}}})).unwrap();
        assert_eq!(back, policy);
        let reset = policy.merged(json!({"judge": null, "members": {(ann.to_string()): null}})).unwrap();
        assert!(reset.judge.is_none() && reset.members.is_empty());
    }

    #[test]
    fn a_room_chooses_the_model_and_the_effort_of_an_agent() {
        let mut spec = AgentSpec::new(Name::parse("Ann").unwrap(), "anthropic");
        spec.model = Some("m-1".into());
        spec.model_options = Some(ModelOptions { thinking_budget_tokens: Some(2048), ..ModelOptions::default() });
        let own = spec.clone();
        MemberSettings::default().apply_to(&mut spec);
        assert_eq!(spec, own, "nothing is chosen");
        let chosen =
            MemberSettings { model: Some("m-2".into()), thinking: Some(Thinking::Low), ..MemberSettings::default() };
        assert!(chosen.chooses_model());
        chosen.apply_to(&mut spec);
        let options = spec.model_options.unwrap();
        assert_eq!((spec.model.as_deref(), options.thinking), (Some("m-2"), Some(Thinking::Low)));
        assert_eq!(options.thinking_budget_tokens, None, "the effort replaces the budget");
    }

    #[test]
    fn mistakes_are_named() {
        let policy = RoomPolicy::default();
        let agent = AgentId::generate();
        for (patch, expected) in [
            (json!({"max_rounds": 101}), "policy.max_rounds: a number from 0 to 100, not 101"),
            (json!({"max_messages": 0}), "policy.max_messages: a number from 1 to 1000, not 0"),
            (json!({"debate_rounds": 0}), "policy.debate_rounds: a number from 1 to 100, not 0"),
            (json!({"members": {(agent.to_string()): {"priority": -1001}}}), "from -1000 to 1000"),
            (json!({"members": {(agent.to_string()): {"loud": true}}}), "unknown field `loud`"),
            (json!({"members": {"nobody": {}}}), "UUID"),
            (json!({"kind": "chaos"}), "unknown variant `chaos`"),
            (json!({"order": "everyone"}), "unknown field `order`"),
            (json!([]), "policy: an object with the fields to change"),
        ] {
            let error = policy.merged(patch.clone()).unwrap_err().to_string();
            assert!(error.contains(expected), "{patch}: {error}");
        }
        let named = RoomPolicy { judge: Some(agent), ..policy };
        assert!(named.check_agents(&[]).unwrap_err().to_string().contains("is not in this room"));
        assert_eq!(named.check_agents(&[agent]), Ok(()));
    }
}

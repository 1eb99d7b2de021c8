//! A change of a room's policy: its shape, which every change is checked against. It is a merge patch, which the domain applies.

use crate::{
    error::Problem,
    extract::value_reader::{ValueReader, whole_numbers},
};
use domain::{
    agent::Thinking,
    ids::AgentId,
    room::{MentionRule, TurnOrder, WhenBusy},
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields of a room's policy to set; all others stay, in a new room at their defaults. `null` resets a field.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the body of a request is checked against it, and stays a patch")]
pub struct RoomPolicyChange {
    when_busy: Option<WhenBusy>,
    kind: Option<TurnOrder>,
    mentions: Option<MentionRule>,
    follow_up: Option<bool>,
    #[schema(minimum = 0, maximum = 100)]
    max_rounds: Option<u32>,
    #[schema(minimum = 1, maximum = 1000)]
    max_messages: Option<u32>,
    #[schema(minimum = 1, maximum = 1440)]
    attended_minutes: Option<u32>,
    #[schema(minimum = 0, maximum = 100)]
    unattended_rounds: Option<u32>,
    #[schema(minimum = 1, maximum = 100)]
    debate_rounds: Option<u32>,
    moderator: Option<AgentId>,
    judge: Option<AgentId>,
    seed: Option<u32>,
    /// Whether the provider's original data is stored with every piece of an answer.
    keep_raw: Option<bool>,
    /// The settings to change, by agent.
    #[schema(value_type = Option<BTreeMap<AgentId, MemberChange>>)]
    members: Option<BTreeMap<AgentId, Option<MemberChange>>>,
}

/// Checks a change like the rest of a body. Returns it with its numbers as they are stored: `4.0` is 4.
pub fn checked(mut patch: Value) -> Result<Value, Problem> {
    RoomPolicyChange::deserialize(ValueReader(patch.clone()))
        .map_err(|error| error.inside("policy").into_body_problem())?;
    whole_numbers(&mut patch);
    Ok(patch)
}

/// The settings of one agent in one room to set; all others stay.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the body of a request is checked against it, and stays a patch")]
pub struct MemberChange {
    #[schema(value_type = i32, minimum = -1000, maximum = 1000, required = false)]
    priority: Option<i32>,
    #[schema(value_type = bool, required = false)]
    interrupt_every_turn: Option<bool>,
    #[schema(value_type = bool, required = false)]
    transparent: Option<bool>,
    #[schema(value_type = bool, required = false)]
    final_response: Option<bool>,
    #[schema(value_type = bool, required = false)]
    critic: Option<bool>,
    #[schema(value_type = bool, required = false)]
    aware_only: Option<bool>,
    /// The model of the agent's answers in this room; `null` is the agent's own.
    model: Option<String>,
    /// How much the model reasons in this room; `null` is the agent's own setting.
    thinking: Option<Thinking>,
}

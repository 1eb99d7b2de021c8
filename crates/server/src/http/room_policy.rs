//! The shape of a change of a room's policy, for the description of the API: a merge patch that the domain applies.

use domain::{
    ids::AgentId,
    room::{MentionRule, TurnOrder, WhenBusy},
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The fields of a room's policy to set; all others stay, in a new room at their defaults. `null` resets a field.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the body of a request")]
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
    members: Option<BTreeMap<AgentId, MemberChange>>,
}

/// The settings of one agent in one room to set; all others stay.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the body of a request")]
pub struct MemberChange {
    #[schema(minimum = -1000, maximum = 1000, required = false)]
    priority: i32,
    #[schema(required = false)]
    interrupt_every_turn: bool,
    #[schema(required = false)]
    transparent: bool,
    #[schema(required = false)]
    final_response: bool,
    #[schema(required = false)]
    critic: bool,
    #[schema(required = false)]
    aware_only: bool,
}

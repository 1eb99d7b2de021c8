//! An agent: a configured persona that a provider makes answer.

use crate::{ids::AgentId, limits::LimitOverrides, name::Name, time::Timestamp};
use serde::{Deserialize, Serialize};

pub const MAX_SYSTEM_PROMPT_BYTES: usize = 256 * 1024;

/// What a person sets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    pub name: Name,
    /// Which adapter answers: `scripted` needs nothing.
    #[schema(examples("scripted"))]
    pub provider: String,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub system_prompt: Option<String>,
    #[serde(default)]
    pub skills: Vec<String>,
    #[serde(default)]
    pub mcp_servers: Vec<String>,
    #[serde(default)]
    pub tools: ToolPolicy,
    #[serde(default)]
    pub limits: LimitOverrides,
}

/// Which tool calls pass, ask a person, or are refused. Patterns are tool names with `*`; the first list that matches
/// wins in the order deny, ask, allow; what matches none asks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPolicy {
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Agent {
    pub id: AgentId,
    #[serde(flatten)]
    pub spec: AgentSpec,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

//! Resource limits of a run. No run is without limits (invariant 14).

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits set by an agent's configuration; unset limits use the server's defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOverrides {
    /// The maximum number of model calls in one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub turns: Option<u32>,
    /// The maximum duration in seconds, including time spent waiting for approvals.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub wall_seconds: Option<u32>,
    /// The maximum number of seconds until the answer begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub first_byte_seconds: Option<u32>,
    /// The maximum number of seconds without progress after the answer has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub idle_seconds: Option<u32>,
    /// The maximum number of seconds without progress while a tool runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub tool_seconds: Option<u32>,
    /// The maximum number of bytes of text, thinking, tool inputs, tool output, results and statuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub output_bytes: Option<u64>,
    /// The number of seconds a tool call waits for approval before it is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub approval_seconds: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub turns: u32,
    pub wall: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
    pub tool: Duration,
    pub output_bytes: u64,
    pub approval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: 100,
            wall: Duration::from_secs(3600),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(300),
            tool: Duration::from_secs(900),
            output_bytes: 16 * 1024 * 1024,
            approval: Duration::from_secs(600),
        }
    }
}

impl Limits {
    pub fn with(self, set: &LimitOverrides) -> Self {
        let seconds = |value: Option<u32>, default| value.map_or(default, |s| Duration::from_secs(s.into()));
        Self {
            turns: set.turns.unwrap_or(self.turns),
            wall: seconds(set.wall_seconds, self.wall),
            first_byte: seconds(set.first_byte_seconds, self.first_byte),
            idle: seconds(set.idle_seconds, self.idle),
            tool: seconds(set.tool_seconds, self.tool),
            output_bytes: set.output_bytes.unwrap_or(self.output_bytes),
            approval: seconds(set.approval_seconds, self.approval),
        }
    }
}

/// The limit that stopped a run. The name is part of the error code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Turns,
    Wall,
    FirstByte,
    Idle,
    Tool,
    OutputBytes,
    /// A budget of the workspace, the user, the agent or the room.
    Budget,
}

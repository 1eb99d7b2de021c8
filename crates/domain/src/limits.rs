//! How much one run may use before it is stopped. Nothing runs without a limit (invariant 14).

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What an agent's configuration may set; what it leaves out comes from the server's defaults.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOverrides {
    /// Model calls in one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub turns: Option<u32>,
    /// Seconds from start to end, waiting for approvals included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub wall_seconds: Option<u32>,
    /// Seconds from being asked to the first sign of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub first_byte_seconds: Option<u32>,
    /// Seconds without progress, once there was some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub idle_seconds: Option<u32>,
    /// Seconds without progress while a tool works.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub tool_seconds: Option<u32>,
    /// Bytes of text, thinking and tool output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub output_bytes: Option<u64>,
    /// Seconds a tool call waits for a person; then it is denied.
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

/// Which limit stopped a run; the name goes into the error's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Turns,
    Wall,
    FirstByte,
    Idle,
    Tool,
    OutputBytes,
}

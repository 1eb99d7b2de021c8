//! Resource limits of a run. No run is without limits (invariant 14).

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits set by an agent's configuration. The server's are the ceiling; unset limits are the server's.
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
    /// Returns the limits of an agent: each is at most the server's, also for an agent that was stored with more.
    pub fn with(self, set: &LimitOverrides) -> Self {
        let seconds = |value: Option<u32>, max: Duration| value.map_or(max, |s| max.min(Duration::from_secs(s.into())));
        Self {
            turns: set.turns.map_or(self.turns, |turns| turns.min(self.turns)),
            wall: seconds(set.wall_seconds, self.wall),
            first_byte: seconds(set.first_byte_seconds, self.first_byte),
            idle: seconds(set.idle_seconds, self.idle),
            tool: seconds(set.tool_seconds, self.tool),
            output_bytes: set.output_bytes.map_or(self.output_bytes, |bytes| bytes.min(self.output_bytes)),
            approval: seconds(set.approval_seconds, self.approval),
        }
    }
}

/// A limit of an agent that is higher than the server's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field}: {value} is more than this server allows, which is {ceiling}; the operator can raise runs.{field}")]
pub struct LimitTooHigh {
    /// The name of the limit, which is also the name of the server's setting.
    pub field: &'static str,
    pub value: u64,
    pub ceiling: u64,
}

impl LimitOverrides {
    /// The first limit that is higher than the server's and not a stored one. `stored` may be from before the ceilings.
    pub fn first_above(&self, server: &Limits, stored: &Self) -> Option<LimitTooHigh> {
        let fields = |limits: &Self| {
            let number = |value: Option<u32>| value.map(u64::from);
            [
                number(limits.turns),
                number(limits.wall_seconds),
                number(limits.first_byte_seconds),
                number(limits.idle_seconds),
                number(limits.tool_seconds),
                limits.output_bytes,
                number(limits.approval_seconds),
            ]
        };
        let ceilings = [
            ("turns", server.turns.into()),
            ("wall_seconds", server.wall.as_secs()),
            ("first_byte_seconds", server.first_byte.as_secs()),
            ("idle_seconds", server.idle.as_secs()),
            ("tool_seconds", server.tool.as_secs()),
            ("output_bytes", server.output_bytes),
            ("approval_seconds", server.approval.as_secs()),
        ];
        let values = fields(self).into_iter().zip(fields(stored));
        ceilings.into_iter().zip(values).find_map(|((field, ceiling), (value, stored))| {
            let value = value.filter(|value| *value > ceiling && stored != Some(*value))?;
            Some(LimitTooHigh { field, value, ceiling })
        })
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

#[cfg(test)]
mod tests {
    use super::{LimitOverrides, LimitTooHigh, Limits};
    use std::time::Duration;

    #[test]
    fn h5_an_agent_can_only_lower_the_limits_of_the_server() {
        let server = Limits { output_bytes: 1000, wall: Duration::from_secs(60), ..Limits::default() };
        let high = LimitOverrides {
            turns: Some(u32::MAX),
            wall_seconds: Some(u32::MAX),
            first_byte_seconds: Some(u32::MAX),
            idle_seconds: Some(u32::MAX),
            tool_seconds: Some(u32::MAX),
            output_bytes: Some(u64::MAX),
            approval_seconds: Some(u32::MAX),
        };
        assert_eq!(server.with(&high), server);
        let low = LimitOverrides { output_bytes: Some(5), wall_seconds: Some(1), ..LimitOverrides::default() };
        assert_eq!(server.with(&low), Limits { output_bytes: 5, wall: Duration::from_secs(1), ..server });
        assert_eq!(low.first_above(&server, &LimitOverrides::default()), None);
        let bytes = LimitOverrides { output_bytes: Some(1001), ..low };
        let too_high = LimitTooHigh { field: "output_bytes", value: 1001, ceiling: 1000 };
        assert_eq!(bytes.first_above(&server, &LimitOverrides::default()), Some(too_high));
        assert_eq!(bytes.first_above(&server, &bytes), None, "a stored value may stay");
        assert!(too_high.to_string().contains("runs.output_bytes"));
    }
}

//! An agent: a configured persona that a provider makes answer.

use crate::{ids::AgentId, limits::LimitOverrides, name::Name, skill::Given, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Values for the parameters of its skills, by skill and parameter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Object>)]
    pub skill_parameters: BTreeMap<String, Given>,
    #[serde(default)]
    pub mcp_servers: Vec<String>,
    #[serde(default)]
    pub tools: ToolPolicy,
    #[serde(default)]
    pub limits: LimitOverrides,
}

impl AgentSpec {
    /// With nothing set but who answers.
    pub fn new(name: Name, provider: impl Into<String>) -> Self {
        Self {
            name,
            provider: provider.into(),
            model: None,
            system_prompt: None,
            skills: Vec::new(),
            skill_parameters: BTreeMap::new(),
            mcp_servers: Vec::new(),
            tools: ToolPolicy::default(),
            limits: LimitOverrides::default(),
        }
    }
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

/// What a tool policy says of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl ToolPolicy {
    pub fn verdict(&self, tool: &str) -> Verdict {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        if any(&self.deny) {
            Verdict::Deny
        } else if any(&self.ask) || !any(&self.allow) {
            Verdict::Ask
        } else {
            Verdict::Allow
        }
    }
}

/// `*` stands for any run of characters. Linear: each literal piece is looked for once, from where the last one ended.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let Some(last) = pieces.pop() else { return true };
    for piece in pieces {
        match text.find(piece) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Agent {
    pub id: AgentId,
    #[serde(flatten)]
    pub spec: AgentSpec,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::{ToolPolicy, Verdict, matches};

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("read", "read", true),
            ("read", "reader", false),
            ("*", "", true),
            ("mcp__*", "mcp__git__log", true),
            ("*__log", "mcp__git__log", true),
            ("mcp__*__log", "mcp__git__log", true),
            ("mcp__*__log", "mcp__git__blame", false),
            ("a*a", "a", false),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn deny_beats_ask_beats_allow_and_silence_asks() {
        let policy =
            ToolPolicy { allow: vec!["*".into()], ask: vec!["write*".into()], deny: vec!["write_secret".into()] };
        assert_eq!(policy.verdict("read"), Verdict::Allow);
        assert_eq!(policy.verdict("write_file"), Verdict::Ask);
        assert_eq!(policy.verdict("write_secret"), Verdict::Deny);
        assert_eq!(ToolPolicy::default().verdict("anything"), Verdict::Ask);
    }
}

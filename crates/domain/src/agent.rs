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
    /// For providers that ask a model's API themselves; others have no use for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_options: Option<ModelOptions>,
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
            model_options: None,
        }
    }
}

/// How a model's API is asked, and how its tool calls are carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    pub tool_calling: ToolCalling,
    pub run_tools: RunTools,
    /// Whether the calls of one answer run side by side; else one after another.
    #[schema(default = true)]
    pub parallel: bool,
    /// Tokens that the model's context holds. What does not fit is folded into a summary. `null`: the provider's guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2048, maximum = 10000000)]
    pub context_window: Option<u32>,
    /// Tokens of one answer. `null`: the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000)]
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks before it answers. `null`: as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// A fixed budget for thinking, in tokens, for models of Anthropic's that want one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1024, maximum = 200000)]
    pub thinking_budget_tokens: Option<u32>,
}

/// How the model says that it wants to call a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalling {
    /// As its API has it.
    #[default]
    Native,
    /// As XML in its text, for models that know no other way.
    Xml,
}

/// When a tool call is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunTools {
    /// When the answer that asks for it is whole.
    #[default]
    After,
    /// As soon as the call itself is whole.
    WhileStreaming,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    Off,
    Low,
    Medium,
    High,
}

impl Thinking {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            tool_calling: ToolCalling::default(),
            run_tools: RunTools::default(),
            parallel: true,
            context_window: None,
            max_output_tokens: None,
            thinking: None,
            thinking_budget_tokens: None,
        }
    }
}

impl ModelOptions {
    /// What is wrong with it, if anything.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: Option<u32>, least: u32, most: u32| match value {
            Some(value) if !(least..=most).contains(&value) => {
                Err(format!("{name} is {value}; it must be {least} to {most}"))
            }
            _ => Ok(()),
        };
        within("context_window", self.context_window, 2048, 10_000_000)?;
        within("max_output_tokens", self.max_output_tokens, 1, 1_000_000)?;
        within("thinking_budget_tokens", self.thinking_budget_tokens, 1024, 200_000)?;
        match (self.context_window, self.max_output_tokens) {
            (Some(window), Some(output)) if output >= window => {
                Err(format!("max_output_tokens is {output}; it must be less than context_window, which is {window}"))
            }
            _ => Ok(()),
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
    use super::{ModelOptions, ToolPolicy, Verdict, matches};

    #[test]
    fn model_options_have_defaults_bounds_and_no_unknown_words() {
        let read = |text: &str| serde_json::from_str::<ModelOptions>(text);
        assert_eq!(read("{}").unwrap(), ModelOptions::default());
        assert!(read("{}").unwrap().parallel);
        let set =
            read(r#"{"tool_calling":"xml","run_tools":"while_streaming","parallel":false,"thinking":"low"}"#).unwrap();
        assert!(!set.parallel && set != ModelOptions::default());
        for wrong in [r#"{"tool_calls":"xml"}"#, r#"{"tool_calling":"json"}"#, r#"{"thinking":"a lot"}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for (wrong, named) in [
            (r#"{"context_window":10}"#, "context_window"),
            (r#"{"context_window":4096,"max_output_tokens":4096}"#, "max_output_tokens"),
            (r#"{"thinking_budget_tokens":1}"#, "thinking_budget_tokens"),
        ] {
            assert!(read(wrong).unwrap().check().unwrap_err().contains(named), "{wrong}");
        }
    }

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

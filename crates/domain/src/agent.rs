//! An agent: a configured persona whose answers come from a provider.

use crate::{
    ids::AgentId,
    limits::LimitOverrides,
    name::{ListedName, Name},
    skill::ParameterValues,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const MAX_SYSTEM_PROMPT_BYTES: usize = 256 * 1024;

/// The settings of an agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    pub name: Name,
    /// The provider that answers. `scripted` needs no setup.
    #[schema(examples("scripted"))]
    pub provider: String,
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^-\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    pub model: Option<String>,
    #[serde(default)]
    #[schema(max_length = 262144)]
    pub system_prompt: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<ListedName>, max_items = 200)]
    pub skills: Vec<String>,
    /// Values for the parameters of the agent's skills, by skill and parameter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, BTreeMap<String, crate::skill::ParameterValue>>)]
    pub skill_parameters: BTreeMap<String, ParameterValues>,
    #[serde(default)]
    #[schema(value_type = Vec<ListedName>, max_items = 200)]
    pub mcp_servers: Vec<String>,
    #[serde(default)]
    pub tools: ToolPolicy,
    #[serde(default)]
    pub limits: LimitOverrides,
    /// Used by providers that call a model API directly; other providers ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_options: Option<ModelOptions>,
}

impl AgentSpec {
    /// Creates settings with defaults for everything but the name and the provider.
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

    /// How much the model reasons; `None` for the provider's default.
    pub fn thinking(&self) -> Option<Thinking> {
        self.model_options.as_ref()?.thinking
    }
}

/// How a model API is called, and how its tool calls are executed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    pub tool_calling: ToolCalling,
    pub run_tools: RunTools,
    /// Whether the tool calls of one answer run in parallel; otherwise they run one after another.
    #[schema(default = true)]
    pub parallel: bool,
    /// The model's context window in tokens. Older messages that do not fit are summarized. `null`: the provider's
    /// estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 2048, maximum = 10000000)]
    pub context_window: Option<u32>,
    /// The maximum number of tokens in one answer. `null`: the provider's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1000000)]
    pub max_output_tokens: Option<u32>,
    /// How much the answers vary. `null`: the model's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// The share of the most likely tokens that answers are taken from. `null`: the model's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// Texts that end an answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 8)]
    pub stop: Vec<String>,
    /// How much the model reasons before it answers. `null`: the model's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// A fixed budget of tokens for reasoning, for models of Anthropic and Google that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1024, maximum = 200000)]
    pub thinking_budget_tokens: Option<u32>,
}

/// How the model requests a tool call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalling {
    /// With the API's own tool calls.
    #[default]
    Native,
    /// As XML in the model's text, for models without native tool calls.
    Xml,
}

/// When a tool call is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunTools {
    /// When the whole answer has arrived.
    #[default]
    After,
    /// As soon as the call itself has arrived.
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
            temperature: None,
            top_p: None,
            stop: Vec::new(),
            thinking: None,
            thinking_budget_tokens: None,
        }
    }
}

impl ModelOptions {
    /// Returns the pointer of the first wrong option, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let within = |pointer: &'static str, value: Option<u32>, least: u32, most: u32| match value {
            Some(value) if !(least..=most).contains(&value) => {
                let name = pointer.rsplit('/').next().unwrap_or_default();
                Err((pointer, format!("{name} is {value}; it must be {least} to {most}")))
            }
            _ => Ok(()),
        };
        within("/model_options/context_window", self.context_window, 2048, 10_000_000)?;
        within("/model_options/max_output_tokens", self.max_output_tokens, 1, 1_000_000)?;
        within("/model_options/thinking_budget_tokens", self.thinking_budget_tokens, 1024, 200_000)?;
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return Err(("/model_options/temperature", "temperature must be 0 to 2".into()));
        }
        if self.top_p.is_some_and(|top_p| !(top_p > 0.0 && top_p <= 1.0)) {
            return Err(("/model_options/top_p", "top_p must be more than 0 and at most 1".into()));
        }
        let is_bad_stop = |stop: &String| stop.trim().is_empty() || stop.len() > MAX_STOP_BYTES;
        if self.stop.len() > MAX_STOPS || self.stop.iter().any(is_bad_stop) {
            let detail =
                format!("stop takes at most {MAX_STOPS} texts of at most {MAX_STOP_BYTES} bytes, none of them blank");
            return Err(("/model_options/stop", detail));
        }
        match (self.context_window, self.max_output_tokens) {
            (Some(window), Some(output)) if output >= window => Err((
                "/model_options/max_output_tokens",
                format!("max_output_tokens is {output}; it must be less than context_window, which is {window}"),
            )),
            _ => Ok(()),
        }
    }
}

const MAX_STOPS: usize = 8;
const MAX_STOP_BYTES: usize = 200;

/// Which tool calls are allowed, need approval, or are denied. Patterns are tool names with `*`; the first list that
/// matches wins, in the order deny, ask, allow. A tool that matches no list needs approval.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolPolicy {
    #[schema(value_type = Vec<ListedName>, max_items = 200)]
    pub allow: Vec<String>,
    #[schema(value_type = Vec<ListedName>, max_items = 200)]
    pub ask: Vec<String>,
    #[schema(value_type = Vec<ListedName>, max_items = 200)]
    pub deny: Vec<String>,
}

/// What a tool policy decides about one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyDecision {
    Allow,
    Ask,
    Deny,
}

impl ToolPolicy {
    pub fn decide(&self, tool: &str) -> PolicyDecision {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        if any(&self.deny) {
            PolicyDecision::Deny
        } else if any(&self.ask) || !any(&self.allow) {
            PolicyDecision::Ask
        } else {
            PolicyDecision::Allow
        }
    }

    /// Returns a policy that allows nothing that either of the two does not allow. A pattern is kept only if the other policy
    /// covers all of it, so it may ask more often than both together would.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let both = |mine: &[String], others: &[String]| {
            let mut all = mine.to_vec();
            all.extend(others.iter().filter(|pattern| !mine.contains(pattern)).cloned());
            all
        };
        // A `*` of the inner pattern can only be matched by one of the outer.
        let is_covered = |inner: &String, outer: &[String]| outer.iter().any(|outer| matches(outer, inner));
        let mut allow: Vec<String> = self.allow.iter().filter(|p| is_covered(p, &other.allow)).cloned().collect();
        for pattern in other.allow.iter().filter(|pattern| is_covered(pattern, &self.allow)) {
            if !allow.contains(pattern) {
                allow.push(pattern.clone());
            }
        }
        Self { allow, ask: both(&self.ask, &other.ask), deny: both(&self.deny, &other.deny) }
    }
}

/// `*` matches any run of characters. Linear time: each literal piece is searched for once, from the end of the last.
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
    use super::{ModelOptions, PolicyDecision, ToolPolicy, matches};

    #[test]
    fn a_policy_within_another_allows_only_what_both_allow() {
        let policy = |allow: &[&str], deny: &[&str]| {
            let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            ToolPolicy { allow: list(allow), ask: Vec::new(), deny: list(deny) }
        };
        let wide = policy(&["*"], &["Write"]);
        let narrow = policy(&["Read", "mcp__files__*"], &["Bash"]);
        for both in [wide.within(&narrow), narrow.within(&wide)] {
            for (tool, decision) in [
                ("Read", PolicyDecision::Allow),
                ("mcp__files__list", PolicyDecision::Allow),
                ("mcp__web__get", PolicyDecision::Ask),
                ("Write", PolicyDecision::Deny),
                ("Bash", PolicyDecision::Deny),
            ] {
                assert_eq!(both.decide(tool), decision, "{tool}");
            }
        }
        let overlapping = policy(&["a*"], &[]).within(&policy(&["*b"], &[]));
        assert_eq!(overlapping.decide("ab"), PolicyDecision::Ask, "neither covers the other");
        assert_eq!(wide.within(&ToolPolicy::default()).decide("Read"), PolicyDecision::Ask);
    }

    #[test]
    fn model_options_have_defaults_and_bounds_and_reject_unknown_keys() {
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
            (r#"{"temperature":-1}"#, "temperature"),
            (r#"{"top_p":0}"#, "top_p"),
            (r#"{"stop":[""]}"#, "stop"),
        ] {
            let (pointer, detail) = read(wrong).unwrap().check().unwrap_err();
            assert!(detail.contains(named) && pointer.ends_with(named), "{wrong}: {pointer} {detail}");
        }
    }

    #[test]
    fn patterns_match_tool_names() {
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
    fn deny_beats_ask_beats_allow_and_no_match_asks() {
        let policy =
            ToolPolicy { allow: vec!["*".into()], ask: vec!["write*".into()], deny: vec!["write_secret".into()] };
        assert_eq!(policy.decide("read"), PolicyDecision::Allow);
        assert_eq!(policy.decide("write_file"), PolicyDecision::Ask);
        assert_eq!(policy.decide("write_secret"), PolicyDecision::Deny);
        assert_eq!(ToolPolicy::default().decide("anything"), PolicyDecision::Ask);
    }
}

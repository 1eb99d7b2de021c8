//! A skill: instructions for an agent, with parameters, files, MCP servers and a tool policy.
//!
//! [`SkillSpec`] holds the settings; `check` validates them; `document` reads and writes `SKILL.md`; `parameter` and
//! `template` fill in values; `invocation` parses `/name key=value …` at the start of a message; `experience`,
//! `proposal` and `training` belong to training. Everything here is pure.

mod check;
pub mod document;
mod experience;
mod file;
mod invocation;
mod name;
mod parameter;
mod proposal;
mod review;
mod template;
mod training;

pub use check::{FindingLevel, MAX_BODY_BYTES, SkillFinding};
pub use experience::{Score, experience};
pub use file::{FileEntry, FilePath, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE, SkillFile};
pub use invocation::{SkillArguments, SkillInvocation};
pub use name::SkillName;
pub use parameter::{Parameter, ParameterError, ParameterKind, ParameterValue, ParameterValues, ResolvedParameters};
pub use proposal::proposed_body;
pub use review::{RequestedServer, SkillRequests, is_script};
pub use template::{fill_placeholders, placeholders};
pub use training::{Proposal, ProposalStatus, Remarks, Round, RoundKind, TrainingRoom};

use crate::{agent::ToolPolicy, ids::SkillId, name::Name, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The settings of a skill.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillSpec {
    pub name: SkillName,
    /// The name shown to people.
    #[serde(default)]
    pub display_name: Option<Name>,
    /// What the skill does and when to use it. Agents choose skills by this text.
    #[schema(min_length = 1, max_length = 1024)]
    pub description: String,
    /// Markdown; `{{parameter}}` is replaced by its value.
    pub body: String,
    #[serde(default)]
    pub category: Option<String>,
    /// The author's version label.
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub license: Option<String>,
    #[serde(default)]
    pub compatibility: Option<String>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// MCP servers, as in `.mcp.json`, that a run with this skill has in addition to its agent's own.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Object>)]
    pub mcp_servers: BTreeMap<String, Value>,
    /// `deny` and `ask` apply to every run that has the skill, `allow` only to runs in which a user invokes it.
    #[serde(default)]
    pub tools: ToolPolicy,
}

impl SkillSpec {
    /// Creates settings with only the required fields.
    pub fn new(name: SkillName, description: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            name,
            display_name: None,
            description: description.into(),
            body: body.into(),
            category: None,
            label: None,
            license: None,
            compatibility: None,
            metadata: BTreeMap::new(),
            parameters: Vec::new(),
            mcp_servers: BTreeMap::new(),
            tools: ToolPolicy::default(),
        }
    }

    /// The display name, or the name if there is none.
    pub fn title(&self) -> &str {
        self.display_name.as_ref().map_or(self.name.as_str(), Name::as_str)
    }
}

/// The newest version of a skill.
#[derive(Clone, PartialEq, Debug)]
pub struct Skill {
    pub id: SkillId,
    pub spec: SkillSpec,
    /// 1, 2, 3 …: each change creates a new version; versions never change.
    pub version: u32,
    pub files: Vec<FileEntry>,
    /// 0 to 100; see [`experience`].
    pub experience: Option<u8>,
    /// It was imported and asks for things that no person has accepted yet; see [`SkillRequests`].
    pub needs_review: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

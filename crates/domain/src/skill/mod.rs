//! A skill: instructions that an agent may take up, with parameters, files, MCP servers and a tool policy of their own.
//!
//! [`SkillSpec`] is what a person sets; `check` says what is wrong with one; `document` is the `SKILL.md` it is read from
//! and written to; `parameter` and `template` fill it in; `invocation` reads `/name key=value …` at the start of a
//! message; `experience` and `proposal` belong to training. Everything here is pure.

mod check;
pub mod document;
mod experience;
mod file;
mod invocation;
mod name;
mod parameter;
mod proposal;
mod template;
mod training;

pub use check::{Finding, Level, MAX_BODY_BYTES};
pub use experience::{Score, experience};
pub use file::{FileEntry, FilePath, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE, SkillFile};
pub use invocation::{Arguments, Invocation};
pub use name::SkillName;
pub use parameter::{Given, Parameter, ParameterKind, ParameterValue, Trouble, Values};
pub use proposal::proposed_body;
pub use template::{fill, placeholders};
pub use training::{Proposal, ProposalStatus, Remarks, Round, RoundKind, TrainingRoom};

use crate::{agent::ToolPolicy, ids::SkillId, name::Name, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a person sets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillSpec {
    pub name: SkillName,
    /// For people.
    #[serde(default)]
    pub display_name: Option<Name>,
    /// What it does and when to use it; agents decide by it.
    #[schema(min_length = 1, max_length = 1024)]
    pub description: String,
    /// Markdown; `{{parameter}}` is filled in.
    pub body: String,
    #[serde(default)]
    pub category: Option<String>,
    /// The author's own word for the version.
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
    /// As in `.mcp.json`: what a run that has this skill may reach beside its agent's own.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Object>)]
    pub mcp_servers: BTreeMap<String, Value>,
    /// `deny` and `ask` hold in every run that has the skill, `allow` in runs that a person invokes it in.
    #[serde(default)]
    pub tools: ToolPolicy,
}

impl SkillSpec {
    /// With nothing set but what must be.
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

    /// What people call it.
    pub fn title(&self) -> &str {
        self.display_name.as_ref().map_or(self.name.as_str(), Name::as_str)
    }
}

/// A skill as it is now: its newest version.
#[derive(Clone, PartialEq, Debug)]
pub struct Skill {
    pub id: SkillId,
    pub spec: SkillSpec,
    /// 1, 2, 3 …: each change is a new one and none is ever altered.
    pub version: u32,
    pub files: Vec<FileEntry>,
    /// 0 to 100; see [`experience`].
    pub experience: Option<u8>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

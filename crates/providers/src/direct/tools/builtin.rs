//! Greenroom's built-in tools. None of them is harmful, so they need no approval.

use super::{SkillInstructions, memory, skill};
use crate::{
    MemoryHandle,
    direct::{
        tool_loop::{ApprovalMode, ToolCallOutcome},
        wire::OfferedTool,
    },
    host_tools::{self, HostToolReply},
};
use domain::time::Timestamp;
use serde_json::{Map, Value};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum BuiltinTool {
    /// A tool of [`host_tools`].
    Host(&'static str),
    Skill(Arc<Vec<SkillInstructions>>),
    Memory(MemoryHandle),
}

/// The built-in tools that this agent can use.
pub fn all(
    skills: &Arc<Vec<SkillInstructions>>,
    memory: &MemoryHandle,
) -> Vec<(BuiltinTool, OfferedTool, ApprovalMode)> {
    let mut all: Vec<(BuiltinTool, OfferedTool, ApprovalMode)> = host_tools::HOST_TOOLS
        .iter()
        .map(|tool| {
            let offer = OfferedTool {
                name: tool.name.to_owned(),
                description: tool.description.to_owned(),
                schema: (tool.schema)(),
            };
            let approval = if tool.name == "ask_user" { ApprovalMode::Question } else { ApprovalMode::NotNeeded };
            (BuiltinTool::Host(tool.name), offer, approval)
        })
        .collect();
    if !skills.is_empty() {
        all.push((BuiltinTool::Skill(Arc::clone(skills)), skill::offered_tool(skills), ApprovalMode::NotNeeded));
    }
    if memory.notes().is_some() {
        all.push((BuiltinTool::Memory(memory.clone()), memory::offered_tool(), ApprovalMode::NotNeeded));
    }
    all
}

impl BuiltinTool {
    pub async fn run(&self, input: &Map<String, Value>, now: Timestamp) -> ToolCallOutcome {
        match self {
            Self::Host(name) => match host_tools::call(name, &Value::Object(input.clone()), now) {
                HostToolReply::Done(outcome) => ToolCallOutcome::text(outcome.text, outcome.is_error),
                // Unreachable: the tool loop handles questions itself.
                HostToolReply::Ask { .. } => ToolCallOutcome::text("Questions are not supported here.", true),
            },
            Self::Skill(skills) => skill::run(skills, input).await,
            Self::Memory(memory) => memory::run(memory, input).await,
        }
    }
}

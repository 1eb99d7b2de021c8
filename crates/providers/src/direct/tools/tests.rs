//! The tool set, and the limits of long results.

use super::{MAX_RESULT_BYTES, McpToolbox, ToolSet, bounded};
use crate::{
    MemoryHandle,
    direct::{
        testing::{EmptyToolbox, workspace},
        tool_loop::{ApprovalMode, ToolCallOutcome},
    },
    host_tools::{HostToolAgent, testing::OneNote},
};
use domain::agent::ToolPolicy;
use std::sync::Arc;

async fn tool_set(memory: MemoryHandle, policy: &ToolPolicy) -> ToolSet {
    let toolbox: Arc<dyn McpToolbox> = Arc::new(EmptyToolbox);
    let agent = HostToolAgent::on_model_api(workspace(&[]), memory);
    ToolSet::load(&agent, &toolbox, policy).await.0
}

#[tokio::test]
async fn tool_set_omits_unusable_and_denied_tools() {
    let names = |set: &ToolSet| set.tools.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&tool_set(MemoryHandle::default(), &ToolPolicy::default()).await), ["ask_user", "current_time"]);
    let all = tool_set(MemoryHandle::new(OneNote), &ToolPolicy::default()).await;
    assert_eq!(names(&all), ["ask_user", "current_time", "memory"]);
    assert!(all.is_host_tool("memory") && !all.is_host_tool("mcp__files__memory"));
    assert!(all.tools.values().all(|tool| tool.approval == ApprovalMode::NotNeeded), "they ask for consent themselves");
    let policy = ToolPolicy { deny: vec!["mem*".into()], ..ToolPolicy::default() };
    assert_eq!(names(&tool_set(MemoryHandle::new(OneNote), &policy).await), ["ask_user", "current_time"]);
}

#[test]
fn long_result_is_shortened_for_the_model_only() {
    let long = "x".repeat(MAX_RESULT_BYTES * 2);
    let outcome = bounded(ToolCallOutcome::text(long.clone(), false));
    assert_eq!(outcome.for_room, long);
    let crate::direct::ToolResultContent::Text(text) = &outcome.for_model[0] else { panic!() };
    assert!(text.len() < MAX_RESULT_BYTES + 100 && text.contains("left out here"));
}

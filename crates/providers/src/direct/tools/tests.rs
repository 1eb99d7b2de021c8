//! The tool set, and the limits of long results.

use super::{MAX_RESULT_BYTES, McpToolbox, ToolSet, bounded};
use crate::{
    direct::{
        testing::{EmptyToolbox, workspace},
        tool_loop::{ApprovalMode, ToolCallOutcome},
    },
    host_tools::HostToolAgent,
};
use domain::agent::ToolPolicy;
use std::sync::Arc;

async fn tool_set(policy: &ToolPolicy) -> ToolSet {
    let toolbox: Arc<dyn McpToolbox> = Arc::new(EmptyToolbox);
    let agent = HostToolAgent::on_model_api(workspace(&[]));
    ToolSet::load(&agent, &toolbox, policy).await.0
}

#[tokio::test]
async fn tool_set_omits_denied_tools() {
    let names = |set: &ToolSet| set.tools.keys().cloned().collect::<Vec<_>>();
    let all = tool_set(&ToolPolicy::default()).await;
    assert_eq!(names(&all), ["ask_user", "current_time"]);
    assert!(all.is_host_tool("ask_user") && !all.is_host_tool("mcp__files__ask_user"));
    assert!(all.tools.values().all(|tool| tool.approval == ApprovalMode::NotNeeded), "they ask for consent themselves");
    let policy = ToolPolicy { deny: vec!["curr*".into()], ..ToolPolicy::default() };
    assert_eq!(names(&tool_set(&policy).await), ["ask_user"]);
}

#[test]
fn long_result_is_shortened_for_the_model_only() {
    let long = "x".repeat(MAX_RESULT_BYTES * 2);
    let outcome = bounded(ToolCallOutcome::text(long.clone(), false));
    assert_eq!(outcome.for_room, long);
    let crate::direct::ToolResultContent::Text(text) = &outcome.for_model[0] else { panic!() };
    assert!(text.len() < MAX_RESULT_BYTES + 100 && text.contains("left out here"));
}

//! The tool set, and the limits of long results.

use super::{MAX_RESULT_BYTES, McpToolbox, ToolSet, bounded};
use crate::direct::testing::EmptyToolbox;
use crate::{
    MemoryHandle,
    direct::tool_loop::{ApprovalMode, ToolCallOutcome},
    memory::{Note, NoteFuture, NoteStore},
};
use domain::agent::ToolPolicy;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct OneNote;

impl NoteStore for OneNote {
    fn save(&self, _: String) -> NoteFuture<()> {
        Box::pin(async { Err("full".into()) })
    }

    fn recall(&self, about: String) -> NoteFuture<Vec<Note>> {
        Box::pin(async move { Ok(vec![Note { saved_at: "today".into(), text: about }]) })
    }
}

async fn tool_set(memory: &MemoryHandle, policy: &ToolPolicy) -> ToolSet {
    let toolbox: Arc<dyn McpToolbox> = Arc::new(EmptyToolbox);
    ToolSet::load(&[], &toolbox, &Arc::default(), memory, policy).await.0
}

async fn run(tools: &ToolSet, name: &str, input: serde_json::Value) -> ToolCallOutcome {
    let (output, _reports) = mpsc::channel(1);
    let input = input.as_object().unwrap().clone();
    tools.run("c".into(), name, input, CancellationToken::new(), output).await.outcome
}

#[tokio::test]
async fn tool_set_omits_unusable_and_denied_tools() {
    let names = |set: &ToolSet| set.tools.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&tool_set(&MemoryHandle::default(), &ToolPolicy::default()).await), ["ask_user", "current_time"]);
    let all = tool_set(&MemoryHandle::new(OneNote), &ToolPolicy::default()).await;
    assert_eq!(names(&all), ["ask_user", "current_time", "memory"]);
    assert_eq!(
        (all.tools["ask_user"].approval, all.tools["memory"].approval),
        (ApprovalMode::Question, ApprovalMode::NotNeeded)
    );
    let policy = ToolPolicy { deny: vec!["mem*".into()], ..ToolPolicy::default() };
    assert_eq!(names(&tool_set(&MemoryHandle::new(OneNote), &policy).await), ["ask_user", "current_time"]);
}

#[tokio::test]
async fn memory_reports_results_and_errors() {
    let tools = tool_set(&MemoryHandle::new(OneNote), &ToolPolicy::default()).await;
    assert_eq!(run(&tools, "memory", json!({"action": "recall", "text": "tea"})).await.for_room, "- (today) tea");
    for (input, expected) in [
        (json!({"action": "save", "text": "x"}), "full"),
        (json!({"action": "save"}), "text: say what to remember"),
        (json!({"action": "dance"}), "action: save or recall"),
    ] {
        let outcome = run(&tools, "memory", input).await;
        assert!(outcome.is_error && outcome.for_room == expected, "{outcome:?}");
    }
}

#[test]
fn long_result_is_shortened_for_the_model_only() {
    let long = "x".repeat(MAX_RESULT_BYTES * 2);
    let outcome = bounded(ToolCallOutcome::text(long.clone(), false));
    assert_eq!(outcome.for_room, long);
    let crate::direct::ToolResultContent::Text(text) = &outcome.for_model[0] else { panic!() };
    assert!(text.len() < MAX_RESULT_BYTES + 100 && text.contains("left out here"));
}

//! Which tools there are, and what becomes of long results.

use super::{Kit, MAX_RESULT_BYTES, Toolbox, bounded};
use crate::direct::testing::Nobody;
use crate::{
    Memory,
    direct::machine::{Manner, Outcome},
    memory::{Note, Notes, NotesFuture},
};
use domain::agent::ToolPolicy;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct One;

impl Notes for One {
    fn save(&self, _: String) -> NotesFuture<()> {
        Box::pin(async { Err("full".into()) })
    }

    fn recall(&self, about: String) -> NotesFuture<Vec<Note>> {
        Box::pin(async move { Ok(vec![Note { saved_at: "today".into(), text: about }]) })
    }
}

async fn kit(memory: &Memory, policy: &ToolPolicy) -> Kit {
    let toolbox: Arc<dyn Toolbox> = Arc::new(Nobody);
    Kit::gather(&[], &toolbox, &Arc::default(), memory, policy).await.0
}

async fn run(kit: &Kit, name: &str, input: serde_json::Value) -> Outcome {
    let (output, _heard) = mpsc::channel(1);
    let input = input.as_object().unwrap().clone();
    kit.run("c".into(), name, input, CancellationToken::new(), output).await.outcome
}

#[tokio::test]
async fn only_what_there_is_a_use_for_and_what_is_not_denied() {
    let names = |kit: &Kit| kit.tools.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kit(&Memory::default(), &ToolPolicy::default()).await), ["ask_user", "current_time"]);
    let all = kit(&Memory::new(One), &ToolPolicy::default()).await;
    assert_eq!(names(&all), ["ask_user", "current_time", "memory"]);
    assert_eq!((all.tools["ask_user"].manner, all.tools["memory"].manner), (Manner::Question, Manner::Free));
    let policy = ToolPolicy { deny: vec!["mem*".into()], ..ToolPolicy::default() };
    assert_eq!(names(&kit(&Memory::new(One), &policy).await), ["ask_user", "current_time"]);
}

#[tokio::test]
async fn a_memory_says_what_came_of_it() {
    let kit = kit(&Memory::new(One), &ToolPolicy::default()).await;
    assert_eq!(run(&kit, "memory", json!({"action": "recall", "text": "tea"})).await.shown, "- (today) tea");
    for (input, said) in [
        (json!({"action": "save", "text": "x"}), "full"),
        (json!({"action": "save"}), "text: say what to remember"),
        (json!({"action": "dance"}), "action: save or recall"),
    ] {
        let outcome = run(&kit, "memory", input).await;
        assert!(outcome.is_error && outcome.shown == said, "{outcome:?}");
    }
}

#[test]
fn a_long_result_is_whole_in_the_room_and_short_for_the_model() {
    let long = "x".repeat(MAX_RESULT_BYTES * 2);
    let outcome = bounded(Outcome::text(long.clone(), false));
    assert_eq!(outcome.shown, long);
    let crate::direct::Content::Text(told) = &outcome.content[0] else { panic!() };
    assert!(told.len() < MAX_RESULT_BYTES + 100 && told.contains("left out here"));
}

//! The registry, the limits of calls, and the calls of a turn.

use super::{
    CallOrigin, HostCall, HostTool, HostToolAgent, HostToolCalls, HostToolDefinition, HostToolEvent, HostToolFuture,
    HostToolOutcome, HostTools, HostToolsError,
    registry::MAX_OUTPUT_BYTES,
    testing::workspace_with,
    tools::{self, AskUser, CurrentTime},
};
use crate::TurnEvent;
use domain::{
    event::Decision,
    ids::{ApprovalId, RunId},
};
use serde_json::{Value, json};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::{Instant, timeout};
use workbench::skills::SkillFolder;

/// A tool that does what the test wants.
struct TestTool<F>(&'static str, F);

impl<F: Fn(HostCall) -> HostToolFuture<'static> + Send + Sync + 'static> HostTool for TestTool<F> {
    fn definition(&self) -> HostToolDefinition {
        HostToolDefinition::new(self.0, "A test.", HostToolDefinition::no_arguments())
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        (self.1)(call)
    }
}

fn tool(
    name: &'static str,
    run: impl Fn(HostCall) -> HostToolFuture<'static> + Send + Sync + 'static,
) -> Arc<dyn HostTool> {
    Arc::new(TestTool(name, run))
}

fn idle(name: &'static str) -> Arc<dyn HostTool> {
    tool(name, |_| Box::pin(pending()))
}

fn calls(all: Vec<Arc<dyn HostTool>>) -> HostToolCalls<u32> {
    HostToolCalls::new(HostToolAgent::with_program(workspace_with(all)), RunId::generate())
}

fn start(calls: &mut HostToolCalls<u32>, key: u32, tool: &str, arguments: Value) {
    let origin = CallOrigin { tool_use_id: Some(format!("toolu_{key}")), raw: Some("{}".into()) };
    calls.start(key, origin, tool.to_owned(), arguments.as_object().unwrap().clone());
}

/// Waits for the end of a call.
async fn ended(calls: &mut HostToolCalls<u32>) -> (u32, HostToolOutcome) {
    match timeout(Duration::from_secs(600), calls.next()).await.expect("the call ends") {
        HostToolEvent::Ended { reply_to, outcome } => (reply_to, outcome),
        HostToolEvent::Report(event) => panic!("{event:?}"),
    }
}

async fn reported(calls: &mut HostToolCalls<u32>) -> TurnEvent {
    match timeout(Duration::from_secs(600), calls.next()).await.expect("the call reports") {
        HostToolEvent::Report(event) => event.event,
        HostToolEvent::Ended { outcome, .. } => panic!("{outcome:?}"),
    }
}

fn is_waiting(calls: &mut HostToolCalls<u32>) -> bool {
    let mut next = Box::pin(calls.next());
    matches!(next.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

#[test]
fn registry_rejects_illegal_names_duplicates_and_other_schemas() {
    let long = "x".repeat(48);
    for name in ["a", "roll_dice2", long.leak()] {
        assert!(HostTools::new([idle(name)]).is_ok(), "{name}");
    }
    let too_long = "x".repeat(49);
    for name in ["", "Roll", "roll-dice", "1st", "_a", "a__b", "a.b", "ä", too_long.leak()] {
        assert_eq!(HostTools::new([idle(name)]).unwrap_err(), HostToolsError::Name(name.to_owned()));
    }
    assert_eq!(HostTools::new([idle("a"), idle("a")]).unwrap_err(), HostToolsError::Duplicate("a".into()));
    // `ask_user` has this name over MCP.
    assert_eq!(HostTools::new([idle("ask_people")]).unwrap_err(), HostToolsError::Duplicate("ask_people".into()));
    struct NoSchema;
    impl HostTool for NoSchema {
        fn definition(&self) -> HostToolDefinition {
            HostToolDefinition::new("no_schema", "A test.", json!({"type": "string"}))
        }
        fn call(&self, _: HostCall) -> HostToolFuture<'_> {
            Box::pin(pending())
        }
    }
    let none: Arc<dyn HostTool> = Arc::new(NoSchema);
    assert_eq!(HostTools::new([none]).unwrap_err(), HostToolsError::Schema("no_schema".into()));
}

#[test]
fn programs_are_not_offered_what_they_have_themselves() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("SKILL.md"), "text").unwrap();
    let mut workspace = workspace_with(tools::all());
    let names = |agent: &HostToolAgent| {
        let offered = agent.workspace.host_tools.offered(agent).into_iter();
        offered.map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&HostToolAgent::on_model_api(workspace.clone())), ["current_time", "ask_user"]);
    workspace.skills = vec![SkillFolder::read("review", folder.path()).unwrap()];
    let agent = HostToolAgent::on_model_api(workspace.clone());
    assert_eq!(names(&agent), ["current_time", "ask_user", "skill"]);
    let skill = &workspace.host_tools.offered(&agent)[2];
    assert_eq!(skill.schema["properties"]["name"]["enum"], json!(["review"]));
    assert_eq!(names(&HostToolAgent::with_program(workspace)), ["current_time", "ask_user"]);
}

#[tokio::test(start_paused = true)]
async fn outcomes_and_errors_are_returned_with_their_calls() {
    let mut calls = calls(vec![Arc::new(CurrentTime), Arc::new(AskUser)]);
    start(&mut calls, 1, "current_time", json!({}));
    let (key, outcome) = ended(&mut calls).await;
    assert!(key == 1 && outcome.text.starts_with("20") && outcome.text.ends_with('Z'), "{outcome:?}");
    for (tool, arguments, expected) in [
        ("ask_user", json!({}), "question: say what you want to know"),
        ("ask_user", json!({"question": " "}), "question: say what you want to know"),
        ("x", json!({}), "there is no tool \"x\"; there are: current_time, ask_user"),
        ("skill", json!({}), "there is no tool \"skill\"; there are: current_time, ask_user"),
    ] {
        start(&mut calls, 2, tool, arguments);
        assert_eq!(ended(&mut calls).await, (2, HostToolOutcome::error(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_a_call_has_a_timeout_a_bounded_output_and_survives_a_panic() {
    let long = tool("long", |_| Box::pin(async { HostToolOutcome::success("x".repeat(MAX_OUTPUT_BYTES * 2)) }));
    let crash = tool("crash", |_| Box::pin(async { panic!("the crash that the test asked for") }));
    let early = tool("early", |_| panic!("the crash that the test asked for"));
    let mut calls = calls(vec![long, crash, early, idle("idle")]);
    start(&mut calls, 1, "long", json!({}));
    let outcome = ended(&mut calls).await.1;
    assert!(outcome.text.len() < MAX_OUTPUT_BYTES + 100 && outcome.text.contains("are left out here"));
    for name in ["crash", "early"] {
        start(&mut calls, 2, name, json!({}));
        let outcome = ended(&mut calls).await.1;
        assert!(outcome.is_error && outcome.text.contains("crashed"), "{outcome:?}");
    }
    let before = Instant::now();
    start(&mut calls, 3, "idle", json!({}));
    let outcome = ended(&mut calls).await.1;
    assert!(outcome.is_error && outcome.text.contains("did not finish within 60 s"), "{outcome:?}");
    assert!(before.elapsed() < Duration::from_secs(62));
    for key in 0..=64 {
        start(&mut calls, key, "idle", json!({}));
    }
    let (key, outcome) = ended(&mut calls).await;
    assert!(key == 64 && outcome.text.starts_with("Too many calls"), "{key}: {outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_reports_progress_and_asks() {
    let asks = tool("asks", |call: HostCall| {
        Box::pin(async move {
            call.report("looking").await;
            match call.ask(json!({"question": "This one?"})).await {
                Ok((Decision::Allow, _)) => HostToolOutcome::success("done"),
                other => HostToolOutcome::error(format!("{other:?}")),
            }
        })
    });
    let mut calls = calls(vec![asks]);
    start(&mut calls, 1, "asks", json!({}));
    let output = TurnEvent::ToolOutput { id: "toolu_1".into(), delta: "looking\n".into() };
    assert_eq!(reported(&mut calls).await, output);
    let TurnEvent::Approval { id, tool_use_id, name, input, is_question } = reported(&mut calls).await else {
        panic!()
    };
    assert_eq!((tool_use_id.as_deref(), name.as_str(), is_question), (Some("toolu_1"), "asks", true));
    assert_eq!(input, json!({"question": "This one?"}));
    let (stranger, answer) = (ApprovalId::generate(), (Decision::Deny, None));
    assert_eq!(calls.answer(stranger, Decision::Deny, None), Err(answer), "another request of the transport");
    assert!(is_waiting(&mut calls));
    calls.answer(id, Decision::Allow, None).unwrap();
    assert_eq!(ended(&mut calls).await, (1, HostToolOutcome::success("done")));
}

#[tokio::test(start_paused = true)]
async fn a_canceled_call_withdraws_its_question_and_gets_no_reply() {
    let mut calls = calls(vec![Arc::new(AskUser), Arc::new(CurrentTime)]);
    start(&mut calls, 1, "ask_user", json!({"question": "Which?"}));
    let TurnEvent::Approval { id, .. } = reported(&mut calls).await else { panic!() };
    calls.cancel(|key| *key == 2);
    assert!(is_waiting(&mut calls));
    calls.cancel(|key| *key == 1);
    assert_eq!(reported(&mut calls).await, TurnEvent::ApprovalWithdrawn { id });
    start(&mut calls, 3, "current_time", json!({}));
    assert_eq!(ended(&mut calls).await.0, 3, "the canceled call is not replied to");
}

#[tokio::test(start_paused = true)]
async fn stopping_a_turn_cancels_its_tools_and_waits_for_them() {
    static CLEANED_UP: AtomicBool = AtomicBool::new(false);
    let careful = tool("careful", |call: HostCall| {
        Box::pin(async move {
            call.cancel.cancelled().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            CLEANED_UP.store(true, Ordering::SeqCst);
            HostToolOutcome::success("late")
        })
    });
    let mut calls = calls(vec![careful, idle("idle"), Arc::new(AskUser)]);
    start(&mut calls, 1, "careful", json!({}));
    start(&mut calls, 2, "idle", json!({}));
    start(&mut calls, 3, "ask_user", json!({"question": "Which?"}));
    assert!(matches!(reported(&mut calls).await, TurnEvent::Approval { .. }));
    calls.stop();
    start(&mut calls, 4, "idle", json!({}));
    let (key, outcome) = ended(&mut calls).await;
    assert!(key == 4 && outcome.text.contains("the turn was stopped"), "only a new call is replied to: {outcome:?}");
    let before = Instant::now();
    calls.shut_down().await;
    assert!(CLEANED_UP.load(Ordering::SeqCst) && before.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn skill_is_loaded_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("more")).unwrap();
    std::fs::write(folder.path().join("SKILL.md"), "---\nname: s\ndescription: Does s.\n---\nFirst this.\n").unwrap();
    std::fs::write(folder.path().join("more/a.txt"), "further").unwrap();
    let mut workspace = workspace_with(tools::all());
    workspace.skills = vec![SkillFolder::read("s", folder.path()).unwrap()];
    let mut calls = HostToolCalls::new(HostToolAgent::on_model_api(workspace), RunId::generate());
    let further = "\n\nFurther files of this skill, to be loaded one by one: more/a.txt";
    for (input, expected) in [
        (json!({"name": "s"}), HostToolOutcome::success(format!("<skill name=\"s\">\nFirst this.\n</skill>{further}"))),
        (json!({"name": "s", "file": "more/a.txt"}), HostToolOutcome::success("further")),
        (json!({"name": "t"}), HostToolOutcome::error("name: one of s")),
    ] {
        start(&mut calls, 1, "skill", input);
        assert_eq!(ended(&mut calls).await.1, expected);
    }
    start(&mut calls, 1, "skill", json!({"name": "s", "file": "../secret"}));
    let outcome = ended(&mut calls).await.1;
    assert!(outcome.is_error && outcome.text.contains("is outside of"), "{outcome:?}");
}

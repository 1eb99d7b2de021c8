//! Tools: approvals, policies, host tools and questions.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{RoomFollower, data, journal, message_of, post, post_text, wait_for_end},
};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    message::Part,
    run::{Run, RunStatus},
};
use serde_json::{Value, json};
use testkit::client::TestClient;

with_each_cli! {
    allowed_tool_runs_and_the_answer_continues,
    denied_tool_does_not_run,
    remembered_tool_needs_no_approval,
    policy_decides_without_asking,
    host_tools_are_available,
    question_waits_for_a_person,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini_uses_host_tools_over_http() {
    let fixture = CliFixture::start(Cli::Gemini).await;
    host_tools_are_available(&fixture).await;
    fixture.wait_for_process(BRIDGE, false).await;
    fixture.assert_not_in_files("grp_");
    fixture.finish().await;
}

/// A proxy would see the agent token, so Gemini gets a stdio program instead of a URL. The proxy here does not exist,
/// so requests through it fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini_behind_a_proxy_uses_the_stdio_bridge() {
    let unused_proxy = "http://127.0.0.1:9";
    let proxy = [
        ("HTTP_PROXY", unused_proxy),
        ("HTTPS_PROXY", unused_proxy),
        ("NO_PROXY", "127.0.0.1"),
        // Inside of a sandbox it has no proxy of the machine.
        ("GREENROOM_SANDBOX__AGENTS", "none"),
    ];
    let fixture = CliFixture::start_with(Cli::Gemini, "test-key", &proxy).await;
    host_tools_are_available(&fixture).await;
    fixture.wait_for_process(BRIDGE, true).await;
    question_waits_for_a_person(&fixture).await;
    fixture.assert_not_in_files("grp_");
    fixture.finish().await;
}

/// The command line of the stdio bridge that an agent starts.
const BRIDGE: &str = concat!(env!("CARGO_BIN_EXE_greenroom"), " mcp");

/// Posts a message that needs approval, and returns the run and the approval request.
pub async fn asked(api: &TestClient, room: RoomId, text: &str) -> (RunId, Value) {
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, text).await;
    let event = follower
        .until("an approval or an end", |event| {
            event.run_id == Some(run) && (event.kind == EventType::ApprovalRequested || event.kind.ends_a_run())
        })
        .await;
    assert_eq!(event.kind, EventType::ApprovalRequested, "{:#?}", follower.seen);
    (run, data(&event))
}

pub async fn decide(api: &TestClient, run: RunId, asked: &Value, body: Value) {
    let approval = asked["approval_id"].as_str().unwrap();
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), &body).await.expect_status(204);
}

/// The tool calls of a run: name, and whether the result is an error.
async fn calls(api: &TestClient, run: &Run) -> Vec<(String, bool)> {
    let message = message_of(api, run).await;
    let call = |part: &Part| match part {
        Part::Tool(call) => Some((call.name.clone(), call.result.as_ref().is_none_or(|result| result.is_error))),
        _ => None,
    };
    message.parts.iter().filter_map(call).collect()
}

async fn allowed_tool_runs_and_the_answer_continues(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let (run, asked) = asked(&api, room, "!tool touch made.txt").await;
    assert_eq!(asked["name"], fixture.cli.shell());
    assert!(asked["input"].to_string().contains("touch made.txt"), "the exact input must be shown: {asked}");
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval);
    assert!(!fixture.workspace(room).join("made.txt").exists(), "the tool must wait");
    decide(&api, run, &asked, json!({"decision": "allow"})).await;
    let run = wait_for_end(&api, run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(fixture.workspace(room).join("made.txt").exists(), "{details}");
    assert_eq!(calls(&api, &run).await, [(fixture.cli.shell().to_owned(), false)], "{details}");
    assert!(!message_of(&api, &run).await.text.is_empty(), "the answer must continue after the tool\n{details}");
}

async fn denied_tool_does_not_run(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let (run, asked) = asked(&api, room, "!tool touch made.txt").await;
    decide(&api, run, &asked, json!({"decision": "deny"})).await;
    let run = wait_for_end(&api, run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(!fixture.workspace(room).join("made.txt").exists(), "{details}");
    assert_eq!(calls(&api, &run).await, [(fixture.cli.shell().to_owned(), true)], "{details}");
}

async fn remembered_tool_needs_no_approval(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let (run, asked) = asked(&api, room, "!tool touch one.txt").await;
    decide(&api, run, &asked, json!({"decision": "allow", "remember": true})).await;
    wait_for_end(&api, run).await;
    let run = crate::requests::post_and_wait(&api, room, "!tool touch two.txt").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(fixture.workspace(room).join("two.txt").exists(), "{details}");
}

async fn policy_decides_without_asking(fixture: &CliFixture) {
    let api = fixture.api();
    let shell = fixture.cli.shell();
    for (name, tools, made) in
        [("open", json!({"allow": [shell]}), true), ("shut", json!({"allow": ["*"], "deny": [shell]}), false)]
    {
        let agent = fixture.agent_with(name, json!({"tools": tools})).await;
        let room = api.create_room(name, &[agent]).await.unwrap().id;
        let run = crate::requests::post_and_wait(&api, room, "!tool touch made.txt").await;
        let details = fixture.details(&run, &journal(&api, room).await);
        assert_eq!(run.status, RunStatus::Completed, "{details}");
        assert_eq!(fixture.workspace(room).join("made.txt").exists(), made, "{details}");
    }
}

async fn host_tools_are_available(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("opener", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("host tools", &[agent]).await.unwrap().id;
    let run = crate::requests::post_and_wait(&api, room, "!call current_time {}").await;
    let message = message_of(&api, &run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let Some(call) = message.parts.iter().find_map(|part| match part {
        Part::Tool(call) => Some(call),
        _ => None,
    }) else {
        panic!("{details}")
    };
    assert!(call.name.ends_with("current_time"), "{details}");
    let result = call.result.as_ref().unwrap();
    assert!(!result.is_error && result.content.to_string().contains("20"), "{details}");
}

async fn question_waits_for_a_person(fixture: &CliFixture) {
    let api = fixture.api();
    // A policy that allows everything does not answer questions.
    let agent = fixture.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("questions", &[agent]).await.unwrap().id;
    let question = format!(r#"!call {} {{"question": "Which colour?"}}"#, fixture.cli.asking());
    let (run, asked) = asked(&api, room, &question).await;
    assert_eq!(asked["name"], "ask_user");
    assert_eq!(
        (&asked["is_question"], &asked["input"]["question"]),
        (&json!(true), &json!("Which colour?")),
        "{asked}"
    );
    decide(&api, run, &asked, json!({"decision": "allow", "input": {"answer": "vermilion"}})).await;
    let run = wait_for_end(&api, run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(message_of(&api, &run).await.text.contains("vermilion"), "the model must get the answer\n{details}");
}

//! Tools: what writes asks in the room, goes on when answered, and does not when denied.

use crate::{
    scene::{Audience, data, ended, journal, message_of, post, say},
    stage::{Cli, Stage},
};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    message::Part,
    run::{Run, RunStatus},
};
use serde_json::{Value, json};
use testkit::client::Api;

with_each_cli! {
    a_tool_asks_and_goes_on_when_allowed,
    a_tool_that_is_denied_does_nothing,
    what_is_remembered_does_not_ask_again,
    the_policy_answers_for_the_person,
    host_tools_are_there,
    a_question_waits_for_a_person,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini_has_its_host_tools_at_the_door_itself() {
    let stage = Stage::start(Cli::Gemini).await;
    host_tools_are_there(&stage).await;
    stage.wait_for_process(CARRYING, false).await;
    stage.assert_nowhere("grp_");
    stage.finish().await;
}

/// A proxy would learn the pass, so Gemini is given a program in place of an address. Here the proxy is one that nobody runs:
/// whatever is sent to it is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini_behind_a_proxy_starts_a_program_for_its_host_tools() {
    let nowhere = "http://127.0.0.1:9";
    let proxy = [("HTTP_PROXY", nowhere), ("HTTPS_PROXY", nowhere), ("NO_PROXY", "127.0.0.1")];
    let stage = Stage::start_with(Cli::Gemini, "test-key", &proxy).await;
    host_tools_are_there(&stage).await;
    stage.wait_for_process(CARRYING, true).await;
    a_question_waits_for_a_person(&stage).await;
    stage.assert_nowhere("grp_");
    stage.finish().await;
}

/// Our own program, as an agent starts it.
const CARRYING: &str = concat!(env!("CARGO_BIN_EXE_greenroom"), " mcp");

/// Says something that makes the agent ask, and returns the run and what it asked.
pub async fn asked(api: &Api, room: RoomId, text: &str) -> (RunId, Value) {
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, text).await;
    let event = audience
        .until("an approval or an end", |event| {
            event.run_id == Some(run) && (event.kind == EventType::ApprovalRequested || event.kind.ends_a_run())
        })
        .await;
    assert_eq!(event.kind, EventType::ApprovalRequested, "{:#?}", audience.seen);
    (run, data(&event))
}

pub async fn decide(api: &Api, run: RunId, asked: &Value, body: Value) {
    let approval = asked["approval_id"].as_str().unwrap();
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), &body).await.is(204);
}

/// The tool calls of a run's answer: name, and whether the result is an error.
async fn calls(api: &Api, run: &Run) -> Vec<(String, bool)> {
    let message = message_of(api, run).await;
    let call = |part: &Part| match part {
        Part::Tool(call) => Some((call.name.clone(), call.result.as_ref().is_none_or(|result| result.is_error))),
        _ => None,
    };
    message.parts.iter().filter_map(call).collect()
}

async fn a_tool_asks_and_goes_on_when_allowed(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let (run, asked) = asked(&api, room, "!tool touch made.txt").await;
    assert_eq!(asked["name"], stage.cli.shell());
    assert!(asked["input"].to_string().contains("touch made.txt"), "the exact input is shown: {asked}");
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval);
    assert!(!stage.workplace(room).join("made.txt").exists(), "it waits");
    decide(&api, run, &asked, json!({"decision": "allow"})).await;
    let run = ended(&api, run).await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(stage.workplace(room).join("made.txt").exists(), "{story}");
    assert_eq!(calls(&api, &run).await, [(stage.cli.shell().to_owned(), false)], "{story}");
    assert!(!message_of(&api, &run).await.text.is_empty(), "it goes on after the tool\n{story}");
}

async fn a_tool_that_is_denied_does_nothing(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let (run, asked) = asked(&api, room, "!tool touch made.txt").await;
    decide(&api, run, &asked, json!({"decision": "deny"})).await;
    let run = ended(&api, run).await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(!stage.workplace(room).join("made.txt").exists(), "{story}");
    assert_eq!(calls(&api, &run).await, [(stage.cli.shell().to_owned(), true)], "{story}");
}

async fn what_is_remembered_does_not_ask_again(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let (run, asked) = asked(&api, room, "!tool touch one.txt").await;
    decide(&api, run, &asked, json!({"decision": "allow", "remember": true})).await;
    ended(&api, run).await;
    let run = crate::scene::answered(&api, room, "!tool touch two.txt").await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(stage.workplace(room).join("two.txt").exists(), "{story}");
}

async fn the_policy_answers_for_the_person(stage: &Stage) {
    let api = stage.api();
    let shell = stage.cli.shell();
    for (name, tools, made) in
        [("open", json!({"allow": [shell]}), true), ("shut", json!({"allow": ["*"], "deny": [shell]}), false)]
    {
        let agent = stage.agent_with(name, json!({"tools": tools})).await;
        let room = api.create_room(name, &[agent]).await.unwrap().id;
        let run = crate::scene::answered(&api, room, "!tool touch made.txt").await;
        let story = stage.story(&run, &journal(&api, room).await);
        assert_eq!(run.status, RunStatus::Completed, "{story}");
        assert_eq!(stage.workplace(room).join("made.txt").exists(), made, "{story}");
    }
}

async fn host_tools_are_there(stage: &Stage) {
    let api = stage.api();
    let agent = stage.agent_with("opener", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("host tools", &[agent]).await.unwrap().id;
    let run = crate::scene::answered(&api, room, "!call current_time {}").await;
    let message = message_of(&api, &run).await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    let Some(call) = message.parts.iter().find_map(|part| match part {
        Part::Tool(call) => Some(call),
        _ => None,
    }) else {
        panic!("{story}")
    };
    assert!(call.name.ends_with("current_time"), "{story}");
    let result = call.result.as_ref().unwrap();
    assert!(!result.is_error && result.content.to_string().contains("20"), "{story}");
}

async fn a_question_waits_for_a_person(stage: &Stage) {
    let api = stage.api();
    // Not even a policy that allows everything answers a question.
    let agent = stage.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("questions", &[agent]).await.unwrap().id;
    let question = format!(r#"!call {} {{"question": "Which colour?"}}"#, stage.cli.asking());
    let (run, asked) = asked(&api, room, &question).await;
    assert_eq!(asked["name"], "ask_user");
    assert_eq!(
        (&asked["is_question"], &asked["input"]["question"]),
        (&json!(true), &json!("Which colour?")),
        "{asked}"
    );
    decide(&api, run, &asked, json!({"decision": "allow", "input": {"answer": "vermilion"}})).await;
    let run = ended(&api, run).await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(message_of(&api, &run).await.text.contains("vermilion"), "the model heard it\n{story}");
}

//! Remembered tool approvals, and forgetting them.

use super::{
    binary::Binary,
    requests::{
        ApiResponse, RoomFollower, agent, data, delete, get, journal, message_of, post, post_and_wait, post_text,
        response_to, room_of, wait_for_end, within,
    },
};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId, RunId},
    run::RunStatus,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};
use uuid::Uuid;

on_both_databases! {
    server: approval_is_remembered_per_agent_and_room, forgotten_tool_asks_again,
            active_run_applies_changes_at_once, denial_is_not_remembered, deny_policy_overrides_remembered,
            m12_always_remembers_what_the_person_saw;
    database: invariant_15_owner_remembered_tools_are_private;
}

const ASK: &str = r#"!ask mcp/Bash {"cmd":"ls"}"#;
const TOOL: &str = "mcp/Bash";

async fn agent_and_room(api: &TestClient, settings: Value) -> (AgentId, RoomId) {
    let agent = agent(api, &Uuid::now_v7().to_string(), settings).await;
    (agent, room_of(api, &[agent]).await)
}

/// Starts a run that requests approval.
async fn asking(api: &TestClient, room: RoomId, text: &str) -> (RunId, String, RoomFollower) {
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, text).await;
    let (_, approval) = asked(&mut follower, run, 0).await;
    (run, approval, follower)
}

/// Returns the first approval request of a run after this seq, with its seq.
async fn asked(follower: &mut RoomFollower, run: RunId, after: u64) -> (u64, String) {
    let wanted = follower
        .until("an approval", |event| {
            event.kind == EventType::ApprovalRequested && event.run_id == Some(run) && event.seq > after
        })
        .await;
    (wanted.seq, data(&wanted)["approval_id"].as_str().unwrap().to_owned())
}

async fn decide(api: &TestClient, run: RunId, approval: &str, body: Value) -> ApiResponse {
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), &body).await
}

async fn remembered(api: &TestClient, room: RoomId) -> Vec<(String, String)> {
    let list = get(api, &format!("/api/rooms/{room}/remembered")).await.expect_status(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tools = list["remembered"].as_array().unwrap().iter();
    tools.map(|one| (text(&one["agent_id"]), text(&one["tool"]))).collect()
}

fn of(room: RoomId, agent: AgentId, tool: &str) -> String {
    format!("/api/rooms/{room}/remembered/{agent}?tool={}", tool.replace('/', "%2F"))
}

async fn approval_is_remembered_per_agent_and_room(api: &TestClient) {
    let (agent, room) = agent_and_room(api, json!({})).await;
    assert!(remembered(api, room).await.is_empty());
    let (run, approval, mut follower) = asking(api, room, ASK).await;
    let yes = json!({"decision": "allow", "remember": true});
    assert_eq!(decide(api, run, &approval, yes.clone()).await.status, 204);
    assert_eq!(
        remembered(api, room).await,
        [(agent.to_string(), TOOL.to_owned())],
        "a 2xx must mean that it is stored"
    );
    let resolved = data(&follower.until_kind(EventType::ApprovalResolved, run).await);
    assert_eq!((&resolved["decision"], &resolved["remember"]), (&json!("allow"), &json!(true)));
    wait_for_end(api, run).await;
    assert_eq!(decide(api, run, &approval, yes).await.status, 204, "repeating the same decision must succeed");
    decide(api, run, &approval, json!({"decision": "allow"})).await.expect_problem(409, "run_ended");

    let next = post_and_wait(api, room, ASK).await;
    assert_eq!((next.status, message_of(api, &next).await.text.as_str()), (RunStatus::Completed, "allowed"));
    let asked = journal(api, room).await.iter().filter(|event| event.kind == EventType::ApprovalRequested).count();
    assert_eq!(asked, 1, "a later run must not ask");

    let elsewhere = room_of(api, &[agent]).await;
    let (run, ..) = asking(api, elsewhere, ASK).await;
    assert!(remembered(api, elsewhere).await.is_empty());
    api.cancel_run(run).await.unwrap();
    let (run, ..) = asking(api, room, "!ask Other").await;
    api.cancel_run(run).await.unwrap();
}

/// "Always" after one command once allowed every command of that tool.
async fn m12_always_remembers_what_the_person_saw(api: &TestClient) {
    let ask = |command: &str| format!(r#"!ask Bash {{"command":"{command}"}}"#);
    for (scope, rule, allowed, asked) in [
        ("exact", r#"Bash({"command":"git status"})"#, "git status", "git status -s"),
        ("pattern", "Bash(git status:*)", "git status src", "git status -s"),
        ("tool", "Bash", "git push", ""),
    ] {
        let (agent, room) = agent_and_room(api, json!({})).await;
        let (run, approval, follower) = asking(api, room, &ask("git status")).await;
        assert_eq!(data(follower.seen.last().unwrap())["pattern"], "Bash(git status:*)");
        let yes = json!({"decision": "allow", "remember": scope});
        assert_eq!(decide(api, run, &approval, yes).await.status, 204);
        wait_for_end(api, run).await;
        let list = get(api, &format!("/api/rooms/{room}/remembered")).await.expect_status(200);
        let one = &list["remembered"][0];
        assert_eq!((&one["tool"], &one["scope"], &one["rule"]), (&json!("Bash"), &json!(scope), &json!(rule)));
        let next = post_and_wait(api, room, &ask(allowed)).await;
        assert_eq!(message_of(api, &next).await.text, "allowed", "{scope}: {allowed}");
        if !asked.is_empty() {
            let (run, ..) = asking(api, room, &ask(asked)).await;
            api.cancel_run(run).await.unwrap();
        }
        delete(api, &of(room, agent, "Bash")).await.expect_status(204);
        let (run, ..) = asking(api, room, &ask("git status")).await;
        api.cancel_run(run).await.unwrap();
    }
    let (_, room) = agent_and_room(api, json!({})).await;
    let (run, approval, _) = asking(api, room, &ask("sh -c id")).await;
    let pattern = json!({"decision": "allow", "remember": "pattern"});
    let refused = decide(api, run, &approval, pattern).await.expect_problem(422, "unprocessable");
    assert!(refused["detail"].as_str().unwrap().contains("no pattern"), "{refused}");
    decide(api, run, &approval, json!({"decision": "allow", "remember": "all"}))
        .await
        .expect_problem(400, "invalid_request");
    api.cancel_run(run).await.unwrap();
}

async fn forgotten_tool_asks_again(api: &TestClient) {
    let (agent, room) = agent_and_room(api, json!({})).await;
    let (run, approval, _) = asking(api, room, ASK).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow", "remember": true})).await.status, 204);
    wait_for_end(api, run).await;
    for other in [of(room, agent, "Bash"), of(room, AgentId::generate(), TOOL)] {
        delete(api, &other).await.expect_status(204);
    }
    assert_eq!(remembered(api, room).await.len(), 1, "only the named tool may be forgotten");
    for _ in 0..2 {
        delete(api, &of(room, agent, TOOL)).await.expect_status(204);
        assert!(remembered(api, room).await.is_empty());
    }
    let (run, ..) = asking(api, room, ASK).await;
    api.cancel_run(run).await.unwrap();

    delete(api, &of(RoomId::generate(), agent, TOOL)).await.expect_problem(404, "not_found");
    get(api, &format!("/api/rooms/{}/remembered", RoomId::generate())).await.expect_problem(404, "not_found");
    delete(api, &format!("/api/rooms/{room}/remembered/{agent}")).await.expect_problem(400, "invalid_request");
    delete(api, &format!("/api/rooms/{room}/remembered/x?tool=y")).await.expect_problem(404, "not_found");
}

/// The first approval is remembered, the second call needs none; after forgetting, the last call asks again.
async fn active_run_applies_changes_at_once(api: &TestClient) {
    let (ask, pause) = (json!({"approval": {"name": TOOL}}), json!({"approval": {"name": "pause"}}));
    let script = json!([ask, ask, pause, ask, {"text": "done"}]);
    let (agent, room) = agent_and_room(api, json!({})).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, &format!("!script {script}")).await;
    let (seq, first) = asked(&mut follower, run, 0).await;
    assert_eq!(decide(api, run, &first, json!({"decision": "allow", "remember": true})).await.status, 204);
    let (seq, pause) = asked(&mut follower, run, seq).await;
    assert_eq!(data(follower.seen.last().unwrap())["name"], "pause", "the second call must not ask");
    delete(api, &of(room, agent, TOOL)).await.expect_status(204);
    assert_eq!(decide(api, run, &pause, json!({"decision": "allow"})).await.status, 204);
    let (_, last) = asked(&mut follower, run, seq).await;
    assert_eq!(decide(api, run, &last, json!({"decision": "deny"})).await.status, 204);
    assert_eq!(wait_for_end(api, run).await.status, RunStatus::Completed);
    assert!(remembered(api, room).await.is_empty());
}

async fn denial_is_not_remembered(api: &TestClient) {
    let (_, room) = agent_and_room(api, json!({})).await;
    let (run, approval, _) = asking(api, room, ASK).await;
    let no = json!({"decision": "deny", "remember": true});
    let problem = decide(api, run, &approval, no).await.expect_problem(422, "unprocessable");
    assert_eq!(problem["pointer"], "/remember");
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "the run must keep waiting");
    assert_eq!(decide(api, run, &approval, json!({"decision": "deny", "remember": false})).await.status, 204);
    wait_for_end(api, run).await;
    assert!(remembered(api, room).await.is_empty());
}

async fn deny_policy_overrides_remembered(api: &TestClient) {
    let (agent, room) = agent_and_room(api, json!({"tools": {"ask": ["*"]}})).await;
    let (run, approval, _) = asking(api, room, ASK).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow", "remember": true})).await.status, 204);
    wait_for_end(api, run).await;
    let run = post_and_wait(api, room, ASK).await;
    assert_eq!(message_of(api, &run).await.text, "allowed", "remembered must override ask");
    let patch = json!({"tools": {"deny": ["mcp/*"]}});
    response_to(api.request(Method::PATCH, &format!("/api/agents/{agent}")).json(&patch)).await.expect_status(200);
    let run = post_and_wait(api, room, ASK).await;
    assert_eq!(message_of(api, &run).await.text, "denied");
}

async fn invariant_15_owner_remembered_tools_are_private(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let mut tokens = Vec::new();
    for user in ["ada", "eve"] {
        let made = binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await;
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        tokens.push(made.stdout.trim().to_owned());
    }
    let (server, api) = binary.serve().await;
    let (ada, eve) = (api.clone().with_token(&tokens[0]), api.with_token(&tokens[1]));
    let (agent, room) = agent_and_room(&ada, json!({})).await;
    let (run, approval, _) = asking(&ada, room, ASK).await;
    let yes = json!({"decision": "allow", "remember": true});
    decide(&eve, run, &approval, yes.clone()).await.expect_problem(404, "not_found");
    assert_eq!(decide(&ada, run, &approval, yes).await.status, 204);
    get(&eve, &format!("/api/rooms/{room}/remembered")).await.expect_problem(404, "not_found");
    delete(&eve, &of(room, agent, TOOL)).await.expect_problem(404, "not_found");
    assert_eq!(remembered(&ada, room).await.len(), 1);
    within("its end", server.terminate(Duration::from_secs(30))).await.unwrap();
}

//! A tool that is allowed once and for all, and asked about again.

use super::{
    binary::Binary,
    scene::{
        Answer, Audience, agent, answer, answered, data, delete, ended, get, journal, message_of, post, room_of, say,
        within,
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
use testkit::{client::Api, database::TestDatabase};
use uuid::Uuid;

doors! {
    server: an_allowed_tool_is_remembered_for_its_agent_and_room, a_forgotten_tool_is_asked_about_again,
            a_run_under_way_honours_both_at_once, a_no_is_not_remembered, what_is_denied_stays_denied;
    database: invariant_15_owner_what_others_remember_is_not_shown;
}

const ASK: &str = r#"!ask mcp/Bash {"cmd":"ls"}"#;
const TOOL: &str = "mcp/Bash";

async fn scene(api: &Api, settings: Value) -> (AgentId, RoomId) {
    let agent = agent(api, &Uuid::now_v7().to_string(), settings).await;
    (agent, room_of(api, &[agent]).await)
}

/// A run that asks.
async fn asking(api: &Api, room: RoomId, text: &str) -> (RunId, String, Audience) {
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, text).await;
    let (_, approval) = asked(&mut audience, run, 0).await;
    (run, approval, audience)
}

/// The first approval that a run wants after this seq, and the seq of that.
async fn asked(audience: &mut Audience, run: RunId, after: u64) -> (u64, String) {
    let wanted = audience
        .until("an approval", |event| {
            event.kind == EventType::ApprovalRequested && event.run_id == Some(run) && event.seq > after
        })
        .await;
    (wanted.seq, data(&wanted)["approval_id"].as_str().unwrap().to_owned())
}

async fn decide(api: &Api, run: RunId, approval: &str, body: Value) -> Answer {
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), &body).await
}

async fn remembered(api: &Api, room: RoomId) -> Vec<(String, String)> {
    let list = get(api, &format!("/api/rooms/{room}/remembered")).await.is(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tools = list["remembered"].as_array().unwrap().iter();
    tools.map(|one| (text(&one["agent_id"]), text(&one["tool"]))).collect()
}

fn of(room: RoomId, agent: AgentId, tool: &str) -> String {
    format!("/api/rooms/{room}/remembered/{agent}?tool={}", tool.replace('/', "%2F"))
}

async fn an_allowed_tool_is_remembered_for_its_agent_and_room(api: &Api) {
    let (agent, room) = scene(api, json!({})).await;
    assert!(remembered(api, room).await.is_empty());
    let (run, approval, mut audience) = asking(api, room, ASK).await;
    let yes = json!({"decision": "allow", "remember": true});
    assert_eq!(decide(api, run, &approval, yes.clone()).await.status, 204);
    assert_eq!(remembered(api, room).await, [(agent.to_string(), TOOL.to_owned())], "a 2xx means that it is stored");
    let resolved = data(&audience.until_kind(EventType::ApprovalResolved, run).await);
    assert_eq!((&resolved["decision"], &resolved["remember"]), (&json!("allow"), &json!(true)));
    ended(api, run).await;
    assert_eq!(decide(api, run, &approval, yes).await.status, 204, "said again, it is answered alike");
    decide(api, run, &approval, json!({"decision": "allow"})).await.is_refused(409, "run_ended");

    let next = answered(api, room, ASK).await;
    assert_eq!((next.status, message_of(api, &next).await.text.as_str()), (RunStatus::Completed, "allowed"));
    let asked = journal(api, room).await.iter().filter(|event| event.kind == EventType::ApprovalRequested).count();
    assert_eq!(asked, 1, "a later run does not ask");

    let elsewhere = room_of(api, &[agent]).await;
    let (run, ..) = asking(api, elsewhere, ASK).await;
    assert!(remembered(api, elsewhere).await.is_empty());
    api.cancel_run(run).await.unwrap();
    let (run, ..) = asking(api, room, "!ask Other").await;
    api.cancel_run(run).await.unwrap();
}

async fn a_forgotten_tool_is_asked_about_again(api: &Api) {
    let (agent, room) = scene(api, json!({})).await;
    let (run, approval, _) = asking(api, room, ASK).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow", "remember": true})).await.status, 204);
    ended(api, run).await;
    for other in [of(room, agent, "Bash"), of(room, AgentId::generate(), TOOL)] {
        delete(api, &other).await.is(204);
    }
    assert_eq!(remembered(api, room).await.len(), 1, "another was meant");
    for _ in 0..2 {
        delete(api, &of(room, agent, TOOL)).await.is(204);
        assert!(remembered(api, room).await.is_empty());
    }
    let (run, ..) = asking(api, room, ASK).await;
    api.cancel_run(run).await.unwrap();

    delete(api, &of(RoomId::generate(), agent, TOOL)).await.is_refused(404, "not_found");
    get(api, &format!("/api/rooms/{}/remembered", RoomId::generate())).await.is_refused(404, "not_found");
    delete(api, &format!("/api/rooms/{room}/remembered/{agent}")).await.is_refused(400, "invalid_request");
    delete(api, &format!("/api/rooms/{room}/remembered/x?tool=y")).await.is_refused(404, "not_found");
}

/// The first ask is remembered, the second passes, the tool is forgotten, the last asks again.
async fn a_run_under_way_honours_both_at_once(api: &Api) {
    let (ask, pause) = (json!({"approval": {"name": TOOL}}), json!({"approval": {"name": "pause"}}));
    let script = json!([ask, ask, pause, ask, {"text": "done"}]);
    let (agent, room) = scene(api, json!({})).await;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, &format!("!script {script}")).await;
    let (seq, first) = asked(&mut audience, run, 0).await;
    assert_eq!(decide(api, run, &first, json!({"decision": "allow", "remember": true})).await.status, 204);
    let (seq, pause) = asked(&mut audience, run, seq).await;
    assert_eq!(data(audience.seen.last().unwrap())["name"], "pause", "the second was not asked about");
    delete(api, &of(room, agent, TOOL)).await.is(204);
    assert_eq!(decide(api, run, &pause, json!({"decision": "allow"})).await.status, 204);
    let (_, last) = asked(&mut audience, run, seq).await;
    assert_eq!(decide(api, run, &last, json!({"decision": "deny"})).await.status, 204);
    assert_eq!(ended(api, run).await.status, RunStatus::Completed);
    assert!(remembered(api, room).await.is_empty());
}

async fn a_no_is_not_remembered(api: &Api) {
    let (_, room) = scene(api, json!({})).await;
    let (run, approval, _) = asking(api, room, ASK).await;
    let no = json!({"decision": "deny", "remember": true});
    let problem = decide(api, run, &approval, no).await.is_refused(422, "unprocessable");
    assert_eq!(problem["pointer"], "/remember");
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "it waits on");
    assert_eq!(decide(api, run, &approval, json!({"decision": "deny", "remember": false})).await.status, 204);
    ended(api, run).await;
    assert!(remembered(api, room).await.is_empty());
}

async fn what_is_denied_stays_denied(api: &Api) {
    let (agent, room) = scene(api, json!({"tools": {"ask": ["*"]}})).await;
    let (run, approval, _) = asking(api, room, ASK).await;
    assert_eq!(decide(api, run, &approval, json!({"decision": "allow", "remember": true})).await.status, 204);
    ended(api, run).await;
    let run = answered(api, room, ASK).await;
    assert_eq!(message_of(api, &run).await.text, "allowed", "what is remembered beats ask");
    let patch = json!({"tools": {"deny": ["mcp/*"]}});
    answer(api.request(Method::PATCH, &format!("/api/agents/{agent}")).json(&patch)).await.is(200);
    let run = answered(api, room, ASK).await;
    assert_eq!(message_of(api, &run).await.text, "denied");
}

async fn invariant_15_owner_what_others_remember_is_not_shown(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let mut tokens = Vec::new();
    for user in ["ada", "eve"] {
        let made = binary.beside(&["token", "create", "--user", user]).await;
        assert_eq!(made.code, Some(0), "{}", made.side);
        tokens.push(made.out.trim().to_owned());
    }
    let (server, api) = binary.serve().await;
    let (ada, eve) = (api.clone().with_token(&tokens[0]), api.with_token(&tokens[1]));
    let (agent, room) = scene(&ada, json!({})).await;
    let (run, approval, _) = asking(&ada, room, ASK).await;
    let yes = json!({"decision": "allow", "remember": true});
    decide(&eve, run, &approval, yes.clone()).await.is_refused(404, "not_found");
    assert_eq!(decide(&ada, run, &approval, yes).await.status, 204);
    get(&eve, &format!("/api/rooms/{room}/remembered")).await.is_refused(404, "not_found");
    delete(&eve, &of(room, agent, TOOL)).await.is_refused(404, "not_found");
    assert_eq!(remembered(&ada, room).await.len(), 1);
    within("its end", server.terminate(Duration::from_secs(30))).await.unwrap();
}

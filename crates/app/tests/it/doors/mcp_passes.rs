//! What an agent inside a run finds at `/mcp`, with the pass of its process: its host tools and nothing else, and nothing at all
//! once the process has ended.
//!
//! The agent is testkit's `replay`, which tells what it was given; the cases go to the door in its place.

use super::{
    binary::Binary,
    mcp_scene::{ACCEPT, LEGACY, Stream, initialize, message, modern, reply},
    scene::{Answer, Audience, answer, data, ended, post, say, within},
};
use crate::mcp::Mcp;
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    run::RunStatus,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::{Api, SeenEvent},
    database::TestDatabase,
    programs,
    server::{TestServer, assert_none_carries},
};
use uuid::Uuid;

doors! {
    database: invariant_15_a_pass_opens_the_host_tools_and_nothing_else, invariant_17_secrets_stay_a_pass_ends_with_its_process,
              a_question_is_answered_over_http, a_question_that_is_given_up_is_withdrawn, limits_of_a_pass,
              an_agent_that_only_starts_processes, a_pass_needs_no_account,
              invariant_17_secrets_stay_also_where_the_server_listens_everywhere;
}

/// A run whose agent has told what it was given, and waits.
struct Guest {
    server: TestServer,
    audience: Audience,
    room: RoomId,
    run: RunId,
    /// The entry for Greenroom itself.
    entry: Value,
    mark: String,
}

impl Guest {
    async fn start(database: TestDatabase, speaks: &str) -> Self {
        let (agents, mark) = (double(speaks), Uuid::now_v7().to_string());
        let settings = [("acp.agents", agents.as_str()), ("acp.pass_env", "GUEST_MARK")];
        let server = TestServer::start_in(database, &settings, &[("GUEST_MARK", &mark)]).await;
        let (room, run, audience, entry) = given(server.api()).await;
        Self { server, audience, room, run, entry, mark }
    }

    fn api(&self) -> &Api {
        self.server.api()
    }

    fn variable(&self, name: &str) -> String {
        let all = self.entry["env"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    }

    fn secret(&self) -> String {
        assert_eq!(self.entry["url"], format!("{}/mcp", self.api().base()));
        secret(&self.entry)
    }

    /// As the agent asks.
    fn with_pass(&self) -> Api {
        self.api().clone().with_token(self.secret())
    }

    /// The next question to the room.
    async fn asked(&mut self) -> Value {
        self.audience.seen.clear();
        data(&self.audience.until_kind(EventType::ApprovalRequested, self.run).await)
    }

    /// Nobody is to answer it any more.
    async fn withdrawn(&mut self, asked: &Value) {
        let is_it = |event: &SeenEvent| {
            event.kind == EventType::ApprovalResolved && data(event)["approval_id"] == asked["approval_id"]
        };
        let resolved = data(&self.audience.until("a withdrawal", is_it).await);
        assert_ne!(resolved["decision"], "allow", "{resolved}");
    }

    async fn decide(&self, asked: &Value, body: Value) {
        let path = format!("/api/runs/{}/approvals/{}", self.run, asked["approval_id"].as_str().unwrap());
        assert_eq!(post(self.api(), &path, &body).await.status, 204);
    }

    /// The turn ends; the process stays.
    async fn stop(&self) {
        post(self.api(), &format!("/api/runs/{}/cancel", self.run), &json!({})).await;
        assert_eq!(ended(self.api(), self.run).await.status, RunStatus::Cancelled);
    }

    async fn finish(self) {
        self.server.finish().await;
        assert_none_carries(&self.mark).await;
    }
}

/// The configuration of the agent.
fn double(speaks: &str) -> String {
    format!("double = '{}' --fault blab --speaks {speaks}", programs::replay().display())
}

/// A run under way, and what its agent says it was given for Greenroom itself.
async fn given(api: &Api) -> (RoomId, RunId, Audience, Value) {
    let agent = post(api, "/api/agents", &json!({"name": "guest", "provider": "double"})).await.is(201);
    let room = api.create_room("A room", &[agent["id"].as_str().unwrap().parse().unwrap()]).await.unwrap().id;
    let mut audience = Audience::of(api, room).await;
    let run = say(api, room, "what were you given?").await;
    let told = data(&audience.first_word(run).await);
    let entries: Vec<Value> = serde_json::from_str(told["delta"].as_str().unwrap()).unwrap();
    let entry = entries.into_iter().find(|entry| entry["name"] == "greenroom").unwrap();
    (room, run, audience, entry)
}

/// What is in its header.
fn secret(entry: &Value) -> String {
    let header = &entry["headers"][0];
    assert_eq!((&entry["type"], &header["name"]), (&json!("http"), &json!("Authorization")));
    header["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
}

fn to_mcp(api: &Api, message: &Value) -> RequestBuilder {
    let request = api.request(Method::POST, "/mcp").header("accept", ACCEPT).header("mcp-protocol-version", LEGACY);
    request.json(message)
}

fn calling(id: u64, tool: &str, arguments: &Value) -> Value {
    message(id, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

fn question() -> Value {
    json!({"question": "Which?"})
}

fn names(answer: &Answer, id: u64) -> Vec<String> {
    let tools = reply(answer, id)["result"]["tools"].take();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn invariant_15_a_pass_opens_the_host_tools_and_nothing_else(database: TestDatabase) {
    let guest = Guest::start(database, "acp").await;
    let api = guest.with_pass();
    let greeted = answer(to_mcp(&api, &initialize())).await;
    assert!(!greeted.headers.contains_key("mcp-session-id"), "there is no session to keep");
    let told = reply(&greeted, 1)["result"].take();
    assert_eq!((&told["protocolVersion"], &told["capabilities"]), (&json!(LEGACY), &json!({"tools": {}})));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(answer(to_mcp(&api, &initialized)).await.status, 202);
    assert_eq!(reply(&answer(to_mcp(&api, &message(2, "ping", &json!({})))).await, 2)["result"], json!({}));
    let host_tools = ["current_time", "ask_people"];
    assert_eq!(names(&answer(to_mcp(&api, &message(3, "tools/list", &json!({})))).await, 3), host_tools);
    assert_eq!(names(&answer(modern(&api, 4, "tools/list", json!({}))).await, 4), host_tools);
    let time = reply(&answer(to_mcp(&api, &calling(5, "current_time", &json!({})))).await, 5);
    assert_eq!(time["result"]["isError"], false, "{time}");
    assert!(time["result"]["content"][0]["text"].as_str().unwrap().starts_with("20"), "{time}");

    // Of the server's own tools none is there, whatever they are called with.
    for tool in ["list_agents", "run_agent", "post_message", "read_room", "answer_approval", "ask_user"] {
        let told =
            reply(&answer(to_mcp(&api, &calling(6, tool, &json!({"agent": "guest", "message": "Hi"})))).await, 6);
        assert_eq!(told["result"]["isError"], true, "{told}");
        assert!(told["result"]["content"][0]["text"].as_str().unwrap().contains("no tool"), "{told}");
    }
    for method in [
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "resources/subscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
        "no/such/method",
    ] {
        let params = json!({"uri": format!("greenroom://rooms/{}", guest.room), "name": "x"});
        let told = reply(&answer(to_mcp(&api, &message(7, method, &params))).await, 7);
        assert_eq!(told["error"]["code"], -32601, "{method}: {told}");
        let told = answer(modern(&api, 8, method, params)).await;
        assert_eq!((told.status, &reply(&told, 8)["error"]["code"]), (404, &json!(-32601)), "{method}");
    }
    for method in [Method::GET, Method::DELETE] {
        let request = api.request(method, "/mcp").header("accept", ACCEPT).header("mcp-session-id", "x");
        assert_eq!(answer(request).await.status, 405);
    }
    // Without accounts anybody on this machine may ask; who shows a pass is not anybody.
    for (method, path) in [
        (Method::GET, "/api/rooms"),
        (Method::GET, "/api/agents"),
        (Method::POST, "/api/tokens"),
        (Method::POST, "/api/rooms"),
        (Method::GET, "/sse"),
        (Method::POST, "/message?sessionId=x"),
    ] {
        let request = api.request(method, path).header("accept", "text/event-stream").json(&json!({}));
        answer(request).await.is_refused(401, "unauthorized");
    }
    guest.stop().await;
    guest.finish().await;
}

async fn invariant_17_secrets_stay_a_pass_ends_with_its_process(database: TestDatabase) {
    let guest = Guest::start(database, "acp").await;
    let (list, secret) = (message(1, "tools/list", &json!({})), guest.secret());
    let (start, last) = secret.split_at(secret.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    for wrong in ["grp_".to_owned(), format!("{start}{other}"), start.to_owned(), format!("{secret}0")] {
        let api = guest.api().clone().with_token(wrong);
        answer(to_mcp(&api, &list)).await.is_refused(401, "unauthorized");
    }
    let api = guest.with_pass();
    // Somebody else's machine, by way of a proxy on this one.
    let request = to_mcp(&api, &list).header("x-forwarded-for", "203.0.113.7");
    answer(request).await.is_refused(401, "unauthorized");
    answer(to_mcp(&api, &list).header("origin", "https://evil.example")).await.is_refused(403, "forbidden_origin");
    assert_eq!(answer(to_mcp(&api, &list)).await.status, 200);

    // The process waits for the next turn, and so does its pass; but there is nobody to ask.
    guest.stop().await;
    let told = reply(&answer(to_mcp(&api, &calling(2, "ask_people", &question()))).await, 2);
    assert_eq!(told["result"]["isError"], true, "{told}");
    let run = say(guest.api(), guest.room, "now fall over").await;
    assert_eq!(ended(guest.api(), run).await.status, RunStatus::Failed);
    answer(to_mcp(&api, &list)).await.is_refused(401, "unauthorized");
    guest.finish().await;
}

async fn a_question_is_answered_over_http(database: TestDatabase) {
    let mut guest = Guest::start(database, "acp").await;
    let api = guest.with_pass();
    // The answer is long in coming, so its head comes first, and signs of life.
    let asking = to_mcp(&api, &calling(1, "ask_people", &question()));
    let (mut stream, asked) = tokio::join!(Stream::open(asking), guest.asked());
    assert_eq!((&asked["name"], &asked["is_question"]), (&json!("ask_user"), &json!(true)));
    assert_eq!(asked["input"], question());
    guest.decide(&asked, json!({"decision": "allow", "input": {"answer": "that"}})).await;
    stream.until("\"that\"").await;
    stream.end().await;
    guest.stop().await;
    guest.finish().await;
}

async fn a_question_that_is_given_up_is_withdrawn(database: TestDatabase) {
    let mut guest = Guest::start(database, "acp").await;
    let api = guest.with_pass();
    // By hanging up.
    let asking = to_mcp(&api, &calling(1, "ask_people", &question()));
    let (stream, asked) = tokio::join!(Stream::open(asking), guest.asked());
    drop(stream);
    guest.withdrawn(&asked).await;
    // By saying so.
    let asking = to_mcp(&api, &calling(2, "ask_people", &question()));
    let (stream, asked) = tokio::join!(Stream::open(asking), guest.asked());
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(answer(to_mcp(&api, &cancelled)).await.status, 202);
    guest.withdrawn(&asked).await;
    assert!(stream.end().await.contains("cancelled"));
    guest.stop().await;
    guest.finish().await;
}

async fn limits_of_a_pass(database: TestDatabase) {
    let guest = Guest::start(database, "acp").await;
    let api = guest.with_pass();
    let long = json!({"question": "x".repeat(300 * 1024)});
    assert_eq!(answer(to_mcp(&api, &calling(1, "ask_people", &long))).await.status, 413);
    for (body, code) in [("{", -32700), ("[]", -32600), ("7", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)] {
        let request = api.request(Method::POST, "/mcp").header("accept", ACCEPT);
        let refused = answer(request.header("content-type", "application/json").body(body)).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{body}: {refused:?}");
    }
    let mut asking = tokio::task::JoinSet::new();
    for id in 0..60 {
        let request = to_mcp(&api, &calling(id, "ask_people", &question()));
        asking.spawn(async move { (id, answer(request).await) });
    }
    let mut refused = 0;
    // Sixteen questions wait; the others are turned away at once, as a tool that failed or at the door.
    for _ in 16..60 {
        let (id, answer) = within("an answer", asking.join_next()).await.unwrap().unwrap();
        match answer.status {
            429 => {}
            _ => assert_eq!(reply(&answer, id)["result"]["isError"], true, "{answer:?}"),
        }
        refused += 1;
    }
    assert_eq!((refused, asking.len()), (44, 16));
    guest.stop().await;
    while let Some(answered) = within("an end", asking.join_next()).await {
        let (id, answer) = answered.unwrap();
        assert_eq!(reply(&answer, id)["result"]["isError"], true, "{answer:?}");
    }
    guest.finish().await;
}

async fn an_agent_that_only_starts_processes(database: TestDatabase) {
    let mut guest = Guest::start(database, "acp-stdio").await;
    assert_eq!(guest.entry["args"], json!(["mcp"]), "no secret among them");
    assert!(guest.entry["command"].as_str().unwrap().ends_with("greenroom"));
    assert_eq!(guest.variable("GREENROOM_SERVER"), guest.api().base());
    let mut mcp = Mcp::start_with(&guest.variable("GREENROOM_SERVER"), Some(&guest.variable("GREENROOM_TOKEN")));
    mcp.greet().await;
    mcp.call(1, "current_time", json!({})).await;
    assert_eq!(mcp.read_answer(1).await["result"]["isError"], false);
    mcp.call(2, "ask_people", question()).await;
    let asked = guest.asked().await;
    guest.decide(&asked, json!({"decision": "allow", "input": {"answer": "that"}})).await;
    assert_eq!(mcp.read_answer(2).await["result"]["content"][0]["text"], "that");
    // What the client cancels is taken back from the people, too.
    mcp.call(3, "ask_people", question()).await;
    let asked = guest.asked().await;
    mcp.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})).await;
    guest.withdrawn(&asked).await;
    let (code, _, notes) = mcp.end().await;
    assert_eq!((code, notes.as_str()), (Some(0), ""));
    guest.stop().await;
    guest.finish().await;
}

async fn a_pass_needs_no_account(database: TestDatabase) {
    let mut guest = Guest::start(database, "acp").await;
    let api = guest.with_pass();
    let list = message(1, "tools/list", &json!({}));
    assert_eq!(answer(to_mcp(&api, &list)).await.status, 200);
    let token = post(guest.api(), "/api/tokens", &json!({"name": "ada"})).await.is(201);
    guest.server.use_token(token["token"].as_str().unwrap());
    answer(to_mcp(&Api::new(guest.api().base()).unwrap(), &list)).await.is_refused(401, "unauthorized");
    assert_eq!(names(&answer(to_mcp(&api, &list)).await, 1), ["current_time", "ask_people"]);
    answer(api.request(Method::GET, "/api/rooms")).await.is_refused(401, "unauthorized");
    guest.stop().await;
    guest.finish().await;
}

async fn invariant_17_secrets_stay_also_where_the_server_listens_everywhere(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_ACP__AGENTS", &double("acp"));
    binary = binary.with("GREENROOM_LOG__LEVEL", "trace");
    let token = binary.beside(&["token", "create", "--user", "local"]).await.out.trim().to_owned();
    binary.launch.listen = "0.0.0.0:0".into();
    let (server, everywhere) = binary.serve().await;
    let here = Api::new(everywhere.base().replace("0.0.0.0", "127.0.0.1")).unwrap();
    let (_, run, _, entry) = given(&here.clone().with_token(&token)).await;
    assert_eq!(entry["url"], format!("{}/mcp", here.base()));
    let (secret, list) = (secret(&entry), message(1, "tools/list", &json!({})));
    let answer = answer(to_mcp(&here.clone().with_token(&secret), &list)).await;
    assert_eq!(names(&answer, 1), ["current_time", "ask_people"]);
    post(&here.with_token(token), &format!("/api/runs/{run}/cancel"), &json!({})).await;
    server.terminate(Duration::from_secs(30)).await.unwrap();
    let log = binary.log();
    assert!(log.contains("request"), "it does log: {log}");
    // The agent itself has told it to the room; nobody else may.
    let told: Vec<&str> = log.lines().filter(|line| line.contains(&secret)).collect();
    assert_eq!(told, [""; 0]);
}

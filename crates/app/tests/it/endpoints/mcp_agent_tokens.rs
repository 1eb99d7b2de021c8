//! Agent tokens at `/mcp`: they give access to the host tools only, and only while the process of the agent is alive.
//!
//! The agent is testkit's `replay`, which prints its MCP servers; the tests use the endpoint in its place.

use super::{
    binary::Binary,
    closed::assert_closed_to,
    mcp_requests::{ACCEPT, LEGACY, Stream, initialize, message, modern, reply},
    requests::{ApiResponse, RoomFollower, data, post, post_text, response_to, wait_for_end, within},
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
    client::{SeenEvent, TestClient},
    database::TestDatabase,
    programs,
    server::{TestServer, assert_no_process_with_env, processes_with_env},
};
use uuid::Uuid;

on_both_databases! {
    database: invariant_21_an_agent_token_allows_only_host_tools, invariant_17_secrets_stay_agent_token_ends_with_its_process,
              question_is_answered_over_http, cancelled_question_is_withdrawn, limits_of_an_agent_token,
              agent_with_stdio_servers_only, agent_token_needs_no_account,
              invariant_17_secrets_stay_when_listening_on_all_addresses;
}

/// A waiting run whose agent has printed its MCP servers.
struct AgentRun {
    server: TestServer,
    follower: RoomFollower,
    room: RoomId,
    run: RunId,
    /// The entry for Greenroom itself.
    entry: Value,
    mark: String,
}

impl AgentRun {
    async fn start(database: TestDatabase, speaks: &str) -> Self {
        let (agents, mark) = (double(speaks), Uuid::now_v7().to_string());
        let settings = [("acp.agents", agents.as_str()), ("acp.pass_env", "AGENT_MARK")];
        let server = TestServer::start_with_environment(database, &settings, &[("AGENT_MARK", &mark)]).await;
        let (room, run, follower, entry) = start_run_and_read_entry(server.api()).await;
        Self { server, follower, room, run, entry, mark }
    }

    fn api(&self) -> &TestClient {
        self.server.api()
    }

    fn variable(&self, name: &str) -> String {
        let all = self.entry["env"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["value"].as_str().unwrap().to_owned()
    }

    fn secret(&self) -> String {
        assert_eq!(self.entry["url"], format!("{}/mcp", self.api().base_url()));
        secret(&self.entry)
    }

    /// A client with the agent token.
    fn with_agent_token(&self) -> TestClient {
        self.api().clone().with_token(self.secret())
    }

    /// Waits for the next approval request in the room.
    async fn asked(&mut self) -> Value {
        self.follower.seen.clear();
        data(&self.follower.until_kind(EventType::ApprovalRequested, self.run).await)
    }

    /// Waits until the approval request is withdrawn.
    async fn wait_for_withdrawal(&mut self, asked: &Value) {
        let is_it = |event: &SeenEvent| {
            event.kind == EventType::ApprovalResolved && data(event)["approval_id"] == asked["approval_id"]
        };
        let resolved = data(&self.follower.until("a withdrawal", is_it).await);
        assert_ne!(resolved["decision"], "allow", "{resolved}");
    }

    async fn decide(&self, asked: &Value, body: Value) {
        let path = format!("/api/runs/{}/approvals/{}", self.run, asked["approval_id"].as_str().unwrap());
        assert_eq!(post(self.api(), &path, &body).await.status, 204);
    }

    /// Ends the turn; the process stays.
    async fn stop(&self) {
        post(self.api(), &format!("/api/runs/{}/cancel", self.run), &json!({})).await;
        assert_eq!(wait_for_end(self.api(), self.run).await.status, RunStatus::Cancelled);
    }

    async fn finish(self) {
        self.server.finish().await;
        assert_no_process_with_env(&self.mark).await;
    }
}

/// The agent configuration for the fake CLI.
fn double(speaks: &str) -> String {
    format!("double = '{}' --fault blab --speaks {speaks}", programs::replay().display())
}

/// Starts a run and returns it with the agent's MCP entry for Greenroom.
async fn start_run_and_read_entry(api: &TestClient) -> (RoomId, RunId, RoomFollower, Value) {
    let agent = post(api, "/api/agents", &json!({"name": "guest", "provider": "double"})).await.expect_status(201);
    let room = api.create_room("A room", &[agent["id"].as_str().unwrap().parse().unwrap()]).await.unwrap().id;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "which servers do you have?").await;
    let told = data(&follower.first_delta(run).await);
    let entries: Vec<Value> = serde_json::from_str(told["delta"].as_str().unwrap()).unwrap();
    let entry = entries.into_iter().find(|entry| entry["name"] == "greenroom").unwrap();
    (room, run, follower, entry)
}

/// Returns the token from the header of the entry.
fn secret(entry: &Value) -> String {
    let header = &entry["headers"][0];
    assert_eq!((&entry["type"], &header["name"]), (&json!("http"), &json!("Authorization")));
    header["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap().to_owned()
}

fn to_mcp(api: &TestClient, message: &Value) -> RequestBuilder {
    let request = api.request(Method::POST, "/mcp").header("accept", ACCEPT).header("mcp-protocol-version", LEGACY);
    request.json(message)
}

fn calling(id: u64, tool: &str, arguments: &Value) -> Value {
    message(id, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

fn question() -> Value {
    json!({"question": "Which?"})
}

fn names(answer: &ApiResponse, id: u64) -> Vec<String> {
    let tools = reply(answer, id)["result"]["tools"].take();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn invariant_21_an_agent_token_allows_only_host_tools(database: TestDatabase) {
    let agent_run = AgentRun::start(database, "acp").await;
    let api = agent_run.with_agent_token();
    let greeted = response_to(to_mcp(&api, &initialize())).await;
    assert!(!greeted.headers.contains_key("mcp-session-id"), "there must be no session");
    let told = reply(&greeted, 1)["result"].take();
    assert_eq!((&told["protocolVersion"], &told["capabilities"]), (&json!(LEGACY), &json!({"tools": {}})));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(response_to(to_mcp(&api, &initialized)).await.status, 202);
    assert_eq!(reply(&response_to(to_mcp(&api, &message(2, "ping", &json!({})))).await, 2)["result"], json!({}));
    let host_tools = ["current_time", "ask_people", "memorize", "recall", "delegate"];
    assert_eq!(names(&response_to(to_mcp(&api, &message(3, "tools/list", &json!({})))).await, 3), host_tools);
    assert_eq!(names(&response_to(modern(&api, 4, "tools/list", json!({}))).await, 4), host_tools);
    let time = reply(&response_to(to_mcp(&api, &calling(5, "current_time", &json!({})))).await, 5);
    assert_eq!(time["result"]["isError"], false, "{time}");
    assert!(time["result"]["content"][0]["text"].as_str().unwrap().starts_with("20"), "{time}");

    // None of the server's own tools is available.
    for tool in ["list_agents", "run_agent", "post_message", "read_room", "answer_approval", "ask_user"] {
        let told =
            reply(&response_to(to_mcp(&api, &calling(6, tool, &json!({"agent": "guest", "message": "Hi"})))).await, 6);
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
        let params = json!({"uri": format!("greenroom://rooms/{}", agent_run.room), "name": "x"});
        let told = reply(&response_to(to_mcp(&api, &message(7, method, &params))).await, 7);
        assert_eq!(told["error"]["code"], -32601, "{method}: {told}");
        let told = response_to(modern(&api, 8, method, params)).await;
        assert_eq!((told.status, &reply(&told, 8)["error"]["code"]), (404, &json!(-32601)), "{method}");
    }
    for method in [Method::GET, Method::DELETE] {
        let request = api.request(method, "/mcp").header("accept", ACCEPT).header("mcp-session-id", "x");
        assert_eq!(response_to(request).await.status, 405);
    }
    assert_closed_to(&agent_run.server, &api).await;
    // A program that the agent starts has neither the key nor, without its parent's help, the agent token.
    let key = agent_run.server.running().local_key();
    let processes = processes_with_env(&agent_run.mark);
    assert!(!processes.is_empty(), "the agent runs");
    for process in processes {
        let seen = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&seen).contains(key), "the key is in the environment of process {process}");
    }
    assert_closed_to(&agent_run.server, &api.anonymous()).await;
    response_to(to_mcp(&api.anonymous(), &message(1, "tools/list", &json!({}))))
        .await
        .expect_problem(401, "unauthorized");
    agent_run.stop().await;
    agent_run.finish().await;
}

async fn invariant_17_secrets_stay_agent_token_ends_with_its_process(database: TestDatabase) {
    let agent_run = AgentRun::start(database, "acp").await;
    let (list, secret) = (message(1, "tools/list", &json!({})), agent_run.secret());
    let (start, last) = secret.split_at(secret.len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    for wrong in ["grp_".to_owned(), format!("{start}{other}"), start.to_owned(), format!("{secret}0")] {
        let api = agent_run.api().clone().with_token(wrong);
        response_to(to_mcp(&api, &list)).await.expect_problem(401, "unauthorized");
    }
    let api = agent_run.with_agent_token();
    // A remote client through a proxy on this machine.
    let request = to_mcp(&api, &list).header("x-forwarded-for", "203.0.113.7");
    response_to(request).await.expect_problem(401, "unauthorized");
    response_to(to_mcp(&api, &list).header("origin", "https://evil.example"))
        .await
        .expect_problem(403, "forbidden_origin");
    assert_eq!(response_to(to_mcp(&api, &list)).await.status, 200);

    // The process and its token stay valid until the next turn, but there is no run to ask in.
    agent_run.stop().await;
    let told = reply(&response_to(to_mcp(&api, &calling(2, "ask_people", &question()))).await, 2);
    assert_eq!(told["result"]["isError"], true, "{told}");
    let run = post_text(agent_run.api(), agent_run.room, "now fall over").await;
    assert_eq!(wait_for_end(agent_run.api(), run).await.status, RunStatus::Failed);
    response_to(to_mcp(&api, &list)).await.expect_problem(401, "unauthorized");
    agent_run.finish().await;
}

async fn question_is_answered_over_http(database: TestDatabase) {
    let mut agent_run = AgentRun::start(database, "acp").await;
    let api = agent_run.with_agent_token();
    // The answer takes long, so the response headers and keep-alives come first.
    let asking = to_mcp(&api, &calling(1, "ask_people", &question()));
    let (mut stream, asked) = tokio::join!(Stream::open(asking), agent_run.asked());
    assert_eq!((&asked["name"], &asked["is_question"]), (&json!("ask_user"), &json!(true)));
    assert_eq!(asked["input"], question());
    agent_run.decide(&asked, json!({"decision": "allow", "input": {"answer": "that"}})).await;
    stream.until("\"that\"").await;
    stream.end().await;
    agent_run.stop().await;
    agent_run.finish().await;
}

async fn cancelled_question_is_withdrawn(database: TestDatabase) {
    let mut agent_run = AgentRun::start(database, "acp").await;
    let api = agent_run.with_agent_token();
    // By closing the connection.
    let asking = to_mcp(&api, &calling(1, "ask_people", &question()));
    let (stream, asked) = tokio::join!(Stream::open(asking), agent_run.asked());
    drop(stream);
    agent_run.wait_for_withdrawal(&asked).await;
    // By a cancellation.
    let asking = to_mcp(&api, &calling(2, "ask_people", &question()));
    let (stream, asked) = tokio::join!(Stream::open(asking), agent_run.asked());
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    assert_eq!(response_to(to_mcp(&api, &cancelled)).await.status, 202);
    agent_run.wait_for_withdrawal(&asked).await;
    assert!(stream.end().await.contains("cancelled"));
    agent_run.stop().await;
    agent_run.finish().await;
}

async fn limits_of_an_agent_token(database: TestDatabase) {
    let agent_run = AgentRun::start(database, "acp").await;
    let api = agent_run.with_agent_token();
    let long = json!({"question": "x".repeat(300 * 1024)});
    assert_eq!(response_to(to_mcp(&api, &calling(1, "ask_people", &long))).await.status, 413);
    for (body, code) in [("{", -32700), ("[]", -32600), ("7", -32600), (r#"{"jsonrpc":"2.0","id":1}"#, -32600)] {
        let request = api.request(Method::POST, "/mcp").header("accept", ACCEPT);
        let refused = response_to(request.header("content-type", "application/json").body(body)).await;
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{body}: {refused:?}");
    }
    let mut asking = tokio::task::JoinSet::new();
    for id in 0..60 {
        let request = to_mcp(&api, &calling(id, "ask_people", &question()));
        asking.spawn(async move { (id, response_to(request).await) });
    }
    let mut refused = 0;
    // Sixteen questions wait; the others are rejected at once, as a tool error or with status 429.
    for _ in 16..60 {
        let (id, answer) = within("an answer", asking.join_next()).await.unwrap().unwrap();
        match answer.status {
            429 => {}
            _ => assert_eq!(reply(&answer, id)["result"]["isError"], true, "{answer:?}"),
        }
        refused += 1;
    }
    assert_eq!((refused, asking.len()), (44, 16));
    agent_run.stop().await;
    while let Some(answered) = within("an end", asking.join_next()).await {
        let (id, answer) = answered.unwrap();
        assert_eq!(reply(&answer, id)["result"]["isError"], true, "{answer:?}");
    }
    agent_run.finish().await;
}

async fn agent_with_stdio_servers_only(database: TestDatabase) {
    let mut agent_run = AgentRun::start(database, "acp-stdio").await;
    assert_eq!(agent_run.entry["args"], json!(["mcp"]), "the arguments must contain no secret");
    assert!(agent_run.entry["command"].as_str().unwrap().ends_with("greenroom"));
    assert_eq!(agent_run.variable("GREENROOM_SERVER"), agent_run.api().base_url());
    let mut mcp =
        Mcp::start_with(&agent_run.variable("GREENROOM_SERVER"), Some(&agent_run.variable("GREENROOM_TOKEN")));
    mcp.initialize().await;
    mcp.call(1, "current_time", json!({})).await;
    assert_eq!(mcp.read_answer(1).await["result"]["isError"], false);
    mcp.call(2, "ask_people", question()).await;
    let asked = agent_run.asked().await;
    agent_run.decide(&asked, json!({"decision": "allow", "input": {"answer": "that"}})).await;
    assert_eq!(mcp.read_answer(2).await["result"]["content"][0]["text"], "that");
    // A cancelled question is withdrawn from the room.
    mcp.call(3, "ask_people", question()).await;
    let asked = agent_run.asked().await;
    mcp.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})).await;
    agent_run.wait_for_withdrawal(&asked).await;
    let (code, _, notes) = mcp.end().await;
    assert_eq!((code, notes.as_str()), (Some(0), ""));
    agent_run.stop().await;
    agent_run.finish().await;
}

async fn agent_token_needs_no_account(database: TestDatabase) {
    let agent_run = AgentRun::start(database, "acp").await;
    let api = agent_run.with_agent_token();
    let list = message(1, "tools/list", &json!({}));
    assert_eq!(response_to(to_mcp(&api, &list)).await.status, 200);
    response_to(to_mcp(&agent_run.api().anonymous(), &list)).await.expect_problem(401, "unauthorized");
    assert_eq!(
        names(&response_to(to_mcp(&api, &list)).await, 1),
        ["current_time", "ask_people", "memorize", "recall", "delegate"]
    );
    response_to(api.request(Method::GET, "/api/rooms")).await.expect_problem(401, "unauthorized");
    agent_run.stop().await;
    agent_run.finish().await;
}

/// An agent's program may not know the authority of the certificate, so it gets an address without TLS, on this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_host_tools_have_an_address_of_their_own_beside_tls() {
    let database = TestDatabase::sqlite();
    let mut binary = Binary::on(&database).with("GREENROOM_ACP__AGENTS", &double("acp"));
    binary.launch.arguments = vec!["--tls-self-signed".into()];
    let (server, _) = binary.serve().await;
    let pem = std::fs::read(binary.launch.data_dir.join("tls/self-signed.crt")).unwrap();
    let api = TestClient::trusting(server.base_url(), &pem).unwrap().with_token(server.local_key());
    let (_, run, _, entry) = start_run_and_read_entry(&api).await;
    let own = entry["url"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
    assert!(own.starts_with("http://127.0.0.1:") && own != server.base_url().replace("https", "http"), "{own}");
    let (agent, list) =
        (TestClient::new(&own).unwrap().with_token(secret(&entry)), message(1, "tools/list", &json!({})));
    assert_eq!(
        names(&response_to(to_mcp(&agent, &list)).await, 1),
        ["current_time", "ask_people", "memorize", "recall", "delegate"]
    );
    let operator = agent.clone().with_token(server.local_key());
    response_to(to_mcp(&operator, &list)).await.expect_problem(404, "not_found");
    for path in ["/api/rooms", "/healthz", "/", "/sse"] {
        response_to(operator.request(Method::GET, path)).await.expect_problem(404, "not_found");
    }
    response_to(to_mcp(&agent.anonymous(), &list)).await.expect_problem(401, "unauthorized");
    post(&api, &format!("/api/runs/{run}/cancel"), &json!({})).await;
    server.terminate(Duration::from_secs(30)).await.unwrap();
}

async fn invariant_17_secrets_stay_when_listening_on_all_addresses(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_ACP__AGENTS", &double("acp"));
    binary = binary.with("GREENROOM_LOG__LEVEL", "trace");
    let token =
        binary.run_command(&["token", "create", "--user", "local", "--scopes", "all"]).await.stdout.trim().to_owned();
    binary.launch.listen = "0.0.0.0:0".into();
    binary.launch.arguments = vec!["--behind-tls-proxy".into()];
    let (server, everywhere) = binary.serve().await;
    let here = TestClient::new(everywhere.base_url().replace("0.0.0.0", "127.0.0.1")).unwrap();
    let (_, run, _, entry) = start_run_and_read_entry(&here.clone().with_token(&token)).await;
    assert_eq!(entry["url"], format!("{}/mcp", here.base_url()));
    let (secret, list) = (secret(&entry), message(1, "tools/list", &json!({})));
    let answer = response_to(to_mcp(&here.clone().with_token(&secret), &list)).await;
    assert_eq!(names(&answer, 1), ["current_time", "ask_people", "memorize", "recall", "delegate"]);
    post(&here.with_token(token), &format!("/api/runs/{run}/cancel"), &json!({})).await;
    server.terminate(Duration::from_secs(30)).await.unwrap();
    let log = binary.log();
    assert!(log.contains("request"), "it does log: {log}");
    // Only the agent itself printed the token to the room.
    let told: Vec<&str> = log.lines().filter(|line| line.contains(&secret)).collect();
    assert_eq!(told, [""; 0]);
}

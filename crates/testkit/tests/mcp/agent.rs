//! An agent on a bare model uses tools of real MCP servers, tested through the public endpoints.

use crate::fixture::SERIAL;
use domain::{
    ids::{AgentId, RoomId},
    message::Part,
    position::Position,
    run::RunStatus,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{
    client::{SseReader, TestClient, TestPost},
    database::TestDatabase,
    models::ModelDouble,
    programs::McpPrograms,
    server::TestServer,
};

async fn post_json(api: &TestClient, path: &str, body: &Value) -> Value {
    api.send(api.request(Method::POST, path).json(body)).await.unwrap()
}

/// Posts a message and returns the parts of the complete answer.
pub async fn answer_parts(api: &TestClient, room: RoomId, text: &str) -> Vec<Part> {
    let run = api.post_message(room, &TestPost::new(text)).await.unwrap().runs[0].id;
    let mut stream = SseReader::open(api, &format!("/api/runs/{run}/stream"), &Position::START).await.unwrap();
    while stream.next().await.unwrap().is_some() {}
    let ended = api.run(run).await.unwrap();
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    let history = api.messages(room, None, 100).await.unwrap();
    history.messages.into_iter().find(|message| message.run_id == Some(run)).unwrap().parts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uses_tools_of_real_servers() {
    let _serial = SERIAL.lock().await;
    let servers = McpPrograms::from_env();
    let models = ModelDouble::start().await.unwrap();
    let settings = [("anthropic.base_url", models.url())];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let environment = [("ANTHROPIC_API_KEY", "test-key"), ("PATH", "/usr/local/bin:/usr/bin:/bin")];
    let server = TestServer::start_with_environment(TestDatabase::sqlite(), &settings, &environment).await;
    let api = server.api();
    for added in [
        json!({"name": "everything", "command": servers.node, "args": [servers.everything, "stdio"]}),
        json!({"name": "time", "command": servers.python, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}),
    ] {
        post_json(api, "/api/mcp-servers", &added).await;
    }
    let agent = json!({
        "name": "Ann", "provider": "anthropic", "model": "double",
        "mcp_servers": ["everything", "time"], "tools": {"allow": ["mcp__*"]},
    });
    let agent: AgentId = post_json(api, "/api/agents", &agent).await["id"].as_str().unwrap().parse().unwrap();
    let room = api.create_room("A room", &[agent]).await.unwrap().id;
    for (call, returned) in [
        ("mcp__everything__get-sum {\"a\":19,\"b\":23}", "42"),
        ("mcp__time__get_current_time {\"timezone\":\"UTC\"}", "UTC"),
    ] {
        let parts = answer_parts(api, room, &format!("!call {call}")).await;
        let result = |part: &Part| match part {
            Part::Tool(call) => call.result.as_ref().map(|result| (result.content.to_string(), result.is_error)),
            _ => None,
        };
        let (content, is_error) = parts.iter().find_map(result).expect("the call has a result");
        assert!(content.contains(returned) && !is_error, "{call}: {content}");
    }
    let effective = api.request(Method::GET, &format!("/api/agents/{agent}/effective"));
    let effective: Value = api.send(effective).await.unwrap();
    let tools = |server: &Value| server["tools"].as_array().map_or(0, Vec::len);
    let counts: Vec<usize> = effective["servers"].as_array().unwrap().iter().map(tools).collect();
    assert!(counts[0] >= 12 && counts[1] == 2, "{counts:?}");
    server.finish().await;
    models.stop().await;
}

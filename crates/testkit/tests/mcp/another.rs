//! An agent of one Greenroom uses another Greenroom over MCP, with both ends of the protocol ours.

use crate::{agent::answer_parts, fixture::SERIAL};
use domain::{ids::AgentId, message::Part};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{client::TestClient, database::TestDatabase, models::ModelDouble, server::TestServer};

async fn post_json(api: &TestClient, path: &str, body: &Value) -> Value {
    api.send(api.request(Method::POST, path).json(body)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_uses_another_greenroom_over_mcp() {
    let _serial = SERIAL.lock().await;
    let mut other = TestServer::start(TestDatabase::sqlite()).await;
    let secret =
        post_json(other.api(), "/api/tokens", &json!({"name": "for the other", "scopes": ["read", "run"]})).await;
    let secret = secret["token"].as_str().unwrap().to_owned();
    other.use_token(&secret);
    let models = ModelDouble::start().await.unwrap();
    let url = models.url();
    let environment = [("ANTHROPIC_API_KEY", "test-key"), ("PATH", "/usr/local/bin:/usr/bin:/bin")];
    let server =
        TestServer::start_with_environment(TestDatabase::sqlite(), &[("anthropic.base_url", &url)], &environment).await;
    let api = server.api();
    let headers = json!({"Authorization": format!("Bearer {secret}")});
    for (name, kind, path) in [("stage", "http", "mcp"), ("old", "sse", "sse")] {
        let url = format!("{}/{path}", other.api().base_url());
        post_json(api, "/api/mcp-servers", &json!({"name": name, "type": kind, "url": url, "headers": headers})).await;
    }
    let agent = json!({"name": "Ann", "provider": "anthropic", "model": "double", "mcp_servers": ["stage", "old"],
                       "tools": {"allow": ["mcp__*"]}});
    let agent: AgentId = post_json(api, "/api/agents", &agent).await["id"].as_str().unwrap().parse().unwrap();
    let room = api.create_room("A room", &[agent]).await.unwrap().id;
    for server in ["stage", "old"] {
        let call = format!("!call mcp__{server}__run_agent {{\"agent\":\"scripted\",\"message\":\"!count 7\"}}");
        let parts = answer_parts(api, room, &call).await;
        let result = parts.iter().find_map(|part| match part {
            Part::Tool(call) => call.result.as_ref(),
            _ => None,
        });
        let result = result.expect("a result");
        let content = result.content.to_string();
        assert!(content.contains("1 2 3 4 5 6 7") && content.contains("completed") && !result.is_error, "{content}");
    }
    // The messages are in separate rooms on the other server.
    let rooms: Value = other.api().send(other.api().request(Method::GET, "/api/rooms")).await.unwrap();
    assert_eq!(rooms["rooms"].as_array().unwrap().len(), 2, "{rooms}");
    server.finish().await;
    other.finish().await;
    models.stop().await;
}

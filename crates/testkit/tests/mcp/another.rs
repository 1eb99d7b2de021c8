//! An agent of one Greenroom drives another one: both ends of the protocol are ours, and everything between is real.

use crate::{agent::answered, scene::TURN};
use domain::{ids::AgentId, message::Part};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{client::Api, database::TestDatabase, models::Models, server::TestServer};

async fn sent(api: &Api, path: &str, body: &Value) -> Value {
    api.send(api.request(Method::POST, path).json(body)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn greenroom_drives_another() {
    let _turn = TURN.lock().await;
    let mut stage = TestServer::start(TestDatabase::sqlite()).await;
    let secret = sent(stage.api(), "/api/tokens", &json!({"name": "for the other"})).await;
    let secret = secret["token"].as_str().unwrap().to_owned();
    stage.use_token(&secret);
    let models = Models::start().await.unwrap();
    let url = models.url();
    let environment = [("ANTHROPIC_API_KEY", "test-key"), ("PATH", "/usr/local/bin:/usr/bin:/bin")];
    let server = TestServer::start_in(TestDatabase::sqlite(), &[("anthropic.base_url", &url)], &environment).await;
    let api = server.api();
    let headers = json!({"Authorization": format!("Bearer {secret}")});
    for (name, kind, path) in [("stage", "http", "mcp"), ("old", "sse", "sse")] {
        let url = format!("{}/{path}", stage.api().base());
        sent(api, "/api/mcp-servers", &json!({"name": name, "type": kind, "url": url, "headers": headers})).await;
    }
    let agent = json!({"name": "Ann", "provider": "anthropic", "model": "double", "mcp_servers": ["stage", "old"],
                       "tools": {"allow": ["mcp__*"]}});
    let agent: AgentId = sent(api, "/api/agents", &agent).await["id"].as_str().unwrap().parse().unwrap();
    let room = api.create_room("A room", &[agent]).await.unwrap().id;
    for server in ["stage", "old"] {
        let call = format!("!call mcp__{server}__run_agent {{\"agent\":\"scripted\",\"message\":\"!count 7\"}}");
        let parts = answered(api, room, &call).await;
        let result = parts.iter().find_map(|part| match part {
            Part::Tool(call) => call.result.as_ref(),
            _ => None,
        });
        let result = result.expect("a result");
        let content = result.content.to_string();
        assert!(content.contains("1 2 3 4 5 6 7") && content.contains("completed") && !result.is_error, "{content}");
    }
    // It was said over there, in rooms of its own.
    let rooms: Value = stage.api().send(stage.api().request(Method::GET, "/api/rooms")).await.unwrap();
    assert_eq!(rooms["rooms"].as_array().unwrap().len(), 2, "{rooms}");
    server.finish().await;
    stage.finish().await;
    models.stop().await;
}

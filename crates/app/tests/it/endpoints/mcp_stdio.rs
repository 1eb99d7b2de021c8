//! `greenroom mcp` in front of the real server.

use super::{
    binary::Binary,
    requests::{counted, post_text, room, wait_for_end},
};
use crate::mcp::{MODERN, Mcp};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};

on_both_databases! {
    server: stdio_client_in_both_eras;
    database: server_restart_is_invisible_to_the_client;
}

const STOP: Duration = Duration::from_secs(30);

async fn stdio_client_in_both_eras(api: &TestClient) {
    let mut mcp = Mcp::start_with(api.base_url(), api.token());
    mcp.initialize().await;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "7"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    for (id, meta) in [(1, json!({"progressToken": 1})), (3, meta)] {
        mcp.ask(id, "tools/list", json!({"_meta": meta})).await;
        let tools = mcp.read_answer(id).await;
        let names: Vec<&Value> =
            tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!("run_agent")), "{names:?}");
        let arguments = json!({"agent": "scripted", "message": "!count 20 20"});
        let mut meta = meta.clone();
        meta["progressToken"] = json!(id);
        mcp.ask(id + 1, "tools/call", json!({"name": "run_agent", "arguments": arguments, "_meta": meta})).await;
        let mut progress = 0;
        let response = loop {
            let told = mcp.read().await;
            match told["method"].as_str() {
                Some("notifications/progress") => progress += 1,
                Some(_) => {}
                None => break told,
            }
        };
        assert_eq!(
            (&response["id"], &response["result"]["structuredContent"]["text"]),
            (&json!(id + 1), &json!(counted(20)))
        );
        assert!(progress > 1, "{progress}");
    }
    let (code, _, notes) = mcp.end().await;
    assert_eq!((code, notes.as_str()), (Some(0), ""));
}

async fn server_restart_is_invisible_to_the_client(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let uri = format!("greenroom://rooms/{room}");
    let mut mcp = Mcp::start_with(api.base_url(), api.token());
    mcp.initialize().await;
    mcp.ask(1, "resources/subscribe", json!({"uri": uri})).await;
    mcp.read_answer(1).await;
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
    let first = post_text(&api, room, "!count 2").await;
    until(&mut mcp, &updated).await;
    wait_for_end(&api, first).await;

    server.terminate(STOP).await.unwrap();
    mcp.ask(2, "ping", json!({})).await;
    let refused = response(&mut mcp, 2).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("greenroom serve")), "{refused}");
    let (server, api) = binary.serve().await;
    // The room may have changed during the restart, so the client is notified; then it follows again.
    until(&mut mcp, &updated).await;
    let second = post_text(&api, room, "!count 2").await;
    until(&mut mcp, &updated).await;
    wait_for_end(&api, second).await;
    mcp.ask(3, "resources/read", json!({"uri": uri})).await;
    let read = response(&mut mcp, 3).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["messages"].as_array().unwrap().len(), 4);
    mcp.end().await;
    server.terminate(STOP).await.unwrap();
}

/// Reads until the response with this id, skipping other messages.
async fn response(mcp: &mut Mcp, id: u64) -> Value {
    loop {
        let told = mcp.read().await;
        if told["id"] == id {
            return told;
        }
    }
}

/// Reads until this message, skipping others.
async fn until(mcp: &mut Mcp, wanted: &Value) {
    while mcp.read().await != *wanted {}
}

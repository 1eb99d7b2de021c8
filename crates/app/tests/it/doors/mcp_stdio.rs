//! `greenroom mcp` in front of the real server.

use super::{
    binary::Binary,
    scene::{counted, ended, room, say},
};
use crate::mcp::{MODERN, Mcp};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::Api, database::TestDatabase};

doors! {
    server: a_client_that_starts_processes_in_both_eras;
    database: a_restart_of_the_server_goes_unnoticed;
}

const STOP: Duration = Duration::from_secs(30);

async fn a_client_that_starts_processes_in_both_eras(api: &Api) {
    let mut mcp = Mcp::start(api.base());
    mcp.greet().await;
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
        let answer = loop {
            let told = mcp.read().await;
            match told["method"].as_str() {
                Some("notifications/progress") => progress += 1,
                Some(_) => {}
                None => break told,
            }
        };
        assert_eq!(
            (&answer["id"], &answer["result"]["structuredContent"]["text"]),
            (&json!(id + 1), &json!(counted(20)))
        );
        assert!(progress > 1, "{progress}");
    }
    let (code, _, notes) = mcp.end().await;
    assert_eq!((code, notes.as_str()), (Some(0), ""));
}

async fn a_restart_of_the_server_goes_unnoticed(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let uri = format!("greenroom://rooms/{room}");
    let mut mcp = Mcp::start(api.base());
    mcp.greet().await;
    mcp.ask(1, "resources/subscribe", json!({"uri": uri})).await;
    mcp.read_answer(1).await;
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
    let first = say(&api, room, "!count 2").await;
    until(&mut mcp, &updated).await;
    ended(&api, first).await;

    server.terminate(STOP).await.unwrap();
    mcp.ask(2, "ping", json!({})).await;
    let refused = answer(&mut mcp, 2).await;
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("greenroom serve")), "{refused}");
    let (server, api) = binary.serve().await;
    // It may have changed unseen, and from here on it is followed again.
    until(&mut mcp, &updated).await;
    let second = say(&api, room, "!count 2").await;
    until(&mut mcp, &updated).await;
    ended(&api, second).await;
    mcp.ask(3, "resources/read", json!({"uri": uri})).await;
    let read = answer(&mut mcp, 3).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["messages"].as_array().unwrap().len(), 4);
    mcp.end().await;
    server.terminate(STOP).await.unwrap();
}

/// What comes before it is passed over.
async fn answer(mcp: &mut Mcp, id: u64) -> Value {
    loop {
        let told = mcp.read().await;
        if told["id"] == id {
            return told;
        }
    }
}

/// Reads until this is said. Other things may be told meanwhile, and this more than once.
async fn until(mcp: &mut Mcp, wanted: &Value) {
    while mcp.read().await != *wanted {}
}

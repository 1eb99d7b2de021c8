//! An agent that holds a person's token and starts runs through `/mcp`: they are children of its run, if the client says whose turn
//! it is, which Greenroom's own MCP client does.

use super::{
    mcp_requests::{Session, message, modern, reply},
    requests::{agent, get, message_of, post, post_text, response_to, room_of, wait_for_end, within},
};
use crate::direct::DirectFixture;
use domain::{
    ids::{AgentId, RoomId, RunId},
    message::Author,
    run::{Run, RunStatus},
    run_tree::MAX_TREE_DEPTH,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{client::TestClient, database::TestDatabase};

on_both_databases! {
    server: a_run_that_an_agent_starts_through_mcp_is_its_child, a_statement_that_is_not_true_changes_nothing;
    database: an_agent_with_a_persons_token_stops_at_the_bound;
}

const HEADER: &str = "greenroom-calling-agent";

/// Calls `run_agent` in the turn of this agent; does not wait for the answer.
async fn run_agent(session: &Session, caller: &str, agent: AgentId, room: Option<RoomId>, text: &str) -> Value {
    let mut arguments = json!({"agent": agent, "message": text, "wait": false});
    if let Some(room) = room {
        arguments["room"] = json!(room);
    }
    let call = message(7, "tools/call", &json!({"name": "run_agent", "arguments": arguments}));
    let request = session.request(Method::POST).header(HEADER, caller).json(&call);
    reply(&response_to(request).await, 7)["result"].clone()
}

fn run_id(result: &Value) -> RunId {
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["run_id"].as_str().unwrap().parse().unwrap()
}

async fn until_running(api: &TestClient, run: RunId) {
    within("the run", async {
        while api.run(run).await.unwrap().status != RunStatus::Running {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn a_run_that_an_agent_starts_through_mcp_is_its_child(api: &TestClient) {
    let (ann, ben) = (agent(api, "Ann", json!({})).await, agent(api, "Ben", json!({})).await);
    let (room, other) = (room_of(api, &[ann]).await, room_of(api, &[ben]).await);
    let session = Session::begin(api).await;
    let caller = format!("{room}/{ann}");
    let parent = post_text(api, room, "!hang").await;
    until_running(api, parent).await;
    let child = run_id(&run_agent(&session, &caller, ben, None, "!hang").await);
    let in_a_room = run_id(&run_agent(&session, &caller, ben, Some(other), "!hang").await);
    for run in [child, in_a_room] {
        until_running(api, run).await;
        let run = api.run(run).await.unwrap();
        assert_eq!((run.parent_id, run.root_id, run.depth), (Some(parent), Some(parent), 1));
        let asked = api.messages(run.room_id, None, 10).await.unwrap().messages.remove(0);
        assert!(matches!(asked.author, Author::Agent { id, .. } if id == ann), "{asked:?}");
    }
    let child_room = api.run(child).await.unwrap().room_id;
    assert_eq!(api.room(child_room).await.unwrap().parent_run_id, Some(parent));
    assert_eq!(api.room(other).await.unwrap().parent_run_id, None);
    // It would wait for a run that waits for it.
    let refused = run_agent(&session, &caller, ann, Some(room), "hello").await;
    assert!(refused["isError"] == true && refused.to_string().contains("start it in a new room"), "{refused}");
    let stopped = post(api, &format!("/api/runs/{parent}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!(stopped["stopped_below"], 2, "{stopped}");
    for run in [child, in_a_room] {
        assert_eq!(api.run(run).await.unwrap().status, RunStatus::Cancelled);
    }
}

/// Without a turn of this agent, and with ids that nobody knows, the person has started the run.
async fn a_statement_that_is_not_true_changes_nothing(api: &TestClient) {
    let (ann, ben) = (agent(api, "Ann", json!({})).await, agent(api, "Ben", json!({})).await);
    let room = room_of(api, &[ann]).await;
    let session = Session::begin(api).await;
    let unknown = format!("{}/{}", RoomId::generate(), AgentId::generate());
    for caller in [format!("{room}/{ann}"), unknown, "Ann".to_owned(), String::new()] {
        let run = run_id(&run_agent(&session, &caller, ben, None, "!count 1").await);
        let run = wait_for_end(api, run).await;
        assert_eq!((run.status, run.parent_id), (RunStatus::Completed, None), "{caller:?}");
    }
    // Another revision, without a session.
    let parent = post_text(api, room, "!hang").await;
    until_running(api, parent).await;
    let call = json!({"name": "run_agent", "arguments": {"agent": ben, "message": "!count 2"}});
    let request = modern(api, 9, "tools/call", call).header(HEADER, format!("{room}/{ann}"));
    let result = reply(&response_to(request).await, 9)["result"].clone();
    let child = api.run(run_id(&result)).await.unwrap();
    assert_eq!((child.parent_id, &result["structuredContent"]["text"]), (Some(parent), &json!("1 2")));
    post(api, &format!("/api/runs/{parent}/cancel"), &json!({})).await.expect_status(200);
}

/// An agent on a model API has this server as an MCP server, with a person's token, and calls itself.
async fn an_agent_with_a_persons_token_stops_at_the_bound(database: TestDatabase) {
    let fixture = DirectFixture::open_with(database, "test-key").await;
    let api = fixture.api();
    let token = api.token().unwrap();
    let server = json!({"name": "here", "type": "http", "url": format!("{}/mcp", api.base_url()),
                        "headers": {"Authorization": format!("Bearer {token}")}});
    post(api, "/api/mcp-servers", &server).await.expect_status(201);
    let settings = json!({"provider": "openai", "model": "double", "mcp_servers": ["here"], "tools": {"allow": ["*"]}});
    let ann = agent(api, "Ann", settings).await;
    let room = room_of(api, &[ann]).await;
    // Each message contains the next one.
    let mut text = "!count 3".to_owned();
    for _ in 0..=MAX_TREE_DEPTH {
        text = format!("!call run_agent {}", json!({"agent": "Ann", "message": text}));
    }
    let run = wait_for_end(api, post_text(api, room, &text).await).await;
    assert_eq!(run.status, RunStatus::Completed);
    let tree = get(api, &format!("/api/runs/{}/tree", run.id)).await.expect_status(200);
    let runs: Vec<Run> = serde_json::from_value(tree["runs"].clone()).unwrap();
    let depths: Vec<u32> = runs.iter().map(|run| run.depth).collect();
    assert_eq!(depths, (0..=MAX_TREE_DEPTH).collect::<Vec<_>>(), "{tree}");
    let last = message_of(api, runs.last().unwrap()).await.text;
    assert!(last.contains("levels"), "the deepest run is told why: {last}");
    fixture.close().await;
}

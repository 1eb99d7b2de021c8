//! `@name` in a message: the server finds out who is meant, for every client.

use super::{
    mcp_requests::Session,
    requests::{agent, data, journal, post_body, room_of, runs_of, wait_for_end},
};
use domain::event::EventType;
use serde_json::json;
use testkit::client::TestClient;

on_both_databases! {
    server: agents_that_a_text_names_answer;
}

async fn agents_that_a_text_names_answer(api: &TestClient) {
    let (ada, bob) = (agent(api, "Ada", json!({})).await, agent(api, "Bob the builder", json!({})).await);
    let room = room_of(api, &[ada, bob]).await;
    for (text, expected) in [
        ("!count 1", vec![ada, bob]),
        ("@ada !count 1", vec![ada]),
        ("Hello @Bob the Builder, !count 1", vec![bob]),
        ("@bob the builder and @ada", vec![ada, bob]),
        ("mail ada@ada.example or ask @nobody", vec![ada, bob]),
    ] {
        let posted = post_body(api, room, json!({"text": text})).await.expect_status(202);
        let agents: Vec<_> = posted["runs"].as_array().unwrap().iter().map(|run| run["agent_id"].clone()).collect();
        assert_eq!(json!(agents), json!(expected), "{text}");
        for run in runs_of(&posted) {
            wait_for_end(api, run).await;
        }
    }
    // An explicit list is not changed by the text.
    let posted = post_body(api, room, json!({"text": "@ada", "mentions": [bob]})).await.expect_status(202);
    assert_eq!((runs_of(&posted).len(), &posted["runs"][0]["agent_id"]), (1, &json!(bob)));
    wait_for_end(api, runs_of(&posted)[0]).await;
    let posts = journal(api, room).await.into_iter().filter(|event| event.kind == EventType::MessagePosted);
    let mentions: Vec<_> = posts.map(|event| data(&event)["mentions"].clone()).collect();
    assert_eq!((&mentions[1], &mentions[5]), (&json!([ada]), &json!([bob])), "who was meant is in the journal");
    // MCP clients post by the same command.
    let session = Session::begin(api).await;
    let posted = session.call("post_message", json!({"room": room, "text": "@ada !count 1"})).await;
    assert_eq!(posted["runs"].as_array().unwrap().len(), 1, "{posted}");
    wait_for_end(api, posted["runs"][0]["run_id"].as_str().unwrap().parse().unwrap()).await;
}

//! The sequences that other agent servers describe for conversations: a chat session, and a thread with its agent runs.

use super::{
    described_run::{assistant, described, without_status},
    requests::{agent, delete, get, post, response_to, within},
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::TestClient;

on_both_databases! {
    server: chat_session_from_creation_to_deletion, thread_start_stream_and_stop, stream_of_a_chat_message_resumes;
}

async fn chat_session_from_creation_to_deletion(api: &TestClient) {
    let ada = agent(api, "ada", json!({})).await;
    let new = json!({"title": "Questions", "skillIds": [], "agentId": ada, "permissionMode": "default"});
    let created = post(api, "/api/chat/sessions", &new).await.expect_status(201);
    let session = &created["session"];
    assert_eq!((&session["title"], &session["agentId"]), (&json!("Questions"), &json!(ada)));
    let path = format!("/api/chat/sessions/{}", session["id"].as_str().unwrap());
    assert_eq!(get(api, &path).await.expect_status(200), created);
    assert_eq!(get(api, "/api/chat/sessions").await.expect_status(200)["sessions"][0]["id"], session["id"]);
    let stream = post(api, &format!("{path}/messages"), &json!({"message": "!count 3", "attachments": []})).await;
    let said = without_status(described(&stream));
    assert_eq!((&said[0], &said[1]["type"]), (&assistant("1 2 3"), &json!("completion")));
    let messages = get(api, &format!("{path}/messages")).await.expect_status(200);
    let brief: Vec<_> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(brief, [("user", "!count 3"), ("assistant", "1 2 3")]);
    let run = messages["messages"][1]["streamId"].as_str().unwrap();
    let cancelled = post(api, &format!("{path}/messages/{run}/cancel"), &json!({})).await.expect_status(200);
    assert_eq!(cancelled, json!({"success": true}), "a run that has ended stays as it is");
    for bad in [json!({"skillIds": ["s"]}), json!({"agentId": uuid::Uuid::now_v7()})] {
        assert!(matches!(post(api, "/api/chat/sessions", &bad).await.status, 404 | 422), "{bad}");
    }
    assert_eq!(delete(api, &path).await.expect_status(200), json!({"success": true}));
    get(api, &path).await.expect_problem(404, "not_found");
}

async fn stream_of_a_chat_message_resumes(api: &TestClient) {
    let created = post(api, "/api/chat/sessions", &json!({})).await.expect_status(201);
    let path = format!("/api/chat/sessions/{}/messages", created["session"]["id"].as_str().unwrap());
    let stream = post(api, &path, &json!({"message": "!count 3"})).await;
    let ids: Vec<&str> = stream.text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let again =
        |id: &str| api.request(Method::POST, &path).header("last-event-id", id).json(&json!({"message": "!count 3"}));
    let rest = response_to(again(ids[0])).await;
    assert_eq!(without_status(described(&rest)), without_status(described(&stream)));
    assert_eq!(response_to(again(ids.last().unwrap())).await.status, 204);
    let messages = get(api, &path).await.expect_status(200);
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2, "nothing was sent again: {messages}");
}

async fn thread_start_stream_and_stop(api: &TestClient) {
    let thread = post(api, "/api/threads", &json!({"name": "Research"})).await.expect_status(201);
    let path = format!("/api/threads/{}", thread["thread_id"].as_str().unwrap());
    let start = format!("{path}/agent/start");
    post(api, &start, &json!({})).await.expect_problem(409, "conflict");
    let message = json!({"type": "user", "content": {"role": "user", "content": "!count 3"}, "is_llm_message": true});
    let added = post(api, &format!("{path}/messages"), &message).await.expect_status(201);
    assert_eq!((&added["type"], &added["content"]["content"]), (&json!("user"), &json!("!count 3")));
    let runs = async || get(api, "/api/runs").await.expect_status(200)["runs"].as_array().unwrap().clone();
    assert_eq!(runs().await, Vec::<Value>::new(), "adding a message starts nothing");
    let started = post(api, &start, &json!({"model_name": "any", "stream": true})).await.expect_status(200);
    assert_eq!(started["status"], "running");
    let run = format!("/api/agent-runs/{}", started["agent_run_id"].as_str().unwrap());
    let stream = get(api, &format!("{run}/stream?token=ignored")).await;
    let said = without_status(described(&stream));
    assert_eq!((&said[0], &said[1]["type"]), (&assistant("1 2 3"), &json!("completion")));
    let last = stream.text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let resumed = api.request(Method::GET, &format!("{run}/stream")).header("last-event-id", last);
    assert_eq!(response_to(resumed).await.status, 204);
    let messages = get(api, &format!("{path}/messages")).await.expect_status(200);
    let kinds: Vec<&Value> = messages["messages"].as_array().unwrap().iter().map(|message| &message["type"]).collect();
    assert_eq!(kinds, ["user", "assistant"]);

    post(api, &format!("{path}/messages"), &json!({"content": "!hang"})).await.expect_status(201);
    let keyed = || api.request(Method::POST, &start).header("idempotency-key", "k").json(&json!({}));
    let started = response_to(keyed()).await.expect_status(200);
    assert_eq!(response_to(keyed()).await.expect_status(200), started, "a retried start is one run");
    let run = format!("/api/agent-runs/{}", started["agent_run_id"].as_str().unwrap());
    let stream_path = format!("{run}/stream");
    let follow = get(api, &stream_path);
    let stop = async {
        let id = started["agent_run_id"].as_str().unwrap();
        within("the run to begin", async {
            while get(api, &format!("/api/runs/{id}")).await.expect_status(200)["status"] != "running" {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
        post(api, &format!("{run}/stop"), &json!({})).await.expect_status(200)
    };
    let (stream, stopped) = tokio::join!(follow, stop);
    assert_eq!(stopped, json!({"status": "stopped"}));
    assert_eq!(without_status(described(&stream)).last(), Some(&json!({"type": "cancelled"})));
    assert_eq!(runs().await.len(), 2);
}

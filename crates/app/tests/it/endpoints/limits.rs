//! Every run has limits: the server's, or lower ones of its agent.

use super::requests::{
    agent, data, get, journal, message_of, post, post_and_wait, post_text, response_to, room, room_of, room_with,
    wait_for_end,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

on_both_databases! {
    server: invariant_14_limits_stop_a_run, failure_is_reported_once_and_keeps_the_partial_text, limits_must_be_positive,
            l8_concurrent_changes_of_an_agent_all_take_effect;
    database: server_limits_are_the_defaults, h5_limits_of_the_server_are_ceilings;
}

async fn stopped_by(api: &TestClient, limits: Value, message: &str, limit: &str) {
    let agent = agent(api, limit, json!({"limits": limits})).await;
    let room = room_of(api, &[agent]).await;
    let run = post_and_wait(api, room, message).await;
    assert_eq!((run.status, run.error.unwrap().code), (RunStatus::Failed, format!("limit_{limit}")));
    let journal = journal(api, room).await;
    let end = journal.last().unwrap();
    assert_eq!((end.kind, &data(end)["limit"]), (EventType::RunFailed, &json!(limit)));
    let told: Vec<_> = journal.iter().filter(|event| event.kind == EventType::ErrorReported).collect();
    assert_eq!((told.len(), &data(told[0])["code"]), (1, &json!(format!("limit_{limit}"))));
}

async fn invariant_14_limits_stop_a_run(api: &TestClient) {
    let calls = r#"!script [{"model_call":true},{"model_call":true},{"text":"not reached"}]"#;
    let tool = r#"!script [{"tool_use":{"id":"t","name":"build"}},{"hang":true}]"#;
    tokio::join!(
        stopped_by(api, json!({"turns": 2}), calls, "turns"),
        stopped_by(api, json!({"wall_seconds": 1}), "!count 10000 20", "wall"),
        stopped_by(api, json!({"idle_seconds": 1}), "!hang", "idle"),
        stopped_by(api, json!({"idle_seconds": 60, "tool_seconds": 1}), tool, "tool"),
        stopped_by(api, json!({"output_bytes": 2000}), "!flood 1000000", "output_bytes"),
    );
}

async fn failure_is_reported_once_and_keeps_the_partial_text(api: &TestClient) {
    let room = room(api).await;
    let run = post_and_wait(api, room, "!fail over_loaded Try later").await;
    let error = run.error.clone().unwrap();
    assert_eq!(
        (run.status, error.code.as_str(), error.message.as_str()),
        (RunStatus::Failed, "over_loaded", "Try later")
    );
    let kept = message_of(api, &run).await;
    assert_eq!((kept.status, kept.text.as_str()), (MessageStatus::Partial, "I am about to fail."));
    let bad = post_and_wait(api, room, "!nonsense").await;
    assert_eq!((bad.status, bad.error.unwrap().code.as_str()), (RunStatus::Failed, "bad_directive"));
    assert_eq!(post_and_wait(api, room, "!count 2").await.status, RunStatus::Completed, "the room must continue");
}

async fn limits_must_be_positive(api: &TestClient) {
    for limits in [
        json!({"turns": 0}),
        json!({"first_byte_seconds": 0}),
        json!({"tool_seconds": 0}),
        json!({"wall_seconds": -1}),
        json!({"idle_seconds": 1.5}),
        json!({"hours": 1}),
    ] {
        let spec = json!({"name": "x", "provider": "scripted", "limits": limits});
        post(api, "/api/agents", &spec).await.expect_problem(400, "invalid_request");
    }
}

/// An agent once replaced the server's limits upwards, and filled memory and disk with a message of 20 bytes.
async fn h5_limits_of_the_server_are_ceilings(database: TestDatabase) {
    let stored = json!({"name": "old", "provider": "scripted", "limits": {"output_bytes": 1_000_000_000_000_u64}});
    let old = TestServer::start_with(database, &[("runs.output_bytes", "1073741824")]).await;
    let refused = post(old.api(), "/api/agents", &stored).await.expect_problem(422, "unprocessable");
    assert_eq!(refused["pointer"], "/limits");
    let stored = json!({"name": "old", "provider": "scripted", "limits": {"output_bytes": 1 << 30}});
    let id = post(old.api(), "/api/agents", &stored).await.expect_status(201)["id"].as_str().unwrap().to_owned();
    let database = old.stop().await;

    // The server's limit is lower now than what the agent was stored with.
    let server = TestServer::start_with(database, &[("runs.output_bytes", "4096"), ("runs.wall_seconds", "60")]).await;
    let api = server.api();
    let room = room_of(api, &[id.parse().unwrap()]).await;
    let run = post_and_wait(api, room, "!flood 209715200").await;
    assert_eq!(run.error.as_ref().unwrap().code, "limit_output_bytes");
    assert!(message_of(api, &run).await.text.len() <= 4096 + 1024, "at most one delta over the limit");
    for (limits, field) in [
        (json!({"output_bytes": 4097}), "output_bytes"),
        (json!({"wall_seconds": u32::MAX}), "wall_seconds"),
        (json!({"turns": 101}), "turns"),
    ] {
        let spec = json!({"name": "x", "provider": "scripted", "limits": limits});
        let refused = post(api, "/api/agents", &spec).await.expect_problem(422, "unprocessable");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(field) && detail.contains(&format!("runs.{field}")), "{detail}");
        let path = format!("/api/agents/{id}");
        let change = json!({"limits": limits});
        response_to(api.request(Method::PATCH, &path).json(&change)).await.expect_problem(422, "unprocessable");
        // Other settings of an agent with an old limit can be changed.
        response_to(api.request(Method::PATCH, &path).json(&json!({"model": field}))).await.expect_status(200);
    }
    let spec = json!({"name": "low", "provider": "scripted", "limits": {"output_bytes": 4096, "turns": 1}});
    post(api, "/api/agents", &spec).await.expect_status(201);
    server.finish().await;
}

async fn l8_concurrent_changes_of_an_agent_all_take_effect(api: &TestClient) {
    let id = agent(api, "Ada", json!({})).await;
    let path = format!("/api/agents/{id}");
    let change = |body: Value| response_to(api.request(Method::PATCH, &path).json(&body));
    let changes = [
        json!({"model": "m"}),
        json!({"system_prompt": "p"}),
        json!({"limits": {"turns": 7}}),
        json!({"tools": {"deny": ["x"]}}),
    ];
    for answer in futures_util::future::join_all(changes.map(change)).await {
        answer.expect_status(200);
    }
    let ada = get(api, &path).await.expect_status(200);
    assert_eq!(
        (&ada["model"], &ada["system_prompt"], &ada["limits"]["turns"], &ada["tools"]["deny"]),
        (&json!("m"), &json!("p"), &json!(7), &json!(["x"]))
    );
}

async fn server_limits_are_the_defaults(database: TestDatabase) {
    let settings = [("runs.idle_seconds", "1"), ("runs.output_bytes", "1024"), ("runs.concurrency", "1")];
    let server = TestServer::start_with(database, &settings).await;
    let api = server.api();
    // With a concurrency of one, the second run ends after the first.
    let (first, second) = (room(api).await, room(api).await);
    let (hanging, flooding) = (post_text(api, first, "!hang").await, post_text(api, second, "!flood 100000").await);
    assert_eq!(wait_for_end(api, hanging).await.error.unwrap().code, "limit_idle");
    let flooding = wait_for_end(api, flooding).await;
    assert_eq!(flooding.error.as_ref().unwrap().code, "limit_output_bytes");
    assert!(message_of(api, &flooding).await.text.len() <= 1024 + 1024, "at most one delta over the limit");
    let own = room_with(api, json!({"limits": {"output_bytes": 100}})).await;
    let run = post_and_wait(api, own, "!count 500").await;
    assert_eq!(run.error.unwrap().code, "limit_output_bytes", "an agent can lower a limit");
    server.finish().await;
}

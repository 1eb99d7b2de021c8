//! Every run has limits: the agent's own, or the server's.

use super::requests::{
    agent, counted, data, journal, message_of, post, post_and_wait, post_text, room, room_of, room_with, wait_for_end,
};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use serde_json::{Value, json};
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};

on_both_databases! {
    server: invariant_14_limits_stop_a_run, failure_is_reported_once_and_keeps_the_partial_text, limits_must_be_positive;
    database: server_limits_are_the_defaults;
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
    let room = room_with(api, json!({"limits": {"output_bytes": u64::MAX, "wall_seconds": u32::MAX}})).await;
    assert_eq!(
        post_and_wait(api, room, "!count 3").await.status,
        RunStatus::Completed,
        "the largest values must be accepted"
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
    let own = room_with(api, json!({"limits": {"output_bytes": 100_000}})).await;
    let run = post_and_wait(api, own, "!count 500").await;
    assert_eq!((run.status, message_of(api, &run).await.text), (RunStatus::Completed, counted(500)));
    server.finish().await;
}

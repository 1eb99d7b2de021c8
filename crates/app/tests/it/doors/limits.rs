//! Nothing runs without a limit: an agent's own, or the server's.

use super::scene::{agent, answered, counted, data, ended, journal, message_of, post, room, room_of, room_with, say};
use domain::{event::EventType, message::MessageStatus, run::RunStatus};
use serde_json::{Value, json};
use testkit::{client::Api, database::TestDatabase, server::TestServer};

doors! {
    server: invariant_14_limits_stop_a_run, a_failure_is_told_once_and_keeps_what_was_said, a_limit_is_at_least_one;
    database: the_servers_own_limits_hold_where_an_agent_sets_none;
}

async fn stopped_by(api: &Api, limits: Value, message: &str, limit: &str) {
    let agent = agent(api, limit, json!({"limits": limits})).await;
    let room = room_of(api, &[agent]).await;
    let run = answered(api, room, message).await;
    assert_eq!((run.status, run.error.unwrap().code), (RunStatus::Failed, format!("limit_{limit}")));
    let journal = journal(api, room).await;
    let end = journal.last().unwrap();
    assert_eq!((end.kind, &data(end)["limit"]), (EventType::RunFailed, &json!(limit)));
    let told: Vec<_> = journal.iter().filter(|event| event.kind == EventType::ErrorReported).collect();
    assert_eq!((told.len(), &data(told[0])["code"]), (1, &json!(format!("limit_{limit}"))));
}

async fn invariant_14_limits_stop_a_run(api: &Api) {
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

async fn a_failure_is_told_once_and_keeps_what_was_said(api: &Api) {
    let room = room(api).await;
    let run = answered(api, room, "!fail over_loaded Try later").await;
    let error = run.error.clone().unwrap();
    assert_eq!(
        (run.status, error.code.as_str(), error.message.as_str()),
        (RunStatus::Failed, "over_loaded", "Try later")
    );
    let kept = message_of(api, &run).await;
    assert_eq!((kept.status, kept.text.as_str()), (MessageStatus::Partial, "I am about to fail."));
    let bad = answered(api, room, "!nonsense").await;
    assert_eq!((bad.status, bad.error.unwrap().code.as_str()), (RunStatus::Failed, "bad_directive"));
    assert_eq!(answered(api, room, "!count 2").await.status, RunStatus::Completed, "the room goes on");
}

async fn a_limit_is_at_least_one(api: &Api) {
    for limits in [
        json!({"turns": 0}),
        json!({"first_byte_seconds": 0}),
        json!({"tool_seconds": 0}),
        json!({"wall_seconds": -1}),
        json!({"idle_seconds": 1.5}),
        json!({"hours": 1}),
    ] {
        let spec = json!({"name": "x", "provider": "scripted", "limits": limits});
        post(api, "/api/agents", &spec).await.is_refused(400, "invalid_request");
    }
    let room = room_with(api, json!({"limits": {"output_bytes": u64::MAX, "wall_seconds": u32::MAX}})).await;
    assert_eq!(answered(api, room, "!count 3").await.status, RunStatus::Completed, "the largest is no limit");
}

async fn the_servers_own_limits_hold_where_an_agent_sets_none(database: TestDatabase) {
    let settings = [("runs.idle_seconds", "1"), ("runs.output_bytes", "1024"), ("runs.concurrency", "1")];
    let server = TestServer::start_with(database, &settings).await;
    let api = server.api();
    // One at a time: both end, the second one after the first.
    let (first, second) = (room(api).await, room(api).await);
    let (hanging, flooding) = (say(api, first, "!hang").await, say(api, second, "!flood 100000").await);
    assert_eq!(ended(api, hanging).await.error.unwrap().code, "limit_idle");
    let flooding = ended(api, flooding).await;
    assert_eq!(flooding.error.as_ref().unwrap().code, "limit_output_bytes");
    assert!(message_of(api, &flooding).await.text.len() <= 1024 + 1024, "one delta over it at most");
    let own = room_with(api, json!({"limits": {"output_bytes": 100_000}})).await;
    let run = answered(api, own, "!count 500").await;
    assert_eq!((run.status, message_of(api, &run).await.text), (RunStatus::Completed, counted(500)));
    server.finish().await;
}

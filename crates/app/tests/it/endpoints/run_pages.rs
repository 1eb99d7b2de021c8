//! Pages of runs, and the timeline of a run.

use super::requests::{RoomFollower, agent, get, post, post_and_wait, post_text, room_of, wait_for_end};
use domain::event::EventType;
use serde_json::{Value, json};
use testkit::client::TestClient;
use uuid::Uuid;

on_both_databases! {
    server: runs_are_paged, timeline_has_approval_spans;
}

async fn runs_are_paged(api: &TestClient) {
    let (one, two) = (agent(api, "one", json!({})).await, agent(api, "two", json!({})).await);
    let (room, other) = (room_of(api, &[one]).await, room_of(api, &[two]).await);
    let mut made = Vec::new();
    for n in 0..7 {
        let run = post_and_wait(api, if n == 3 { other } else { room }, "!count 1").await;
        made.insert(0, run.id.to_string());
    }
    let (mut seen, mut path) = (Vec::new(), "/api/runs?limit=3".to_owned());
    loop {
        let page = get(api, &path).await.expect_status(200);
        let runs = page["runs"].as_array().unwrap();
        seen.extend(runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        assert!(runs.iter().all(|run| run["room_name"] == "A room" && run["agent_name"].is_string()));
        match page["next"].as_str() {
            Some(next) => path = format!("/api/runs?limit=3&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, made, "each run once, newest first");
    let ids = |page: Value| page["runs"].as_array().unwrap().len();
    assert_eq!(ids(get(api, &format!("/api/runs?agent={two}")).await.expect_status(200)), 1);
    assert_eq!(ids(get(api, &format!("/api/runs?room={room}&status=completed")).await.expect_status(200)), 6);
    assert_eq!(
        ids(get(api, &format!("/api/runs?room_id={room}")).await.expect_status(200)),
        6,
        "the old parameter name"
    );
    assert_eq!(ids(get(api, &format!("/api/runs?room={room}&agent={two}")).await.expect_status(200)), 0);
    for bad in ["before=x", "before=1.2", "before=", "limit=0", "limit=1001", "agent=x", "status=odd", "page=2"] {
        get(api, &format!("/api/runs?{bad}")).await.expect_problem(400, "invalid_request");
    }
}

async fn timeline_has_approval_spans(api: &TestClient) {
    let asking = agent(api, "asking", json!({})).await;
    let room = room_of(api, &[asking]).await;
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, "!ask Bash {}").await;
    let asked = follower.until_kind(EventType::ApprovalRequested, run).await;
    let asked: Value = serde_json::from_str(&asked.data).unwrap();
    let path = format!("/api/runs/{run}/timeline");
    let kind = |span: &Value| span["kind"].as_str().unwrap().to_owned();
    let open = get(api, &path).await.expect_status(200);
    let spans = open["spans"].as_array().unwrap();
    let waits = spans.iter().find(|span| kind(span) == "approval").unwrap();
    assert_eq!((&waits["name"], &waits["to_ms"], &open["ended_at"]), (&json!("Bash"), &json!(null), &json!(null)));

    let approval = format!("/api/runs/{run}/approvals/{}", asked["approval_id"].as_str().unwrap());
    assert_eq!(post(api, &approval, &json!({"decision": "allow"})).await.status, 204);
    wait_for_end(api, run).await;
    let closed = get(api, &path).await.expect_status(200);
    let spans = closed["spans"].as_array().unwrap();
    assert_eq!(kind(&spans[0]), "queued");
    assert!(spans.iter().all(|span| span["to_ms"].as_u64() >= span["from_ms"].as_u64()), "{closed}");
    assert!(closed["ended_at"].is_string() && closed["run_id"] == json!(run));
    get(api, &format!("/api/runs/{}/timeline", Uuid::now_v7())).await.expect_problem(404, "not_found");
}

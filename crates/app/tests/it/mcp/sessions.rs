//! Revisions with sessions.

use super::{Double, LEGACY, Mcp, double::frame, text};
use serde_json::json;

#[tokio::test]
async fn complete_session() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    double.until_listened(1).await;
    mcp.call(1, "plain", json!({})).await;
    assert_eq!(text(&mcp.read_answer(1).await), "a\nb");
    let update = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "x://1"}});
    double.announce(&format!("id: 0\n{}", frame(&update))).await;
    assert_eq!(mcp.read().await, update);
    // A request from the server, and the client's response.
    double.announce(&frame(&json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}))).await;
    assert_eq!(mcp.read().await["method"], "ping");
    mcp.write(&json!({"jsonrpc": "2.0", "id": 9, "result": {}})).await;
    double.until("the answer arrives", |double| double.request_names().contains(&"POST response".into())).await;
    let (code, left, notes) = mcp.end().await;
    assert_eq!((code, left.len(), notes.as_str()), (Some(0), 0, ""));

    let seen = double.seen();
    let mut whats: Vec<&str> = seen.iter().map(|seen| seen.what.as_str()).collect();
    assert_eq!(whats[..2], ["POST initialize", "POST notifications/initialized"]);
    assert_eq!(whats.pop(), Some("DELETE"));
    assert_eq!((seen[0].header("mcp-session-id"), seen[0].header("mcp-protocol-version")), (None, None));
    for seen in &seen[1..] {
        assert_eq!(seen.header("mcp-session-id"), Some("s1"), "{seen:?}");
        assert_eq!(seen.header("mcp-protocol-version"), Some(LEGACY), "{seen:?}");
        assert_eq!(seen.header("mcp-method"), None, "{seen:?}");
    }
    assert_eq!(seen[0].header("accept"), Some("application/json, text/event-stream"));
    let listening = seen.iter().find(|seen| seen.what == "GET").unwrap();
    assert_eq!(listening.header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn slow_answer_does_not_block_others_and_progress_comes_first() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    mcp.call(1, "slow", json!({"number": 2})).await;
    mcp.call(2, "progress", json!({"number": 1})).await;
    let progress = mcp.read().await;
    assert_eq!(
        (&progress["method"], &progress["params"]["progressToken"]),
        (&json!("notifications/progress"), &json!(2))
    );
    mcp.call(3, "plain", json!({})).await;
    mcp.read_answer(3).await;
    double.release(1);
    assert_eq!(text(&mcp.read_answer(2).await), "done");
    double.release(2);
    assert_eq!(text(&mcp.read_answer(1).await), "done");
    mcp.end().await;
}

#[tokio::test]
async fn more_requests_than_the_concurrency_limit_are_all_answered() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    for id in 1..=150 {
        mcp.call(id, "slow", json!({"number": 1})).await;
    }
    let calls = |double: &Double| double.request_names().iter().filter(|what| *what == "POST tools/call").count();
    double.until("64 have arrived", |double| calls(double) == 64).await;
    mcp.call(151, "plain", json!({})).await;
    double.release(1);
    let mut answered = Vec::new();
    for _ in 1..=151 {
        answered.push(mcp.read().await["id"].as_u64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=151).collect::<Vec<_>>());
    assert_eq!((calls(&double), double.most_open()), (151, 64));
    mcp.end().await;
}

#[tokio::test]
async fn cancellation_is_forwarded_and_not_answered() {
    let double = Double::start().await;
    let mut mcp = Mcp::initialized(&double).await;
    mcp.call(1, "slow", json!({"number": 9})).await;
    // Wait until it was sent: an unsent request would be cancelled locally.
    double.until("it arrives", |double| double.request_names().contains(&"POST tools/call".into())).await;
    mcp.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    double.until("it arrives", |double| double.request_names().contains(&"POST notifications/cancelled".into())).await;
    let (code, left, notes) = mcp.end().await;
    assert_eq!((code, left, notes.as_str()), (Some(0), Vec::new(), ""));
}

#[tokio::test]
async fn interrupted_answer_is_resumed() {
    let double = Double::start().await;
    double.refuse_streams();
    let mut mcp = Mcp::initialized(&double).await;
    let broken = json!({"name": "broken", "arguments": {}});
    mcp.write(&json!({"jsonrpc": "2.0", "id": "resumed", "method": "tools/call", "params": broken})).await;
    let answer = mcp.read().await;
    assert_eq!((&answer["id"], text(&answer)), (&json!("resumed"), "whole"));
    // Without an event id to resume from, the client gets an error.
    mcp.call(2, "cut", json!({})).await;
    let lost = mcp.read_answer(2).await;
    assert!(lost["error"]["message"].as_str().unwrap().contains("before the answer came"), "{lost}");
    mcp.end().await;
}

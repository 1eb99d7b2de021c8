//! Tests with both ends on in-memory pipes.

use super::{CallError, CloseReason, RpcConnection, RpcError, RpcFormat, RpcIncoming, RpcPeer, fake_peer::FakeRpcPeer};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{sync::mpsc, task::JoinSet};
use workbench::process::MAX_LINE_BYTES;

const LONG: Duration = Duration::from_secs(20);

fn start() -> (RpcConnection, RpcPeer, mpsc::Receiver<RpcIncoming>, FakeRpcPeer) {
    let (reader, writer, far_end) = FakeRpcPeer::new();
    let (connection, peer, incoming) = RpcConnection::start(reader, writer, RpcFormat { with_version_field: false });
    (connection, peer, incoming, far_end)
}

fn call(peer: &RpcPeer, method: &'static str, deadline: Duration) -> JoinSet<Result<Value, CallError>> {
    let (peer, mut calls) = (peer.clone(), JoinSet::new());
    calls.spawn(async move { peer.request(method, json!({}), deadline).await });
    calls
}

async fn answer(mut calls: JoinSet<Result<Value, CallError>>) -> Result<Value, CallError> {
    calls.join_next().await.unwrap().unwrap()
}

async fn closed(mut incoming: mpsc::Receiver<RpcIncoming>) -> CloseReason {
    loop {
        match incoming.recv().await.expect("the close reason arrives before the channel ends") {
            RpcIncoming::Closed(reason) => {
                assert_eq!(incoming.recv().await, None);
                return reason;
            }
            _ => continue,
        }
    }
}

#[tokio::test]
async fn responses_are_matched_by_id_in_any_order() {
    let (_connection, peer, _incoming, mut far_end) = start();
    let first = call(&peer, "first", LONG);
    let one = far_end.expect("first").await;
    let second = call(&peer, "second", LONG);
    let two = far_end.expect("second").await;
    far_end.send(json!({"id": two["id"], "error": {"code": -32600, "message": "no rollout found"}})).await;
    far_end.send(json!({"jsonrpc": "2.0", "id": one["id"], "result": {"n": 1}})).await;
    assert_eq!(answer(first).await, Ok(json!({"n": 1})));
    let refused = CallError::Refused { code: -32600, message: "no rollout found".into(), data: None };
    assert_eq!(answer(second).await, Err(refused));
}

#[tokio::test]
async fn request_ids_of_the_two_sides_do_not_collide() {
    let (_connection, peer, mut incoming, mut far_end) = start();
    let ours = call(&peer, "ours", LONG);
    let id = far_end.expect("ours").await["id"].clone();
    far_end.send(json!({"id": id, "method": "theirs", "params": {"x": 1}})).await;
    let Some(RpcIncoming::Request { id: theirs, method, params, raw }) = incoming.recv().await else { panic!() };
    assert_eq!((&theirs, method.as_str(), params), (&id, "theirs", json!({"x": 1})));
    assert!(raw.contains("\"method\":\"theirs\""));
    peer.respond(theirs, Ok(json!({"decision": "accept"}))).unwrap();
    assert_eq!(far_end.next().await.unwrap(), json!({"id": id, "result": {"decision": "accept"}}));
    peer.respond(json!("s"), Err(RpcError::unknown_method("x"))).unwrap();
    assert_eq!(far_end.next().await.unwrap()["error"]["code"], -32601);
    far_end.send(json!({"id": id, "result": "mine"})).await;
    assert_eq!(answer(ours).await, Ok(json!("mine")));
}

#[tokio::test]
async fn ten_thousand_notifications_arrive_complete_and_in_order() {
    let (_connection, peer, mut incoming, mut far_end) = start();
    let pending = call(&peer, "ask", LONG);
    let id = far_end.expect("ask").await["id"].clone();
    let mut sending = JoinSet::new();
    sending.spawn(async move {
        let burst: String = (0..10_000).map(|n| format!("{{\"method\":\"n\",\"params\":{n}}}\n")).collect();
        far_end.send_text(&burst).await;
        far_end.send(json!({"id": id, "result": "behind"})).await;
        far_end
    });
    for n in 0..10_000 {
        let Some(RpcIncoming::Notification { params, .. }) = incoming.recv().await else { panic!("{n}") };
        assert_eq!(params, json!(n));
    }
    assert_eq!(answer(pending).await, Ok(json!("behind")));
}

#[tokio::test]
async fn sending_does_not_block_when_the_program_does_not_read() {
    let (_connection, peer, _incoming, _far_end) = start();
    let big = "x".repeat(8 * 1024);
    let sent = (0..2_000).take_while(|_| peer.notify("n", json!(big)).is_ok()).count();
    assert!((1_000..1_100).contains(&sent), "{sent}");
    assert_eq!(peer.notify("n", json!(1)), Err(CallError::Overloaded));
}

#[tokio::test]
async fn end_of_output_fails_pending_and_later_calls() {
    let (_connection, peer, incoming, mut far_end) = start();
    let pending = call(&peer, "ask", LONG);
    far_end.expect("ask").await;
    drop(far_end);
    assert_eq!(answer(pending).await, Err(CallError::Closed(CloseReason::Ended)));
    assert_eq!(closed(incoming).await, CloseReason::Ended);
    assert_eq!(peer.notify("n", Value::Null), Err(CallError::Closed(CloseReason::Ended)));
    assert_eq!(peer.request("r", Value::Null, LONG).await, Err(CallError::Closed(CloseReason::Ended)));
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_times_out_and_its_late_response_is_ignored() {
    let (_connection, peer, mut incoming, mut far_end) = start();
    assert_eq!(peer.request("ask", json!({}), Duration::from_millis(50)).await, Err(CallError::Timeout));
    let id = far_end.expect("ask").await["id"].clone();
    far_end.send(json!({"id": id, "result": 1})).await;
    far_end.send(json!({"id": 999, "result": 1})).await;
    far_end.send(json!({"method": "after"})).await;
    assert!(matches!(incoming.recv().await, Some(RpcIncoming::Notification { method, .. }) if method == "after"));
}

#[tokio::test]
async fn stray_lines_are_skipped_but_many_in_a_row_close_the_connection() {
    let (_connection, peer, mut incoming, mut far_end) = start();
    for _ in 0..3 {
        far_end.send_text(&"warning: something\n\n".repeat(19)).await;
        far_end.send(json!({"method": "n"})).await;
        assert!(matches!(incoming.recv().await, Some(RpcIncoming::Notification { .. })));
    }
    far_end.send_text(&"{\"half\":\n".repeat(20)).await;
    let reason = closed(incoming).await;
    assert_eq!(reason.code(), "bad_output");
    assert!(reason.to_string().contains("{\"half\":"), "{reason}");
    assert_eq!(peer.close_reason(), Some(reason));
}

#[tokio::test]
async fn unfinished_and_endless_lines_have_their_own_close_reasons() {
    let (_connection, _peer, incoming, mut far_end) = start();
    far_end.send_text("{\"method\":").await;
    drop(far_end);
    let reason = closed(incoming).await;
    assert_eq!((reason.code(), reason), ("program_crashed", CloseReason::HalfLine("{\"method\":".into())));

    let (reader, writer) = (workbench::process::OutputLines::new(tokio::io::repeat(b'x')), tokio::io::sink());
    let (_connection, _peer, incoming) = RpcConnection::start(reader, writer, RpcFormat { with_version_field: false });
    let reason = closed(incoming).await;
    assert_eq!(reason.code(), "bad_output");
    assert!(reason.to_string().contains(&format!("{} MB", MAX_LINE_BYTES / 1024 / 1024)), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn after_a_write_error_remaining_output_is_read_before_closing() {
    let (reader, writer) = tokio::io::duplex(1024);
    let (mut output, our_reader) = tokio::io::duplex(1024);
    drop(reader);
    let lines = workbench::process::OutputLines::new(our_reader);
    let (_connection, peer, mut incoming) =
        RpcConnection::start(lines, writer, RpcFormat { with_version_field: false });
    peer.notify("n", Value::Null).unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut output, b"{\"method\":\"last words\"}\n").await.unwrap();
    assert!(matches!(incoming.recv().await, Some(RpcIncoming::Notification { .. })));
    assert!(matches!(closed(incoming).await, CloseReason::Unwritable(_)));
}

#[tokio::test]
async fn closing_closes_the_pipes() {
    let (connection, peer, _incoming, mut far_end) = start();
    let pending = call(&peer, "ask", LONG);
    far_end.expect("ask").await;
    connection.close().await;
    assert_eq!(answer(pending).await, Err(CallError::Closed(CloseReason::Dropped)));
    assert_eq!(far_end.next().await, None);
}

#[tokio::test]
async fn dropped_calls_are_unregistered() {
    let (_connection, peer, _incoming, mut far_end) = start();
    for _ in 0..3_000 {
        let pending = call(&peer, "ask", LONG);
        far_end.expect("ask").await;
        drop(pending);
        tokio::task::yield_now().await;
    }
    let pending = call(&peer, "last", LONG);
    let id = far_end.expect("last").await["id"].clone();
    far_end.send(json!({"id": id, "result": true})).await;
    assert_eq!(answer(pending).await, Ok(json!(true)));
}

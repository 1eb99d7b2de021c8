use super::{KEPT_FOR, MAX_KEPT_CALLS, MAX_UNREAD, Outbox, OutboxError, OutboxReader, SEND_TIMEOUT};
use futures_util::{FutureExt as _, StreamExt as _};
use rmcp::{
    model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_server::session::ServerSseMessage,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::advance;

fn of(message: Value) -> ServerJsonRpcMessage {
    serde_json::from_value(message).unwrap()
}

fn answer(id: i64, text: &str) -> ServerJsonRpcMessage {
    let content = json!([{"type": "text", "text": text}]);
    of(json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}}))
}

fn notification(method: &str, params: &Value) -> ServerJsonRpcMessage {
    of(json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn updated(uri: usize) -> ServerJsonRpcMessage {
    notification("notifications/resources/updated", &json!({"uri": format!("greenroom://rooms/{uri}")}))
}

fn log(text: usize) -> ServerJsonRpcMessage {
    notification("notifications/message", &json!({"level": "info", "data": text}))
}

fn progress(done: i64) -> ServerJsonRpcMessage {
    notification("notifications/progress", &json!({"progressToken": "mine", "progress": done}))
}

/// Sends a message that must fit.
fn send(outbox: &Arc<Outbox>, message: ServerJsonRpcMessage) {
    outbox.send(message).now_or_never().expect("the message fits").unwrap();
}

/// Returns the next message, if there is one now.
fn next(reading: &mut OutboxReader) -> Option<ServerSseMessage> {
    reading.next().now_or_never().flatten()
}

fn has_ended(reading: &mut OutboxReader) -> bool {
    matches!(reading.next().now_or_never(), Some(None))
}

fn text(event: &ServerSseMessage) -> String {
    serde_json::to_string(&event.message).unwrap()
}

fn id(event: &ServerSseMessage) -> &str {
    event.event_id.as_deref().unwrap()
}

fn begin(outbox: &Arc<Outbox>, request: i64) -> OutboxReader {
    let token: ClientJsonRpcMessage = serde_json::from_value(json!({
        "jsonrpc": "2.0", "id": request, "method": "tools/call",
        "params": {"name": "x", "_meta": {"progressToken": "mine"}}
    }))
    .unwrap();
    let ClientJsonRpcMessage::Request(request_message) = token else { panic!("not a request") };
    let token = rmcp::model::GetMeta::get_meta(&request_message.request).get_progress_token();
    outbox.begin_call(RequestId::Number(request), token).unwrap()
}

#[tokio::test]
async fn a_call_is_answered_on_its_own_stream() {
    let outbox = Arc::<Outbox>::default();
    let (mut common, mut call) = (outbox.reader(), begin(&outbox, 1));
    let first = next(&mut call).unwrap();
    assert!(first.message.is_none() && first.retry.is_some() && id(&first) == "0/0");
    send(&outbox, progress(1));
    send(&outbox, updated(1));
    send(&outbox, answer(1, "done"));
    assert!(text(&next(&mut common).unwrap()).contains("rooms/1"));
    let (update, answered) = (next(&mut call).unwrap(), next(&mut call).unwrap());
    assert!(text(&update).contains("progress") && id(&update) == "1/0");
    assert!(text(&answered).contains("done") && id(&answered) == "2/0");
    assert!(has_ended(&mut call) && next(&mut common).is_none());
}

#[tokio::test]
async fn a_second_call_with_the_same_id_is_rejected() {
    let outbox = Arc::<Outbox>::default();
    let call = begin(&outbox, 1);
    assert!(matches!(outbox.begin_call(RequestId::Number(1), None), Err(OutboxError::DuplicateRequest)));
    drop(call);
    assert!(outbox.has_open_call(&RequestId::Number(1)), "losing its reader does not end a call");
    outbox.cancel_call(&RequestId::Number(1));
    assert!(!outbox.has_open_call(&RequestId::Number(1)));
    assert!(next(&mut begin(&outbox, 1)).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_can_be_resumed_until_it_expires() {
    let outbox = Arc::<Outbox>::default();
    let mut call = begin(&outbox, 1);
    let first = next(&mut call).unwrap();
    drop(call);
    send(&outbox, progress(1));
    send(&outbox, progress(2));
    send(&outbox, answer(1, "done"));
    for _ in 0..2 {
        let mut again = outbox.resume(id(&first)).unwrap();
        let update = next(&mut again).unwrap();
        assert!(text(&update).contains("\"progress\":2"), "only the last progress is kept: {}", text(&update));
        assert!(text(&next(&mut again).unwrap()).contains("done"));
        assert!(has_ended(&mut again));
        // A reader that has a part gets the rest.
        let mut rest = outbox.resume(id(&update)).unwrap();
        assert!(text(&next(&mut rest).unwrap()).contains("done") && has_ended(&mut rest));
    }
    advance(KEPT_FOR).await;
    outbox.drop_expired();
    assert!(matches!(outbox.resume(id(&first)), Err(OutboxError::UnknownEvent)));
}

#[tokio::test]
async fn kept_calls_are_bounded() {
    let outbox = Arc::<Outbox>::default();
    for request in 0..100 {
        drop(begin(&outbox, request));
        send(&outbox, answer(request, "small"));
    }
    assert_eq!(outbox.lock().calls.len(), MAX_KEPT_CALLS);
    assert!(outbox.resume("0/83").is_err() && outbox.resume("0/84").is_ok());
    for request in 100..104 {
        drop(begin(&outbox, request));
        send(&outbox, answer(request, &"x".repeat(2_000_000)));
        assert_eq!(outbox.lock().calls.len(), 1, "the newest is kept regardless of its size");
    }
    assert!(next(&mut outbox.resume("0/103").unwrap()).is_some());
}

#[tokio::test]
async fn unknown_events_are_rejected() {
    let outbox = Arc::<Outbox>::default();
    let _call = begin(&outbox, 1);
    for never in
        ["", "x", "1", "-1", "1/0", "0/1", "0/", "/0", "0/0/0", "18446744073709551616", "0/18446744073709551616"]
    {
        assert!(matches!(outbox.resume(never), Err(OutboxError::UnknownEvent)), "{never}");
    }
    assert!(outbox.resume("0").is_ok() && outbox.resume("0/0").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_for_the_reader() {
    let outbox = Arc::<Outbox>::default();
    let mut reading = outbox.reader();
    for number in 0..MAX_UNREAD {
        send(&outbox, log(number));
    }
    let mut waiting = Box::pin(outbox.send(log(MAX_UNREAD)));
    assert!((&mut waiting).now_or_never().is_none() && outbox.is_full());
    assert!(text(&next(&mut reading).unwrap()).contains("\"data\":0"));
    assert!(!outbox.is_full());
    waiting.await.unwrap();
    // Nothing was lost, and nothing is out of order.
    for number in 1..=MAX_UNREAD {
        assert!(text(&next(&mut reading).unwrap()).contains(&format!("\"data\":{number}")));
    }
    assert!(next(&mut reading).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_loses_its_session() {
    let outbox = Arc::<Outbox>::default();
    let (mut reading, large) = (outbox.reader(), "x".repeat(5_000_000));
    send(&outbox, answer(1, &large));
    let begun = tokio::time::Instant::now();
    assert!(matches!(outbox.send(answer(2, &large)).await, Err(OutboxError::ClientNotReading)));
    assert!(begun.elapsed() >= SEND_TIMEOUT && outbox.is_stuck() && outbox.ended.is_cancelled());
    // Messages that fitted can still be read.
    assert!(next(&mut reading).is_some() && has_ended(&mut reading));
    assert!(matches!(outbox.send(answer(3, "")).await, Err(OutboxError::SessionEnded)));
}

#[tokio::test]
async fn without_a_reader_senders_do_not_wait() {
    let outbox = Arc::<Outbox>::default();
    for round in 0..10 {
        for uri in 0..256 {
            send(&outbox, updated(uri));
        }
        send(&outbox, log(round));
        send(&outbox, notification("notifications/tools/list_changed", &json!({})));
    }
    for number in 10..1000 {
        send(&outbox, log(number));
    }
    // A large answer without a reader does not block other messages.
    drop(begin(&outbox, 1));
    send(&outbox, answer(1, &"x".repeat(9_000_000)));
    let mut reading = outbox.resumable_reader();
    assert_eq!(id(&next(&mut reading).unwrap()), "0");
    let notice = next(&mut reading).unwrap();
    assert!(notice.event_id.is_none() && text(&notice).contains("\"count\":984"), "{}", text(&notice));
    let rest: Vec<String> = std::iter::from_fn(|| next(&mut reading)).map(|event| text(&event)).collect();
    assert_eq!(rest.len(), 256 + 1 + 16, "each notification once, and the last log messages");
    assert!(rest.last().unwrap().contains("999"));
}

#[tokio::test]
async fn the_newest_reader_gets_messages_until_it_is_dropped() {
    let outbox = Arc::<Outbox>::default();
    let (mut first, mut second) = (outbox.reader(), outbox.reader());
    send(&outbox, updated(1));
    assert!(next(&mut first).is_none() && next(&mut second).is_some());
    send(&outbox, updated(2));
    drop(second);
    assert!(text(&next(&mut first).unwrap()).contains("rooms/2"), "the message that the dropped reader had not taken");
    let many: Vec<OutboxReader> = (0..100).map(|_| outbox.reader()).collect();
    assert!(has_ended(&mut first), "too many readers end the oldest");
    drop(many);
}

#[tokio::test]
async fn a_resumed_reader_gets_missed_messages_and_a_notice_of_dropped_ones() {
    let outbox = Arc::<Outbox>::default();
    let mut reading = outbox.resumable_reader();
    let primed = next(&mut reading).unwrap();
    for number in 0..3 {
        send(&outbox, updated(number));
        assert!(next(&mut reading).is_some());
    }
    drop(reading);
    send(&outbox, updated(3));
    let mut again = outbox.resume("1").unwrap();
    let missed: Vec<String> = std::iter::from_fn(|| next(&mut again)).map(|event| id(&event).to_owned()).collect();
    assert_eq!(missed, ["2", "3", "4"]);
    for number in 4..40 {
        send(&outbox, updated(number));
        assert!(next(&mut again).is_some());
    }
    let mut long_gone = outbox.resume(id(&primed)).unwrap();
    let notice = next(&mut long_gone).unwrap();
    assert!(text(&notice).contains("\"count\":24") && notice.event_id.is_none(), "{}", text(&notice));
    assert_eq!(id(&next(&mut long_gone).unwrap()), "25");
    // A new stream begins with the event to resume from, and repeats nothing.
    let mut fresh = outbox.resumable_reader();
    assert_eq!(id(&next(&mut fresh).unwrap()), "40");
    assert!(next(&mut fresh).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_all_streams() {
    let outbox = Arc::<Outbox>::default();
    let (mut common, mut call) = (outbox.reader(), begin(&outbox, 1));
    assert!(next(&mut call).is_some());
    let ending = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        outbox.end();
    };
    let (common, call, ()) = tokio::join!(common.next(), call.next(), ending);
    assert!(common.is_none() && call.is_none());
}

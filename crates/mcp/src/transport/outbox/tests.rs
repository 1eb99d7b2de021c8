use super::{KEPT_CALLS, KEPT_FOR, Outbox, PATIENCE, Reading, Trouble, UNREAD};
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

/// Said where there is room for it.
fn say(outbox: &Arc<Outbox>, message: ServerJsonRpcMessage) {
    outbox.say(message).now_or_never().expect("there is room").unwrap();
}

/// What comes next, if it is there.
fn next(reading: &mut Reading) -> Option<ServerSseMessage> {
    reading.next().now_or_never().flatten()
}

fn has_ended(reading: &mut Reading) -> bool {
    matches!(reading.next().now_or_never(), Some(None))
}

fn text(event: &ServerSseMessage) -> String {
    serde_json::to_string(&event.message).unwrap()
}

fn id(event: &ServerSseMessage) -> &str {
    event.event_id.as_deref().unwrap()
}

fn begin(outbox: &Arc<Outbox>, request: i64) -> Reading {
    let token: ClientJsonRpcMessage = serde_json::from_value(json!({
        "jsonrpc": "2.0", "id": request, "method": "tools/call",
        "params": {"name": "x", "_meta": {"progressToken": "mine"}}
    }))
    .unwrap();
    let ClientJsonRpcMessage::Request(asked) = token else { panic!("no request") };
    let token = rmcp::model::GetMeta::get_meta(&asked.request).get_progress_token();
    outbox.begin(RequestId::Number(request), token).unwrap()
}

#[tokio::test]
async fn a_call_is_answered_on_its_own_stream_which_ends_with_it() {
    let outbox = Arc::<Outbox>::default();
    let (mut common, mut call) = (outbox.read(), begin(&outbox, 1));
    let first = next(&mut call).unwrap();
    assert!(first.message.is_none() && first.retry.is_some() && id(&first) == "0/0");
    say(&outbox, progress(1));
    say(&outbox, updated(1));
    say(&outbox, answer(1, "done"));
    assert!(text(&next(&mut common).unwrap()).contains("rooms/1"));
    let (told, answered) = (next(&mut call).unwrap(), next(&mut call).unwrap());
    assert!(text(&told).contains("progress") && id(&told) == "1/0");
    assert!(text(&answered).contains("done") && id(&answered) == "2/0");
    assert!(has_ended(&mut call) && next(&mut common).is_none());
}

#[tokio::test]
async fn two_calls_with_one_id_are_not_taken() {
    let outbox = Arc::<Outbox>::default();
    let call = begin(&outbox, 1);
    assert!(matches!(outbox.begin(RequestId::Number(1), None), Err(Trouble::InUse)));
    drop(call);
    assert!(outbox.is_under_way(&RequestId::Number(1)), "a lost reader ends no call");
    outbox.cancelled(&RequestId::Number(1));
    assert!(!outbox.is_under_way(&RequestId::Number(1)));
    assert!(next(&mut begin(&outbox, 1)).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_lost_is_fetched_for_a_while() {
    let outbox = Arc::<Outbox>::default();
    let mut call = begin(&outbox, 1);
    let first = next(&mut call).unwrap();
    drop(call);
    say(&outbox, progress(1));
    say(&outbox, progress(2));
    say(&outbox, answer(1, "done"));
    for _ in 0..2 {
        let mut again = outbox.resume(id(&first)).unwrap();
        let told = next(&mut again).unwrap();
        assert!(text(&told).contains("\"progress\":2"), "only the last is of use: {}", text(&told));
        assert!(text(&next(&mut again).unwrap()).contains("done"));
        assert!(has_ended(&mut again));
        // Who has a part gets the rest.
        let mut rest = outbox.resume(id(&told)).unwrap();
        assert!(text(&next(&mut rest).unwrap()).contains("done") && has_ended(&mut rest));
    }
    advance(KEPT_FOR).await;
    outbox.tidy();
    assert!(matches!(outbox.resume(id(&first)), Err(Trouble::UnknownEvent)));
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    let outbox = Arc::<Outbox>::default();
    for request in 0..100 {
        drop(begin(&outbox, request));
        say(&outbox, answer(request, "small"));
    }
    assert_eq!(outbox.lock().calls.len(), KEPT_CALLS);
    assert!(outbox.resume("0/83").is_err() && outbox.resume("0/84").is_ok());
    for request in 100..104 {
        drop(begin(&outbox, request));
        say(&outbox, answer(request, &"x".repeat(2_000_000)));
        assert_eq!(outbox.lock().calls.len(), 1, "the newest is kept, however large");
    }
    assert!(next(&mut outbox.resume("0/103").unwrap()).is_some());
}

#[tokio::test]
async fn events_that_never_were() {
    let outbox = Arc::<Outbox>::default();
    let _call = begin(&outbox, 1);
    for never in
        ["", "x", "1", "-1", "1/0", "0/1", "0/", "/0", "0/0/0", "18446744073709551616", "0/18446744073709551616"]
    {
        assert!(matches!(outbox.resume(never), Err(Trouble::UnknownEvent)), "{never}");
    }
    assert!(outbox.resume("0").is_ok() && outbox.resume("0/0").is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_speaks_waits_for_who_reads() {
    let outbox = Arc::<Outbox>::default();
    let mut reading = outbox.read();
    for number in 0..UNREAD {
        say(&outbox, log(number));
    }
    let mut waiting = Box::pin(outbox.say(log(UNREAD)));
    assert!((&mut waiting).now_or_never().is_none() && outbox.is_full());
    assert!(text(&next(&mut reading).unwrap()).contains("\"data\":0"));
    assert!(!outbox.is_full());
    waiting.await.unwrap();
    // Nothing was lost, and nothing is out of order.
    for number in 1..=UNREAD {
        assert!(text(&next(&mut reading).unwrap()).contains(&format!("\"data\":{number}")));
    }
    assert!(next(&mut reading).is_none());
}

#[tokio::test(start_paused = true)]
async fn who_never_reads_loses_the_session() {
    let outbox = Arc::<Outbox>::default();
    let (mut reading, large) = (outbox.read(), "x".repeat(5_000_000));
    say(&outbox, answer(1, &large));
    let begun = tokio::time::Instant::now();
    assert!(matches!(outbox.say(answer(2, &large)).await, Err(Trouble::Stuck)));
    assert!(begun.elapsed() >= PATIENCE && outbox.is_stuck() && outbox.over.is_cancelled());
    // What fitted is still there for whoever reads at last.
    assert!(next(&mut reading).is_some() && has_ended(&mut reading));
    assert!(matches!(outbox.say(answer(3, "")).await, Err(Trouble::Over)));
}

#[tokio::test]
async fn what_nobody_reads_keeps_nobody_waiting() {
    let outbox = Arc::<Outbox>::default();
    for round in 0..10 {
        for uri in 0..256 {
            say(&outbox, updated(uri));
        }
        say(&outbox, log(round));
        say(&outbox, notification("notifications/tools/list_changed", &json!({})));
    }
    for number in 10..1000 {
        say(&outbox, log(number));
    }
    // An answer that nobody came for is nobody else's trouble either.
    drop(begin(&outbox, 1));
    say(&outbox, answer(1, &"x".repeat(9_000_000)));
    let mut reading = outbox.read_resumably();
    assert_eq!(id(&next(&mut reading).unwrap()), "0");
    let notice = next(&mut reading).unwrap();
    assert!(notice.event_id.is_none() && text(&notice).contains("\"count\":984"), "{}", text(&notice));
    let rest: Vec<String> = std::iter::from_fn(|| next(&mut reading)).map(|event| text(&event)).collect();
    assert_eq!(rest.len(), 256 + 1 + 16, "each news once, and the last of the log");
    assert!(rest.last().unwrap().contains("999"));
}

#[tokio::test]
async fn the_newest_reader_has_the_word_and_gives_it_back() {
    let outbox = Arc::<Outbox>::default();
    let (mut first, mut second) = (outbox.read(), outbox.read());
    say(&outbox, updated(1));
    assert!(next(&mut first).is_none() && next(&mut second).is_some());
    say(&outbox, updated(2));
    drop(second);
    assert!(text(&next(&mut first).unwrap()).contains("rooms/2"), "what it had not taken");
    let many: Vec<Reading> = (0..100).map(|_| outbox.read()).collect();
    assert!(has_ended(&mut first), "there are others enough");
    drop(many);
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_what_it_missed_and_hears_of_what_is_gone() {
    let outbox = Arc::<Outbox>::default();
    let mut reading = outbox.read_resumably();
    let primed = next(&mut reading).unwrap();
    for number in 0..3 {
        say(&outbox, updated(number));
        assert!(next(&mut reading).is_some());
    }
    drop(reading);
    say(&outbox, updated(3));
    let mut again = outbox.resume("1").unwrap();
    let missed: Vec<String> = std::iter::from_fn(|| next(&mut again)).map(|event| id(&event).to_owned()).collect();
    assert_eq!(missed, ["2", "3", "4"]);
    for number in 4..40 {
        say(&outbox, updated(number));
        assert!(next(&mut again).is_some());
    }
    let mut long_gone = outbox.resume(id(&primed)).unwrap();
    let notice = next(&mut long_gone).unwrap();
    assert!(text(&notice).contains("\"count\":24") && notice.event_id.is_none(), "{}", text(&notice));
    assert_eq!(id(&next(&mut long_gone).unwrap()), "25");
    // A new stream says from where it can be resumed, and tells nothing twice.
    let mut fresh = outbox.read_resumably();
    assert_eq!(id(&next(&mut fresh).unwrap()), "40");
    assert!(next(&mut fresh).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_all_that_is_open() {
    let outbox = Arc::<Outbox>::default();
    let (mut common, mut call) = (outbox.read(), begin(&outbox, 1));
    assert!(next(&mut call).is_some());
    let ending = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        outbox.end();
    };
    let (common, call, ()) = tokio::join!(common.next(), call.next(), ending);
    assert!(common.is_none() && call.is_none());
}

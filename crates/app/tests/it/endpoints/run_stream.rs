//! The feed of one run: only its events, until the last one.

use super::requests::{
    agent, get, journal, post_and_wait, post_body, post_text, response_to, room, room_of, runs_of, within,
};
use domain::{event::EventType, ids::RunId, position::Position};
use reqwest::Method;
use serde_json::json;
use testkit::client::{SeenEvent, SseReader, TestClient};

on_both_databases! {
    server: stream_has_the_events_of_the_run_and_ends, stream_resumes, resuming_after_the_last_event_returns_204,
            stream_of_a_queued_run_waits, d9_no_frame_is_named_error;
}

fn path(run: RunId) -> String {
    format!("/api/runs/{run}/stream")
}

/// Reads until the server ends the stream.
async fn rest(mut stream: SseReader) -> Vec<SeenEvent> {
    within("the end of the stream", async {
        let mut seen = Vec::new();
        while let Some(event) = stream.next_event().await.unwrap() {
            seen.push(event);
        }
        seen
    })
    .await
}

async fn stream_has_the_events_of_the_run_and_ends(api: &TestClient) {
    let agents = [agent(api, "a", json!({})).await, agent(api, "b", json!({})).await];
    let room = room_of(api, &agents).await;
    let runs = runs_of(&post_body(api, room, json!({"text": "!count 10 5"})).await.expect_status(202));
    let mut live = Vec::new();
    for run in &runs {
        live.push(SseReader::open(api, &path(*run), &Position::START).await.unwrap());
    }
    for (run, live) in runs.iter().zip(live) {
        let live = rest(live).await;
        let journal = journal(api, room).await;
        let expected: Vec<_> = journal.into_iter().filter(|event| event.run_id == Some(*run)).collect();
        assert_eq!(live, expected);
        assert_eq!((live[0].kind, live.last().unwrap().kind), (EventType::RunQueued, EventType::RunCompleted));
        let late = rest(SseReader::open(api, &path(*run), &Position::START).await.unwrap()).await;
        assert_eq!(late, expected);
    }
}

async fn stream_resumes(api: &TestClient) {
    let room = room(api).await;
    let run = post_text(api, room, "!count 40 10").await;
    let mut stream = SseReader::open(api, &path(run), &Position::START).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 8 {
        seen.push(within("an event", stream.next_event()).await.unwrap().unwrap());
    }
    let position = stream.position().clone();
    drop(stream);
    seen.extend(rest(SseReader::open(api, &path(run), &position).await.unwrap()).await);
    let of_run: Vec<_> = journal(api, room).await.into_iter().filter(|event| event.run_id == Some(run)).collect();
    assert_eq!(seen, of_run);
}

/// 204 tells an EventSource not to reconnect.
async fn resuming_after_the_last_event_returns_204(api: &TestClient) {
    let room = room(api).await;
    let run = post_and_wait(api, room, "!count 3").await.id;
    let last = journal(api, room).await.len();
    let request = api.request(Method::GET, &path(run)).header("last-event-id", last.to_string());
    assert_eq!(response_to(request).await.status, 204);
    // Also if the room has newer events.
    post_and_wait(api, room, "!count 3").await;
    let request = api.request(Method::GET, &path(run)).header("last-event-id", (last + 2).to_string());
    assert_eq!(response_to(request).await.status, 204);
}

async fn stream_of_a_queued_run_waits(api: &TestClient) {
    let room = room(api).await;
    let (hanging, queued) = (post_text(api, room, "!hang").await, post_text(api, room, "!count 2").await);
    let mut stream = SseReader::open(api, &path(queued), &Position::START).await.unwrap();
    assert_eq!(within("its first event", stream.next_event()).await.unwrap().unwrap().kind, EventType::RunQueued);
    api.cancel_run(hanging).await.unwrap();
    assert_eq!(rest(stream).await.last().unwrap().kind, EventType::RunCompleted);
    get(api, &path(RunId::generate())).await.expect_problem(404, "not_found");
    let garbage = api.request(Method::GET, &path(queued)).header("last-event-id", "x");
    response_to(garbage).await.expect_problem(400, "invalid_request");
}

/// An EventSource reports a lost connection as `error`.
async fn d9_no_frame_is_named_error(api: &TestClient) {
    let room = room(api).await;
    let run = post_and_wait(api, room, "!fail").await.id;
    let stream = response_to(api.request(Method::GET, &path(run))).await;
    let names: Vec<&str> = stream.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert!(names.contains(&"error_reported") && !names.contains(&"error"), "{names:?}");
}

//! The feed of one run: its events only, until its last.

use super::scene::{agent, answer, answered, get, journal, room, room_of, runs_of, say, say_with, within};
use domain::{event::EventType, ids::RunId, position::Position};
use reqwest::Method;
use serde_json::json;
use testkit::client::{Api, SeenEvent, SseReader};

doors! {
    server: it_has_the_runs_events_and_ends_after_the_last, it_resumes, resumed_after_its_last_event_it_is_over,
            it_waits_for_a_run_that_waits;
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

async fn it_has_the_runs_events_and_ends_after_the_last(api: &Api) {
    let agents = [agent(api, "a", json!({})).await, agent(api, "b", json!({})).await];
    let room = room_of(api, &agents).await;
    let runs = runs_of(&say_with(api, room, json!({"text": "!count 10 5"})).await.is(202));
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

async fn it_resumes(api: &Api) {
    let room = room(api).await;
    let run = say(api, room, "!count 40 10").await;
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

/// 204 is how an EventSource is told not to come back.
async fn resumed_after_its_last_event_it_is_over(api: &Api) {
    let room = room(api).await;
    let run = answered(api, room, "!count 3").await.id;
    let last = journal(api, room).await.len();
    let request = api.request(Method::GET, &path(run)).header("last-event-id", last.to_string());
    assert_eq!(answer(request).await.status, 204);
    // Also when the room has gone on since.
    answered(api, room, "!count 3").await;
    let request = api.request(Method::GET, &path(run)).header("last-event-id", (last + 2).to_string());
    assert_eq!(answer(request).await.status, 204);
}

async fn it_waits_for_a_run_that_waits(api: &Api) {
    let room = room(api).await;
    let (hanging, queued) = (say(api, room, "!hang").await, say(api, room, "!count 2").await);
    let mut stream = SseReader::open(api, &path(queued), &Position::START).await.unwrap();
    assert_eq!(within("its first event", stream.next_event()).await.unwrap().unwrap().kind, EventType::RunQueued);
    api.cancel_run(hanging).await.unwrap();
    assert_eq!(rest(stream).await.last().unwrap().kind, EventType::RunCompleted);
    get(api, &path(RunId::generate())).await.is_refused(404, "not_found");
    let garbage = api.request(Method::GET, &path(queued)).header("last-event-id", "x");
    answer(garbage).await.is_refused(400, "invalid_request");
}

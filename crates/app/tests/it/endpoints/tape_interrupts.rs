//! A person speaks while several agents answer: every partial answer is kept exactly once, everything stops, and only the
//! newest message is answered.

use super::requests::{agent, data, get, journal, message_of, post_body, runs_of, wait_for_end, within};
use domain::{
    event::{EventBody, EventType},
    ids::{AgentId, MessageId, RoomId, RunId},
    message::MessageStatus,
    run::RunStatus,
};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use testkit::client::{SeenEvent, TestClient};
use tokio::time::sleep;

on_both_databases! {
    server: invariant_06_partial_once_200_interrupts_of_a_room_of_5, two_messages_at_the_same_moment_have_one_winner,
            a_message_during_an_interruption_takes_its_place, an_agent_that_finishes_at_that_moment_starts_nobody;
}

async fn room(api: &TestClient, count: usize, policy: Value) -> (RoomId, Vec<AgentId>) {
    let mut agents = Vec::with_capacity(count);
    for number in 0..count {
        agents.push(agent(api, &format!("agent {number} of {count}"), json!({})).await);
    }
    (api.create_room_with("A room", &agents, policy).await.unwrap().id, agents)
}

async fn say(api: &TestClient, room: RoomId, text: &str) -> (MessageId, Vec<RunId>) {
    let posted = post_body(api, room, json!({"text": text})).await.expect_status(202);
    (posted["message"]["id"].as_str().unwrap().parse().unwrap(), runs_of(&posted))
}

async fn idle(api: &TestClient, room: RoomId) -> Vec<SeenEvent> {
    within("the end of the plan", async {
        while get(api, &format!("/api/rooms/{room}/tape")).await.expect_status(200)["state"] != "idle" {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    journal(api, room).await
}

/// What holds however messages, ends and stops fall together: each run ends once, its answer is stored once and is what was
/// streamed, and nothing is queued for a message when a newer one is there. Returns the messages of people, in order.
async fn assert_consistent(api: &TestClient, room: RoomId, journal: &[SeenEvent]) -> Vec<MessageId> {
    let (mut ended, mut streamed) = (HashSet::new(), HashMap::<RunId, String>::new());
    let mut messages = Vec::new();
    for event in journal {
        let run = event.run_id;
        assert!(run.is_none_or(|run| !ended.contains(&run)), "nothing follows the end of a run: {event:?}");
        if event.kind.ends_a_run() {
            ended.insert(run.unwrap());
        }
        match event.body().unwrap() {
            EventBody::MessagePosted(posted) => messages.push(posted.message_id),
            EventBody::RunQueued(queued) => {
                assert_eq!(Some(&queued.message_id), messages.last(), "a run for a message that was replaced");
                streamed.insert(run.unwrap(), String::new());
            }
            EventBody::ContentDelta(delta) => streamed.get_mut(&run.unwrap()).unwrap().push_str(&delta.delta),
            _ => {}
        }
    }
    assert_eq!(ended.len(), streamed.len(), "every run has ended");
    let mut answers: HashMap<RunId, String> = HashMap::new();
    let mut before = None;
    loop {
        let page = api.messages(room, before, 1000).await.unwrap();
        let first = page.messages.first().map(|message| message.seq);
        for message in page.messages {
            if let Some(run) = message.run_id {
                assert_eq!(answers.insert(run, message.text), None, "an answer is stored once");
            }
        }
        if first.is_none_or(|first| first <= 1) || first == before {
            break;
        }
        before = first;
    }
    let count: String = (1..=5000).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    for (run, text) in streamed {
        let answer = answers.remove(&run).unwrap_or_default();
        assert_eq!(answer, text, "the answer is what was streamed");
        assert!(count.starts_with(&answer) || answer.starts_with("Hanging"), "{answer:?} is no prefix");
    }
    messages
}

async fn invariant_06_partial_once_200_interrupts_of_a_room_of_5(api: &TestClient) {
    let (room, _) = room(api, 5, json!({"kind": "concurrent"})).await;
    // A fixed sequence of pauses up to 12 ms.
    let mut random = 7_u64;
    for _ in 0..200 {
        say(api, room, "!count 5000 1").await;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        sleep(Duration::from_micros((random >> 33) % 12_000)).await;
    }
    let (last, runs) = say(api, room, "!count 3").await;
    for run in &runs {
        let run = wait_for_end(api, *run).await;
        assert_eq!((run.status, message_of(api, &run).await.text.as_str()), (RunStatus::Completed, "1 2 3"));
    }
    let journal = idle(api, room).await;
    let messages = assert_consistent(api, room, &journal).await;
    assert_eq!((messages.len(), messages.last()), (201, Some(&last)));
    let interrupted = journal.iter().filter(|event| event.kind == EventType::RunInterrupted).count();
    assert_eq!(interrupted, 1000);
}

/// Both are stored, in some order; the later one is answered, the other is not.
async fn two_messages_at_the_same_moment_have_one_winner(api: &TestClient) {
    let (room, agents) = room(api, 3, json!({})).await;
    for _ in 0..10 {
        tokio::join!(say(api, room, "!count 400 2"), say(api, room, "!count 400 2"));
    }
    let (one, two) = tokio::join!(say(api, room, "!count 2"), say(api, room, "!count 2"));
    let journal = idle(api, room).await;
    let messages = assert_consistent(api, room, &journal).await;
    let last = *messages.last().unwrap();
    assert!(last == one.0 || last == two.0);
    let answered = journal.iter().filter(|event| event.kind == EventType::RunCompleted).filter(|end| {
        journal.iter().any(|event| {
            event.run_id == end.run_id && event.kind == EventType::RunQueued && data(event)["message_id"] == json!(last)
        })
    });
    assert_eq!(answered.count(), agents.len(), "everyone has answered the last message");
}

/// The agents take a while to stop; the message in between is replaced before anybody begins with it.
async fn a_message_during_an_interruption_takes_its_place(api: &TestClient) {
    let (room, _) = room(api, 3, json!({"kind": "concurrent"})).await;
    let (_, first) = say(api, room, "!hang 400").await;
    within("the first words", async {
        while journal(api, room).await.iter().filter(|event| event.kind == EventType::ContentDelta).count() < 3 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let (_, second) = say(api, room, "!count 5").await;
    let (_, third) = say(api, room, "!count 4").await;
    for run in first {
        let run = wait_for_end(api, run).await;
        assert_eq!(run.status, RunStatus::Interrupted);
        assert_eq!(message_of(api, &run).await.status, MessageStatus::Partial, "what was said is kept");
    }
    for run in second {
        let run = wait_for_end(api, run).await;
        assert_eq!((run.status, run.started_at), (RunStatus::Interrupted, None), "it has not begun");
    }
    for run in third {
        assert_eq!(wait_for_end(api, run).await.status, RunStatus::Completed);
    }
    let journal = idle(api, room).await;
    assert_consistent(api, room, &journal).await;
}

/// The end of a run queues the next agent, the message replaces the plan: whichever is stored first, no agent begins with the
/// old message after the new one.
async fn an_agent_that_finishes_at_that_moment_starts_nobody(api: &TestClient) {
    let (room, agents) = room(api, 3, json!({})).await;
    for pause in 0..60 {
        say(api, room, "!count 2").await;
        sleep(Duration::from_micros(pause * 200)).await;
    }
    let (last, _) = say(api, room, "!count 2").await;
    let journal = idle(api, room).await;
    assert_consistent(api, room, &journal).await;
    let queued =
        journal.iter().filter(|event| event.kind == EventType::RunQueued && data(event)["message_id"] == json!(last));
    assert_eq!(queued.count(), agents.len());
}

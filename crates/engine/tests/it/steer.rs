//! Steering: messages for an answer in progress.

use crate::harness::{EngineHarness, TestTurn, me, transcript_lines};
use domain::{
    event::EventBody,
    ids::{MessageId, RoomId, RunId},
    room::WhenBusy,
    run::RunStatus,
};
use engine::{
    EngineError,
    commands::{PostResult, RunRef},
};
use providers::{SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use store::IdempotentRequest;
use testkit::database::TestDatabase;

contract! {
    a_message_is_added_to_the_answer,
    a_refused_message_gets_a_run_of_its_own,
    a_late_message_gets_a_run_of_its_own,
    steering_an_idle_room_queues_a_run,
    a_provider_without_steering_is_refused_and_nothing_is_stored,
    a_message_of_a_disconnected_client_is_still_answered,
    the_session_knows_messages_that_it_took,
}

/// Posts a message that steers, while the test acts as the provider.
async fn steer(
    harness: &EngineHarness,
    room: RoomId,
    turn: &mut TestTurn,
    answer: impl AsyncFnOnce(&mut TestTurn, MessageId),
) -> PostResult {
    let attempt = attempt();
    let posting = harness.steer(room, &[], Some(&attempt));
    let provider = async {
        let TurnCommand::Steer { message, text, .. } = turn.next_command().await else { panic!("a message to take") };
        assert_eq!(text, "left");
        answer(turn, message).await;
    };
    let (posted, ()) = tokio::join!(posting, provider);
    posted.unwrap()
}

fn attempt() -> IdempotentRequest {
    IdempotentRequest { key: "steer".into(), fingerprint: [7; 32] }
}

async fn take(turn: &mut TestTurn, message: MessageId) {
    turn.report(TurnEvent::Steered { message, taken: true }).await;
}

/// The messages that a run has taken.
async fn taken_by(harness: &EngineHarness, room: RoomId, run: RunId) -> Vec<MessageId> {
    let events = harness.store.run_events(room, run, 0).await.unwrap();
    let taken = events.iter().filter_map(|event| match event.body().unwrap() {
        EventBody::Status(status) if status.status == "steered" => status.message_id,
        _ => None,
    });
    taken.collect()
}

async fn repeat(harness: &EngineHarness, room: RoomId) -> Vec<RunRef> {
    harness.steer(room, &[], Some(&attempt())).await.unwrap().runs
}

async fn a_message_is_added_to_the_answer(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let running = harness.post(room, "one").await.runs[0];
    let mut turn = harness.turn().await;
    turn.text("going right").await;
    let posted = steer(&harness, room, &mut turn, take).await;
    assert_eq!(posted.runs, [running], "the run in progress answers it");
    assert_eq!(taken_by(&harness, room, running.id).await, [posted.message.id], "stored before it is acknowledged");
    assert_eq!(repeat(&harness, room).await, [running], "a repeated request gets the same response");
    turn.text(", now left").await;
    turn.complete();
    assert_eq!(harness.ended(running.id).await.status, RunStatus::Completed);
    assert!(harness.store.unfinished_runs(&me().workspace, room).await.unwrap().is_empty(), "no other run");
    harness.stop().await;
}

async fn a_refused_message_gets_a_run_of_its_own(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let running = harness.post(room, "one").await.runs[0];
    let mut turn = harness.turn().await;
    let refuses = async |turn: &mut TestTurn, message| turn.report(TurnEvent::Steered { message, taken: false }).await;
    let posted = steer(&harness, room, &mut turn, refuses).await;
    assert_eq!((posted.runs.len(), posted.runs[0].agent_id), (1, ann.id));
    assert_ne!(posted.runs[0], running);
    assert_eq!(repeat(&harness, room).await, posted.runs);
    assert!(taken_by(&harness, room, running.id).await.is_empty());
    turn.complete();
    let turn = harness.turn().await;
    assert_eq!(turn.request.prompt, "left");
    turn.complete();
    assert_eq!(harness.ended(posted.runs[0].id).await.status, RunStatus::Completed);
    harness.stop().await;
}

async fn a_late_message_gets_a_run_of_its_own(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.post(room, "one").await;
    let mut turn = harness.turn().await;
    let posting = harness.steer(room, &[], None);
    let provider = async {
        assert!(matches!(turn.next_command().await, TurnCommand::Steer { .. }));
        // The turn ends when the message arrives.
        turn.complete();
    };
    let (posted, ()) = tokio::join!(posting, provider);
    let turn = harness.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.request.run_id), ("left", posted.unwrap().runs[0].id));
    turn.complete();
    harness.stop().await;
}

async fn steering_an_idle_room_queues_a_run(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let bob = harness.agent("Bob", "q").await;
    let room = harness.room(&[&bob]).await;
    let posted = harness.post_when(room, "one", WhenBusy::Steer, &[]).await;
    let turn = harness.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.request.run_id), ("one", posted.runs[0].id));
    turn.complete();
    harness.stop().await;
}

async fn a_provider_without_steering_is_refused_and_nothing_is_stored(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let bob = harness.agent("Bob", "q").await;
    let room = harness.room(&[&bob]).await;
    harness.post(room, "one").await;
    let turn = harness.turn().await;
    let head = harness.store.room(&me().workspace, room).await.unwrap().head;
    match harness.steer(room, &[], None).await {
        Err(EngineError::Unsupported(why)) => assert!(why.contains("Bob") && why.contains("provider q"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(harness.store.room(&me().workspace, room).await.unwrap().head, head);
    turn.complete();
    harness.stop().await;
}

async fn a_message_of_a_disconnected_client_is_still_answered(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.post(room, "one").await;
    let mut turn = harness.turn().await;
    let message = tokio::select! {
        posted = harness.steer(room, &[], None) => panic!("{posted:?}"),
        command = turn.next_command() => match command {
            TurnCommand::Steer { message, .. } => message,
            other => panic!("{other:?}"),
        },
    };
    turn.report(TurnEvent::Steered { message, taken: false }).await;
    turn.complete();
    let turn = harness.turn().await;
    assert_eq!(turn.request.prompt, "left");
    turn.complete();
    harness.stop().await;
}

/// A taken message is not sent again; a message to another agent in between is.
async fn the_session_knows_messages_that_it_took(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    for (between, kept, missed) in [
        (false, SavedInSession::PromptAndAnswer, vec![]),
        (false, SavedInSession::Prompt, vec!["you: right", "local: left"]),
        (false, SavedInSession::Nothing, vec!["local: one", "you: right", "local: left"]),
        (true, SavedInSession::PromptAndAnswer, vec!["local: psst", "local: left", "Bob: yes?"]),
    ] {
        let room = harness.room(&[&ann, &bob]).await;
        let asked = [ann.id];
        let running = harness.post_when(room, "one", WhenBusy::Enqueue, &asked).await.runs[0];
        let mut turn = harness.turn().await;
        turn.session("s").await;
        turn.text("right").await;
        if between {
            harness.post_when(room, "psst", WhenBusy::Enqueue, &[bob.id]).await;
        }
        let posting = harness.steer(room, &asked, None);
        let provider = async {
            let TurnCommand::Steer { message, .. } = turn.next_command().await else { panic!("a message to take") };
            take(&mut turn, message).await;
        };
        let (posted, ()) = tokio::join!(posting, provider);
        assert_eq!(posted.unwrap().runs, [running]);
        turn.end(TurnEnd::Completed, kept);
        if between {
            harness.turn().await.answer("b", "yes?").await;
        }
        harness.post_when(room, "two", WhenBusy::Enqueue, &asked).await;
        let turn = harness.turn().await;
        assert_eq!((turn.agent(), turn.request.prompt.as_str()), (ann.id, "two"));
        assert_eq!(transcript_lines(&turn.session_to_resume().missed), missed, "{between} {kept:?}");
        turn.complete();
    }
    harness.stop().await;
}

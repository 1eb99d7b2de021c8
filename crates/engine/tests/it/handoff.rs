//! The fast path from a post to the worker: a run that is claimed in the commit that queues it is always driven, even
//! if the poster disconnects.

use crate::harness::{CRASH, EngineHarness, me, post};
use domain::{
    agent::AgentSpec,
    event::EventType,
    ids::{RoomId, RunId},
    name::Name,
    room::WhenBusy,
    run::RunStatus,
};
use engine::Worker;
use providers::TurnCommand;
use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};
use store::{RunFilter, journal::StopRequest};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

contract! {
    a_cancelled_post_is_either_answered_or_not_stored,
    a_server_runs_no_more_than_its_concurrency,
    a_post_without_a_worker_waits_in_the_queue,
    a_handed_over_run_equals_a_queued_run,
    a_run_that_cannot_start_has_the_same_events_on_both_paths,
    a_run_started_before_shutdown_is_interrupted_and_not_repeated,
    a_stop_request_reaches_a_run_that_waits_for_the_worker,
    invariant_04_no_ghosts_a_run_whose_driver_crashed_is_ended,
}

async fn a_cancelled_post_is_either_answered_or_not_stored(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    for max_polls in 1..40 {
        let room = harness.room(&[&ann]).await;
        let (engine, actor) = (harness.engine.clone(), me());
        let mut posting = pin!(engine.post_message(&actor, room, post("hello", WhenBusy::Enqueue, &[]), None));
        let mut polled = 0;
        poll_fn(|context| {
            polled += 1;
            match posting.as_mut().poll(context) {
                Poll::Pending if polled < max_polls => Poll::Pending,
                Poll::Pending | Poll::Ready(_) => Poll::Ready(()),
            }
        })
        .await;
    }
    // Waits for commits in progress.
    harness.engine.close().await;
    let filter = RunFilter { limit: 100, ..RunFilter::default() };
    let runs = harness.store.runs(&me().workspace, &filter).await.unwrap();
    assert!(!runs.is_empty());
    for _ in &runs {
        harness.turn().await.answer("s", "hi").await;
    }
    for run in runs {
        assert_eq!(harness.ended(run.id).await.status, RunStatus::Completed);
    }
    harness.stop().await;
}

async fn a_server_runs_no_more_than_its_concurrency(database: TestDatabase) {
    let mut harness = EngineHarness::with(database, |config| config.concurrency = 2).await;
    let ann = harness.agent("Ann", "p").await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let room = harness.room(&[&ann]).await;
        runs.push(harness.post(room, "hello").await.runs[0].id);
    }
    let (one, two) = (harness.turn().await, harness.turn().await);
    assert_eq!(harness.store.run(&me().workspace, runs[2]).await.unwrap().status, RunStatus::Queued);
    two.answer("s", "hi").await;
    let three = harness.turn().await;
    assert_eq!(three.request.run_id, runs[2]);
    one.answer("s", "hi").await;
    three.answer("s", "hi").await;
    for run in runs {
        assert_eq!(harness.ended(run).await.status, RunStatus::Completed);
    }
    harness.stop().await;
}

async fn a_post_without_a_worker_waits_in_the_queue(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.crash().await;
    let run = harness.post(room, "hello").await.runs[0].id;
    assert_eq!(harness.store.run(&me().workspace, run).await.unwrap().status, RunStatus::Queued);
    harness.start().await;
    harness.turn().await.answer("s", "hi").await;
    assert_eq!(harness.ended(run).await.status, RunStatus::Completed);
    harness.stop().await;
}

/// A run that is handed over carries its data; a run that was queued is read from the store.
async fn a_handed_over_run_equals_a_queued_run(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    let posted = harness.post_when(room, "first", WhenBusy::Enqueue, &[bob.id]).await;
    harness.turn().await.answer("s", "hi").await;
    harness.ended(posted.runs[0].id).await;
    let mut seen = Vec::new();
    for waits in [false, true, false] {
        if waits {
            harness.crash().await;
        }
        let posted = harness.post_when(room, "the same", WhenBusy::Enqueue, &[bob.id]).await;
        if waits {
            harness.start().await;
        }
        let turn = harness.turn().await;
        assert_eq!((turn.request.run_id, turn.agent()), (posted.runs[0].id, bob.id));
        assert!(
            turn.session_to_resume().missed.is_empty(),
            "the session knows all messages from before the run was queued"
        );
        let agent = turn.request.agent().clone();
        assert!(agent.spec.system_prompt.as_deref().is_some_and(|prompt| prompt.starts_with("You are Bob,")));
        seen.push((turn.request.prompt.clone(), agent, turn.request.workspace.folder.clone()));
        turn.answer("s", "hi").await;
        assert_eq!(harness.ended(posted.runs[0].id).await.message_id, posted.message.id);
    }
    assert!(seen.iter().all(|one| one.0 == "the same" && *one == seen[0]), "{seen:?}");
    harness.stop().await;
}

async fn event_types(harness: &EngineHarness, room: RoomId, run: RunId) -> Vec<EventType> {
    harness.store.run_events(room, run, 0).await.unwrap().iter().map(|event| event.kind).collect()
}

async fn a_run_that_cannot_start_has_the_same_events_on_both_paths(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let mut spec = AgentSpec::new(Name::parse("Ann").unwrap(), "p");
    spec.skills = vec!["gone".into()];
    let ann = harness.agent_of(spec).await;
    for waits in [false, true] {
        let room = harness.room(&[&ann]).await;
        if waits {
            harness.crash().await;
        }
        let run = harness.post(room, "hello").await.runs[0].id;
        if waits {
            harness.start().await;
        }
        assert_eq!(harness.ended(run).await.status, RunStatus::Failed);
        let whole = [
            EventType::RunQueued,
            EventType::RunStarted,
            EventType::StreamStart,
            EventType::StreamEnd,
            EventType::ErrorReported,
            EventType::RunFailed,
        ];
        assert_eq!(event_types(&harness, room, run).await, whole, "waits: {waits}");
    }
    harness.stop().await;
}

/// The start is stored in the commit of the message, and the provider is not called yet.
async fn a_run_started_before_shutdown_is_interrupted_and_not_repeated(database: TestDatabase) {
    let mut harness = EngineHarness::with(database, |config| config.stop_grace = Duration::from_millis(50)).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.crash().await;
    let worker = Worker::new(harness.engine.clone());
    let run = harness.post(room, "hello").await.runs[0].id;
    assert_eq!(harness.store.run(&me().workspace, run).await.unwrap().status, RunStatus::Running);
    let stopping = CancellationToken::new();
    stopping.cancel();
    worker.run(stopping).await;
    let ended = harness.store.run(&me().workspace, run).await.unwrap();
    assert_eq!(ended.status, RunStatus::Interrupted);
    let events = harness.store.run_events(room, run, 0).await.unwrap();
    let why = events.iter().find(|event| event.kind == EventType::RunInterrupted).unwrap();
    assert!(why.data.contains("shutdown"), "{}", why.data);
    let starts = events.iter().filter(|event| event.kind == EventType::RunStarted).count();
    assert_eq!(starts, 1);
    harness.start().await;
    harness.post_and_answer(room, "and on it goes", "s", "yes").await;
    harness.stop().await;
}

async fn a_stop_request_reaches_a_run_that_waits_for_the_worker(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.crash().await;
    let worker = Worker::new(harness.engine.clone());
    let run = harness.post(room, "hello").await.runs[0].id;
    harness.store.request_stop(&me(), &[run], StopRequest::Cancel).await.unwrap();
    let mut working = JoinSet::new();
    working.spawn(worker.run(CancellationToken::new()));
    let mut turn = harness.turn().await;
    assert_eq!(turn.next_command().await, TurnCommand::Interrupt);
    drop(turn);
    assert_eq!(harness.ended(run).await.status, RunStatus::Cancelled);
    working.shutdown().await;
    harness.stop().await;
}

async fn invariant_04_no_ghosts_a_run_whose_driver_crashed_is_ended(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let crashed = harness.post(room, CRASH).await.runs[0].id;
    assert_eq!(harness.ended(crashed).await.status, RunStatus::Interrupted);
    harness.post_and_answer(room, "and on it goes", "s", "yes").await;
    harness.stop().await;
}

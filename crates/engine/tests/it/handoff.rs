//! The short way from a post to the worker: a run that is claimed in the commit that queues it is driven, whatever happens
//! to whoever posted it.

use crate::scene::{CRASH, Stage, me, post};
use domain::{
    agent::AgentSpec,
    event::EventType,
    ids::{RoomId, RunId},
    name::Name,
    room::WhenBusy,
    run::RunStatus,
};
use engine::Worker;
use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};
use store::RunFilter;
use testkit::database::TestDatabase;
use tokio_util::sync::CancellationToken;

contract! {
    a_post_that_is_given_up_at_any_moment_is_answered_or_was_never_made,
    a_server_takes_no_more_runs_than_it_has_room_for,
    what_is_posted_while_no_worker_is_there_waits_for_one,
    a_run_is_the_same_whether_it_is_handed_over_or_waits_in_the_queue,
    a_run_that_cannot_be_asked_tells_the_same_story_by_both_ways,
    a_run_that_has_started_when_its_server_stops_is_ended_and_not_run_again,
    invariant_04_no_ghosts_a_run_whose_driver_crashed_is_ended,
}

async fn a_post_that_is_given_up_at_any_moment_is_answered_or_was_never_made(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    for patience in 1..40 {
        let room = stage.room(&[&ann]).await;
        let (engine, owner) = (stage.engine.clone(), me());
        let mut posting = pin!(engine.post(&owner, room, post("hello", WhenBusy::Enqueue, &[]), None));
        let mut polled = 0;
        poll_fn(|context| {
            polled += 1;
            match posting.as_mut().poll(context) {
                Poll::Pending if polled < patience => Poll::Pending,
                Poll::Pending | Poll::Ready(_) => Poll::Ready(()),
            }
        })
        .await;
    }
    // Commits that are under way come to their end.
    stage.engine.close().await;
    let filter = RunFilter { limit: 100, ..RunFilter::default() };
    let runs = stage.store.runs(&me(), &filter).await.unwrap();
    assert!(!runs.is_empty());
    for _ in &runs {
        stage.turn().await.answers("s", "hi").await;
    }
    for run in runs {
        assert_eq!(stage.ended(run.id).await.status, RunStatus::Completed);
    }
    stage.stop().await;
}

async fn a_server_takes_no_more_runs_than_it_has_room_for(database: TestDatabase) {
    let mut stage = Stage::with(database, |config| config.concurrency = 2).await;
    let ann = stage.agent("Ann", "p").await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let room = stage.room(&[&ann]).await;
        runs.push(stage.post(room, "hello").await.runs[0].id);
    }
    let (one, two) = (stage.turn().await, stage.turn().await);
    assert_eq!(stage.store.run(&me(), runs[2]).await.unwrap().status, RunStatus::Queued);
    two.answers("s", "hi").await;
    let three = stage.turn().await;
    assert_eq!(three.request.run_id, runs[2]);
    one.answers("s", "hi").await;
    three.answers("s", "hi").await;
    for run in runs {
        assert_eq!(stage.ended(run).await.status, RunStatus::Completed);
    }
    stage.stop().await;
}

async fn what_is_posted_while_no_worker_is_there_waits_for_one(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.crash().await;
    let run = stage.post(room, "hello").await.runs[0].id;
    assert_eq!(stage.store.run(&me(), run).await.unwrap().status, RunStatus::Queued);
    stage.start().await;
    stage.turn().await.answers("s", "hi").await;
    assert_eq!(stage.ended(run).await.status, RunStatus::Completed);
    stage.stop().await;
}

/// Who queues a run tells whoever begins with it what it is about; one that waited is read from the store.
async fn a_run_is_the_same_whether_it_is_handed_over_or_waits_in_the_queue(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let (ann, bob) = (stage.agent("Ann", "p").await, stage.agent("Bob", "p").await);
    let room = stage.room(&[&ann, &bob]).await;
    let posted = stage.post_when(room, "first", WhenBusy::Enqueue, &[bob.id]).await;
    stage.turn().await.answers("s", "hi").await;
    stage.ended(posted.runs[0].id).await;
    let mut seen = Vec::new();
    for waits in [false, true, false] {
        if waits {
            stage.crash().await;
        }
        let posted = stage.post_when(room, "the same", WhenBusy::Enqueue, &[bob.id]).await;
        if waits {
            stage.start().await;
        }
        let turn = stage.turn().await;
        assert_eq!((turn.request.run_id, turn.request.agent()), (posted.runs[0].id, &bob));
        assert!(turn.resumed().unheard.is_empty(), "it has heard all that was said before its run was queued");
        seen.push((turn.request.prompt.clone(), turn.request.place.workplace.clone()));
        turn.answers("s", "hi").await;
        assert_eq!(stage.ended(posted.runs[0].id).await.message_id, posted.message.id);
    }
    assert!(seen.iter().all(|one| one.0 == "the same" && *one == seen[0]), "{seen:?}");
    stage.stop().await;
}

async fn story(stage: &Stage, room: RoomId, run: RunId) -> Vec<EventType> {
    stage.store.run_events(room, run, 0).await.unwrap().iter().map(|event| event.kind).collect()
}

async fn a_run_that_cannot_be_asked_tells_the_same_story_by_both_ways(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let mut spec = AgentSpec::new(Name::parse("Ann").unwrap(), "p");
    spec.skills = vec!["gone".into()];
    let ann = stage.agent_of(spec).await;
    for waits in [false, true] {
        let room = stage.room(&[&ann]).await;
        if waits {
            stage.crash().await;
        }
        let run = stage.post(room, "hello").await.runs[0].id;
        if waits {
            stage.start().await;
        }
        assert_eq!(stage.ended(run).await.status, RunStatus::Failed);
        let whole = [
            EventType::RunQueued,
            EventType::RunStarted,
            EventType::StreamStart,
            EventType::StreamEnd,
            EventType::ErrorReported,
            EventType::RunFailed,
        ];
        assert_eq!(story(&stage, room, run).await, whole, "waits: {waits}");
    }
    stage.stop().await;
}

/// Its start was stored along with its message, and nobody was asked yet.
async fn a_run_that_has_started_when_its_server_stops_is_ended_and_not_run_again(database: TestDatabase) {
    let mut stage = Stage::with(database, |config| config.stop_grace = Duration::from_millis(50)).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.crash().await;
    let worker = Worker::new(stage.engine.clone());
    let run = stage.post(room, "hello").await.runs[0].id;
    assert_eq!(stage.store.run(&me(), run).await.unwrap().status, RunStatus::Running);
    let stopping = CancellationToken::new();
    stopping.cancel();
    worker.run(stopping).await;
    let ended = stage.store.run(&me(), run).await.unwrap();
    assert_eq!(ended.status, RunStatus::Interrupted);
    let events = stage.store.run_events(room, run, 0).await.unwrap();
    let why = events.iter().find(|event| event.kind == EventType::RunInterrupted).unwrap();
    assert!(why.data.contains("shutdown"), "{}", why.data);
    let starts = events.iter().filter(|event| event.kind == EventType::RunStarted).count();
    assert_eq!(starts, 1);
    stage.start().await;
    stage.talk(room, "and on it goes", "s", "yes").await;
    stage.stop().await;
}

async fn invariant_04_no_ghosts_a_run_whose_driver_crashed_is_ended(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let crashed = stage.post(room, CRASH).await.runs[0].id;
    assert_eq!(stage.ended(crashed).await.status, RunStatus::Interrupted);
    stage.talk(room, "and on it goes", "s", "yes").await;
    stage.stop().await;
}

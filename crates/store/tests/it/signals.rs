//! Signals to unfinished runs: stored only while the run can carry them out, settled once, never left open
//! (invariant 23).

use crate::scene::{LEASE, TestRun, by, claim, held, journal, me, room, within};
use domain::{
    approval::{DecisionAuthor, RememberScope},
    event::Decision,
    ids::{ApprovalId, MessageId, RoomId, UserId},
    signal::{MAX_PENDING_SIGNALS, Signal, SignalBody, SignalOutcome},
};
use serde_json::json;
use std::time::Duration;
use store::{
    SETTLED_SIGNALS_PER_DELETE, Store, StoreError,
    journal::{Commit, Guard, RowChange},
    queue::Claim,
};
use testkit::database::TestDatabase;

contract! {
    many threads:
        invariant_23_signals_are_durable_none_stays_open_when_its_run_ends_at_the_same_time;
    one thread:
        signals_are_read_back_as_they_were_stored,
        a_signal_is_settled_with_the_events_that_it_causes,
        invariant_11_fence_only_the_holder_settles_a_signal,
        a_signal_to_a_run_that_has_ended_is_refused,
        the_end_of_a_run_settles_its_signals,
        a_run_cannot_end_before_a_message_that_was_sent_to_it_is_settled,
        only_so_many_signals_may_wait,
        old_settled_signals_are_deleted_in_batches,
        the_sender_is_notified_when_its_signal_is_settled,
        the_holder_finds_its_runs_with_signals;
}

fn forget() -> SignalBody {
    SignalBody::ForgetTool { tool: "Bash".into() }
}

fn steer() -> SignalBody {
    SignalBody::Steer { message_id: MessageId::generate() }
}

fn storing(room: RoomId, signal: &Signal) -> Commit {
    let changes = vec![RowChange::StoreSignal { signal: signal.clone() }];
    Commit { room_id: room, guard: Guard::None, events: Vec::new(), changes }
}

fn settling(signal: &Signal, outcome: SignalOutcome) -> RowChange {
    RowChange::SettleSignal { run_id: signal.run_id, signal_id: signal.id, outcome }
}

/// A run that a worker holds.
async fn claimed(store: &Store) -> (RoomId, TestRun, Claim) {
    let room = room(store).await;
    let run = TestRun::queued(store, room).await;
    let claims = claim(store, "w").await;
    let claim = claims.into_iter().find(|claim| claim.run_id == run.id).unwrap();
    (room, run, claim)
}

async fn signals_are_read_back_as_they_were_stored(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, _) = claimed(&store).await;
    let answer = SignalBody::AnswerApproval {
        approval_id: ApprovalId::generate(),
        decision: Decision::Deny,
        input: Some(json!({"with": "a \0 and a \u{1f3ad}"})),
        remember: true,
        scope: Some(RememberScope::Pattern),
        user_id: Some(UserId::generate()),
        author: Some(DecisionAuthor::new(&by(&me()).at(Some("::1".parse().unwrap())))),
    };
    let signals: Vec<Signal> = [answer, steer(), forget()].into_iter().map(|body| Signal::new(run.id, body)).collect();
    for signal in &signals {
        store.commit(storing(room, signal)).await.unwrap();
        // As after a lost reply.
        store.commit(storing(room, signal)).await.unwrap();
    }
    assert_eq!(store.pending_signals(run.id).await.unwrap(), signals, "in order, and each once");
    assert!(journal(&store, room).await.iter().all(|event| event.run_id == Some(run.id)), "no event of its own");
}

async fn a_signal_is_settled_with_the_events_that_it_causes(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    let signal = Signal::new(run.id, forget());
    store.commit(storing(room, &signal)).await.unwrap();
    assert_eq!(store.signal_outcome(signal.id).await.unwrap(), None);
    let settle = |outcome| Commit {
        room_id: room,
        guard: held(&claim),
        events: vec![run.says("forgotten")],
        changes: vec![settling(&signal, outcome)],
    };
    store.commit(settle(SignalOutcome::CarriedOut)).await.unwrap();
    assert!(store.pending_signals(run.id).await.unwrap().is_empty());
    store.commit(settle(SignalOutcome::NotPending)).await.unwrap();
    assert_eq!(store.signal_outcome(signal.id).await.unwrap(), Some(SignalOutcome::CarriedOut), "the first one counts");
}

async fn invariant_11_fence_only_the_holder_settles_a_signal(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    let signal = Signal::new(run.id, forget());
    store.commit(storing(room, &signal)).await.unwrap();
    let guard = Guard::Lease { run_id: run.id, fence: claim.fence + 1 };
    let changes = vec![settling(&signal, SignalOutcome::CarriedOut)];
    let refused = store.commit(Commit { room_id: room, guard, events: Vec::new(), changes }).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    assert_eq!(store.signal_outcome(signal.id).await.unwrap(), None);
}

async fn a_signal_to_a_run_that_has_ended_is_refused(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    store.commit(run.ending(room, held(&claim))).await.unwrap();
    let signal = Signal::new(run.id, forget());
    let refused = store.commit(storing(room, &signal)).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    assert!(matches!(store.signal_outcome(signal.id).await, Err(StoreError::NotFound)));
}

async fn the_end_of_a_run_settles_its_signals(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    let (_, other, _) = claimed(&store).await;
    let signal = Signal::new(run.id, forget());
    store.commit(storing(room, &signal)).await.unwrap();
    let elsewhere = Signal::new(other.id, forget());
    let other_room = store.run(&me(), other.id).await.unwrap().room_id;
    store.commit(storing(other_room, &elsewhere)).await.unwrap();
    store.commit(run.ending(room, held(&claim))).await.unwrap();
    assert_eq!(store.signal_outcome(signal.id).await.unwrap(), Some(SignalOutcome::RunEnded));
    assert_eq!(store.signal_outcome(elsewhere.id).await.unwrap(), None, "signals of other runs stay");
}

async fn a_run_cannot_end_before_a_message_that_was_sent_to_it_is_settled(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    let signal = Signal::new(run.id, steer());
    store.commit(storing(room, &signal)).await.unwrap();
    let refused = store.commit(run.ending(room, held(&claim))).await;
    assert!(matches!(refused, Err(StoreError::UnsettledSignals)), "{refused:?}");
    assert_eq!(store.unfinished_runs(&me(), room).await.unwrap(), [run.id], "nothing of the commit is stored");
    let mut ending = run.ending(room, held(&claim));
    ending.changes.insert(0, settling(&signal, SignalOutcome::Queued));
    store.commit(ending).await.unwrap();
    assert_eq!(store.signal_outcome(signal.id).await.unwrap(), Some(SignalOutcome::Queued));
}

async fn only_so_many_signals_may_wait(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    let signals: Vec<Signal> = (0..=MAX_PENDING_SIGNALS).map(|_| Signal::new(run.id, forget())).collect();
    let (last, first) = signals.split_last().unwrap();
    for signal in first {
        store.commit(storing(room, signal)).await.unwrap();
    }
    let refused = store.commit(storing(room, last)).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    let changes = vec![settling(&first[0], SignalOutcome::CarriedOut)];
    store.commit(Commit { room_id: room, guard: held(&claim), events: Vec::new(), changes }).await.unwrap();
    store.commit(storing(room, last)).await.unwrap();
}

async fn old_settled_signals_are_deleted_in_batches(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    let (_, other, _) = claimed(&store).await;
    let open = Signal::new(other.id, forget());
    store.commit(storing(store.run(&me(), other.id).await.unwrap().room_id, &open)).await.unwrap();
    let mut settled = Vec::new();
    while settled.len() <= usize::try_from(SETTLED_SIGNALS_PER_DELETE).unwrap() {
        let batch: Vec<Signal> = (0..MAX_PENDING_SIGNALS).map(|_| Signal::new(run.id, forget())).collect();
        let changes = batch.iter().map(|signal| RowChange::StoreSignal { signal: signal.clone() }).collect();
        store.commit(Commit { room_id: room, guard: Guard::None, events: Vec::new(), changes }).await.unwrap();
        let changes = batch.iter().map(|signal| settling(signal, SignalOutcome::CarriedOut)).collect();
        store.commit(Commit { room_id: room, guard: held(&claim), events: Vec::new(), changes }).await.unwrap();
        settled.extend(batch);
    }
    assert_eq!(store.delete_settled_signals(LEASE).await.unwrap(), 0, "young ones stay");
    let rest = settled.len() as u64 - SETTLED_SIGNALS_PER_DELETE;
    assert_eq!(store.delete_settled_signals(Duration::ZERO).await.unwrap(), SETTLED_SIGNALS_PER_DELETE);
    assert_eq!(store.delete_settled_signals(Duration::ZERO).await.unwrap(), rest);
    assert!(matches!(store.signal_outcome(settled[0].id).await, Err(StoreError::NotFound)));
    assert_eq!(store.signal_outcome(open.id).await.unwrap(), None, "an open signal stays");
}

/// On PostgreSQL from another server. No poll wakes the sender while the notifications work.
async fn the_sender_is_notified_when_its_signal_is_settled(database: TestDatabase) {
    let one = database.open().await;
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    let sender: Store = two.as_deref().unwrap_or(&one).clone();
    let (room, run, claim) = claimed(&one).await;
    let (signal, last) = (Signal::new(run.id, forget()), Signal::new(run.id, forget()));
    let watch = sender.watch_settled_signals(run.id);
    sender.commit(storing(room, &signal)).await.unwrap();
    sender.commit(storing(room, &last)).await.unwrap();
    let changes = vec![settling(&signal, SignalOutcome::CarriedOut)];
    one.commit(Commit { room_id: room, guard: held(&claim), events: Vec::new(), changes }).await.unwrap();
    within(watch.changed()).await;
    assert_eq!(sender.signal_outcome(signal.id).await.unwrap(), Some(SignalOutcome::CarriedOut));
    one.commit(run.ending(room, held(&claim))).await.unwrap();
    within(watch.changed()).await;
    assert_eq!(sender.signal_outcome(last.id).await.unwrap(), Some(SignalOutcome::RunEnded));
}

async fn the_holder_finds_its_runs_with_signals(database: TestDatabase) {
    let store = database.open().await;
    let (room, run, claim) = claimed(&store).await;
    claimed(&store).await;
    let signal = Signal::new(run.id, forget());
    assert!(store.runs_with_signals("w").await.unwrap().is_empty());
    store.commit(storing(room, &signal)).await.unwrap();
    assert_eq!(store.runs_with_signals("w").await.unwrap(), [run.id]);
    assert!(store.runs_with_signals("other").await.unwrap().is_empty());
    assert_eq!(store.held_runs(&me(), room).await.unwrap().len(), 1);
    let changes = vec![settling(&signal, SignalOutcome::CarriedOut)];
    store.commit(Commit { room_id: room, guard: held(&claim), events: Vec::new(), changes }).await.unwrap();
    assert!(store.runs_with_signals("w").await.unwrap().is_empty());
    // A queued run is not held: it reads the state of its room when it starts.
    let queued = TestRun::queued(&store, room).await;
    assert!(!store.held_runs(&me(), room).await.unwrap().iter().any(|(run, _)| *run == queued.id));
    store.renew_leases("w", LEASE).await.unwrap();
}

/// On PostgreSQL from two servers.
async fn invariant_23_signals_are_durable_none_stays_open_when_its_run_ends_at_the_same_time(database: TestDatabase) {
    const ROUNDS: usize = 20;
    let one = database.open().await;
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    let other: Store = two.as_deref().unwrap_or(&one).clone();
    for _ in 0..ROUNDS {
        let (room, run, claim) = claimed(&one).await;
        let signals: Vec<Signal> = (0..8).map(|_| Signal::new(run.id, forget())).collect();
        let storing = signals.iter().map(|signal| other.commit(storing(room, signal)));
        let (stored, ended) = within(async {
            tokio::join!(futures_util::future::join_all(storing), one.commit(run.ending(room, held(&claim))))
        })
        .await;
        ended.unwrap();
        for (signal, stored) in signals.iter().zip(stored) {
            match stored {
                Ok(_) => {
                    let outcome = one.signal_outcome(signal.id).await.unwrap();
                    assert_eq!(outcome, Some(SignalOutcome::RunEnded), "an accepted signal has an outcome");
                }
                Err(error) => assert!(matches!(error, StoreError::Fenced), "{error}"),
            }
        }
    }
}

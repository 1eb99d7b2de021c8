//! Guards of a commit: the lease, the queue, an idle room (invariants 3 and 11).

use crate::scene::{LEASE, TestRun, append, claim, held, journal, me, room, together};
use domain::run::RunStatus;
use store::{
    StoreError,
    journal::{Commit, Guard, RowChange, StopRequest},
    queue::DeadLeases,
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        invariant_11_fence_only_the_current_lease_may_append,
        invariant_11_fence_nothing_follows_the_end_of_a_run,
        invariant_11_fence_nothing_follows_the_end_within_the_same_group,
        invariant_03_one_end_of_two_concurrent_ends_one_wins,
        an_unclaimed_run_can_be_ended,
        a_room_without_unfinished_runs_is_idle,
        only_one_commit_of_a_group_gets_an_idle_room,
        stop_earlier_runs_stops_only_runs_queued_before;
}

async fn invariant_11_fence_only_the_current_lease_may_append(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let unheld = Guard::Lease { run_id: run.id, fence: 0 };
    let append_as = |guard: Guard| Commit { guard, ..append(room, vec![run.says("said")]) };
    assert!(matches!(store.commit(append_as(unheld)).await, Err(StoreError::Fenced)), "the run is not claimed yet");

    let first = claim(&store, "one").await.remove(0);
    assert_eq!((first.run_id, first.queued_seq, first.fence, first.stop), (run.id, 1, 1, None));
    store.commit(append_as(held(&first))).await.unwrap();

    let second = store.take_over("two", DeadLeases::ExpiredOrOfOtherHolders, LEASE).await.unwrap().remove(0);
    assert_eq!(second.fence, 2);
    assert!(matches!(store.commit(append_as(held(&first))).await, Err(StoreError::Fenced)));
    assert!(matches!(store.commit(run.ending(room, held(&first))).await, Err(StoreError::Fenced)));
    store.commit(append_as(held(&second))).await.unwrap();
    store.commit(run.ending(room, held(&second))).await.unwrap();
    assert_eq!(journal(&store, room).await.len(), 4);
}

async fn invariant_11_fence_nothing_follows_the_end_of_a_run(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    store.commit(run.ending(room, held(&lease))).await.unwrap();
    for guard in [held(&lease), Guard::Unclaimed { run_id: run.id }] {
        let late = Commit { guard, ..append(room, vec![run.says("late")]) };
        assert!(matches!(store.commit(late).await, Err(StoreError::Fenced)));
    }
    let events = journal(&store, room).await;
    assert!(events.last().unwrap().kind.ends_a_run());
    let stored = store.run(&me(), run.id).await.unwrap();
    assert_eq!((stored.status, stored.duration_ms), (RunStatus::Completed, Some(5)));
    assert!(stored.ended_at.is_some());
}

async fn invariant_11_fence_nothing_follows_the_end_within_the_same_group(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    let delta = |text| Commit { guard: held(&lease), ..append(room, vec![run.says(text)]) };
    let outcomes = together(&store, vec![delta("a"), run.ending(room, held(&lease)), delta("late")]).await;
    assert!(matches!(outcomes[..], [Ok(_), Ok(_), Err(StoreError::Fenced)]));
    assert!(journal(&store, room).await.last().unwrap().kind.ends_a_run());
}

async fn invariant_03_one_end_of_two_concurrent_ends_one_wins(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    let outcomes = together(&store, (0..4).map(|_| run.ending(room, held(&lease))).collect()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let ends = journal(&store, room).await.iter().filter(|event| event.kind.ends_a_run()).count();
    assert_eq!(ends, 1);
}

async fn an_unclaimed_run_can_be_ended(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (claimed, waiting) = (TestRun::queued(&store, room).await, TestRun::queued(&store, room).await);
    let lease = claim(&store, "w").await.remove(0);
    assert_eq!(lease.run_id, claimed.id);
    let unclaimed = |run: &TestRun| Guard::Unclaimed { run_id: run.id };
    assert!(matches!(store.commit(claimed.ending(room, unclaimed(&claimed))).await, Err(StoreError::Fenced)));
    store.commit(waiting.ending(room, unclaimed(&waiting))).await.unwrap();
    assert_eq!(store.unfinished_runs(&me(), room).await.unwrap(), [claimed.id]);
    assert!(matches!(store.commit(waiting.ending(room, unclaimed(&waiting))).await, Err(StoreError::Fenced)));
}

async fn a_room_without_unfinished_runs_is_idle(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let idle = || Commit { guard: Guard::RoomIdle, ..append(room, vec![crate::scene::says("idle")]) };
    store.commit(idle()).await.unwrap();
    TestRun::queued(&store, other).await;
    store.commit(idle()).await.unwrap();
    let run = TestRun::queued(&store, room).await;
    assert!(matches!(store.commit(idle()).await, Err(StoreError::RoomBusy)), "queued");
    let claims = claim(&store, "w").await;
    assert!(matches!(store.commit(idle()).await, Err(StoreError::RoomBusy)), "running");
    let lease = claims.iter().find(|claim| claim.run_id == run.id).unwrap();
    let outcomes = together(&store, vec![run.ending(room, held(lease)), idle()]).await;
    assert!(outcomes.iter().all(Result::is_ok), "the room is idle again, also within the same group");
}

async fn only_one_commit_of_a_group_gets_an_idle_room(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (one, two) = (TestRun::new(), TestRun::new());
    let ask = |run: &TestRun| Commit { guard: Guard::RoomIdle, ..run.queueing(room) };
    let outcomes = together(&store, vec![ask(&one), ask(&two)]).await;
    assert!(matches!(outcomes[..], [Ok(_), Err(StoreError::RoomBusy)]));
    assert_eq!(store.unfinished_runs(&me(), room).await.unwrap(), [one.id]);
}

async fn stop_earlier_runs_stops_only_runs_queued_before(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let (running, waiting, elsewhere) = (
        TestRun::queued(&store, room).await,
        TestRun::queued(&store, room).await,
        TestRun::queued(&store, other).await,
    );
    let claims = claim(&store, "w").await;
    assert_eq!(claims.len(), 2);
    let newer = TestRun::new();
    let mut commit = newer.queueing(room);
    commit.changes.insert(0, RowChange::StopEarlierRuns { stop: StopRequest::Interrupt });
    store.commit(commit).await.unwrap();

    let mut asked: Vec<_> = store.renew_leases("w", LEASE).await.unwrap();
    asked.sort_by_key(|claim| claim.run_id);
    let stops: Vec<_> = asked.iter().map(|claim| (claim.run_id, claim.stop)).collect();
    assert_eq!(stops, [(running.id, Some(StopRequest::Interrupt)), (elsewhere.id, None)]);
    let queued: Vec<_> = store.stopped_before_claim().await.unwrap();
    assert_eq!(
        queued.iter().map(|claim| (claim.run_id, claim.stop)).collect::<Vec<_>>(),
        [(waiting.id, Some(StopRequest::Interrupt))]
    );
    assert_eq!(store.unfinished_runs(&me(), room).await.unwrap(), [running.id, waiting.id, newer.id]);
}

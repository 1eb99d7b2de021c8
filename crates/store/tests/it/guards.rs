//! What must hold for a commit: the lease, the queue, an idle room (invariants 3 and 11).

use crate::scene::{LEASE, Run, append, claim, held, journal, me, room, together};
use domain::run::RunStatus;
use store::{
    Error,
    journal::{Change, Commit, Guard, Stop},
    queue::Dead,
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        invariant_11_fence_only_the_current_lease_may_append,
        invariant_11_fence_nothing_follows_the_end_of_a_run,
        invariant_11_fence_nothing_follows_the_end_within_the_same_group,
        invariant_03_one_end_two_ends_at_once_leave_one,
        an_unclaimed_run_may_be_ended_from_the_queue,
        an_idle_room_is_one_without_unfinished_runs,
        two_who_want_an_idle_room_in_one_group_do_not_both_get_it,
        stop_earlier_asks_only_what_was_queued_before;
}

async fn invariant_11_fence_only_the_current_lease_may_append(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = Run::queued(&store, room).await;
    let unheld = Guard::Lease { run_id: run.id, fence: 0 };
    let append_as = |guard: Guard| Commit { guard, ..append(room, vec![run.says("said")]) };
    assert!(matches!(store.commit(append_as(unheld)).await, Err(Error::Fenced)), "nobody holds it yet");

    let first = claim(&store, "one").await.remove(0);
    assert_eq!((first.run_id, first.queued_seq, first.fence, first.stop), (run.id, 1, 1, None));
    store.commit(append_as(held(&first))).await.unwrap();

    let second = store.take_over("two", Dead::AllOthers, LEASE).await.unwrap().remove(0);
    assert_eq!(second.fence, 2);
    assert!(matches!(store.commit(append_as(held(&first))).await, Err(Error::Fenced)));
    assert!(matches!(store.commit(run.ending(room, held(&first))).await, Err(Error::Fenced)));
    store.commit(append_as(held(&second))).await.unwrap();
    store.commit(run.ending(room, held(&second))).await.unwrap();
    assert_eq!(journal(&store, room).await.len(), 4);
}

async fn invariant_11_fence_nothing_follows_the_end_of_a_run(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = Run::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    store.commit(run.ending(room, held(&lease))).await.unwrap();
    for guard in [held(&lease), Guard::Unclaimed { run_id: run.id }] {
        let late = Commit { guard, ..append(room, vec![run.says("late")]) };
        assert!(matches!(store.commit(late).await, Err(Error::Fenced)));
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
    let run = Run::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    let delta = |text| Commit { guard: held(&lease), ..append(room, vec![run.says(text)]) };
    let outcomes = together(&store, vec![delta("a"), run.ending(room, held(&lease)), delta("late")]).await;
    assert!(matches!(outcomes[..], [Ok(_), Ok(_), Err(Error::Fenced)]));
    assert!(journal(&store, room).await.last().unwrap().kind.ends_a_run());
}

async fn invariant_03_one_end_two_ends_at_once_leave_one(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = Run::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    let outcomes = together(&store, (0..4).map(|_| run.ending(room, held(&lease))).collect()).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    let ends = journal(&store, room).await.iter().filter(|event| event.kind.ends_a_run()).count();
    assert_eq!(ends, 1);
}

async fn an_unclaimed_run_may_be_ended_from_the_queue(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (claimed, waiting) = (Run::queued(&store, room).await, Run::queued(&store, room).await);
    let lease = claim(&store, "w").await.remove(0);
    assert_eq!(lease.run_id, claimed.id);
    let unclaimed = |run: &Run| Guard::Unclaimed { run_id: run.id };
    assert!(matches!(store.commit(claimed.ending(room, unclaimed(&claimed))).await, Err(Error::Fenced)));
    store.commit(waiting.ending(room, unclaimed(&waiting))).await.unwrap();
    assert_eq!(store.unfinished(&me(), room).await.unwrap(), [claimed.id]);
    assert!(matches!(store.commit(waiting.ending(room, unclaimed(&waiting))).await, Err(Error::Fenced)));
}

async fn an_idle_room_is_one_without_unfinished_runs(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let idle = || Commit { guard: Guard::RoomIdle, ..append(room, vec![crate::scene::says("idle")]) };
    store.commit(idle()).await.unwrap();
    Run::queued(&store, other).await;
    store.commit(idle()).await.unwrap();
    let run = Run::queued(&store, room).await;
    assert!(matches!(store.commit(idle()).await, Err(Error::RoomBusy)), "queued");
    let claims = claim(&store, "w").await;
    assert!(matches!(store.commit(idle()).await, Err(Error::RoomBusy)), "running");
    let lease = claims.iter().find(|claim| claim.run_id == run.id).unwrap();
    let outcomes = together(&store, vec![run.ending(room, held(lease)), idle()]).await;
    assert!(outcomes.iter().all(Result::is_ok), "idle again, within the same group too");
}

async fn two_who_want_an_idle_room_in_one_group_do_not_both_get_it(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (one, two) = (Run::new(), Run::new());
    let ask = |run: &Run| Commit { guard: Guard::RoomIdle, ..run.queueing(room) };
    let outcomes = together(&store, vec![ask(&one), ask(&two)]).await;
    assert!(matches!(outcomes[..], [Ok(_), Err(Error::RoomBusy)]));
    assert_eq!(store.unfinished(&me(), room).await.unwrap(), [one.id]);
}

async fn stop_earlier_asks_only_what_was_queued_before(database: TestDatabase) {
    let store = database.open().await;
    let (room, other) = (room(&store).await, room(&store).await);
    let (running, waiting, elsewhere) =
        (Run::queued(&store, room).await, Run::queued(&store, room).await, Run::queued(&store, other).await);
    let claims = claim(&store, "w").await;
    assert_eq!(claims.len(), 2);
    let newer = Run::new();
    let mut commit = newer.queueing(room);
    commit.changes.insert(0, Change::StopEarlier { stop: Stop::Interrupt });
    store.commit(commit).await.unwrap();

    let mut asked: Vec<_> = store.renew("w", LEASE).await.unwrap();
    asked.sort_by_key(|claim| claim.run_id);
    let stops: Vec<_> = asked.iter().map(|claim| (claim.run_id, claim.stop)).collect();
    assert_eq!(stops, [(running.id, Some(Stop::Interrupt)), (elsewhere.id, None)]);
    let queued: Vec<_> = store.stopped_in_queue().await.unwrap();
    assert_eq!(
        queued.iter().map(|claim| (claim.run_id, claim.stop)).collect::<Vec<_>>(),
        [(waiting.id, Some(Stop::Interrupt))]
    );
    assert_eq!(store.unfinished(&me(), room).await.unwrap(), [running.id, waiting.id, newer.id]);
}

//! The queue: claims, leases, and the runs of dead workers (invariants 4 and 11).

use crate::scene::{LEASE, TestRun, append, by, claim, held, journal, me, room, room_of, says, stranger, within};
use domain::{
    event::{EventType, RunStarted},
    ids::{RoomId, RunId},
    owner::Owner,
    run::RunStatus,
};
use std::{collections::HashSet, time::Duration};
use store::{
    Store, StoreError,
    journal::{ClaimOffer, Commit, Guard, RowChange, SeqRef, StopRequest},
    queue::{Claim, ClaimLimits, DeadLeases},
};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;

contract! {
    many threads:
        invariant_11_fence_two_workers_never_claim_the_same_run,
        concurrent_claims_renewals_stops_and_commits_do_not_deadlock;
    one thread:
        runs_of_a_room_are_claimed_one_after_another_in_order,
        runs_of_one_cell_are_claimed_side_by_side_and_cells_one_after_another,
        a_queued_run_is_moved_and_one_that_is_held_is_not,
        runs_of_different_rooms_are_claimed_in_parallel,
        a_claim_respects_its_limit,
        invariant_28_shares_workspaces_take_turns_and_none_takes_all_slots,
        a_run_is_claimed_and_started_with_the_commit_that_queues_it,
        a_claim_with_the_commit_leaves_the_rest_of_the_cell_to_the_queue,
        renewal_returns_held_runs_and_stop_requests,
        only_dead_leases_are_taken_over,
        a_run_stopped_in_the_queue_is_not_claimed,
        the_first_stop_request_wins,
        workers_are_notified_when_the_queue_has_work;
}

fn ids(claims: &[Claim]) -> Vec<RunId> {
    claims.iter().map(|claim| claim.run_id).collect()
}

async fn runs_of_a_room_are_claimed_one_after_another_in_order(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(TestRun::queued(&store, room).await);
    }
    for (n, run) in runs.iter().enumerate() {
        let claims = claim(&store, "w").await;
        assert_eq!(ids(&claims), [run.id]);
        assert_eq!((claims[0].room_id, &claims[0].owner, claims[0].fence), (room, &me(), 1));
        assert!(claim(&store, "w").await.is_empty(), "one run at a time");
        assert!(claim(&store, "other").await.is_empty(), "for any worker");
        assert_eq!(store.unfinished_runs(&me(), room).await.unwrap().len(), 4 - n);
        store.commit(run.ending(room, held(&claims[0]))).await.unwrap();
    }
    assert!(claim(&store, "w").await.is_empty());
}

async fn a_queued_run_is_moved_and_one_that_is_held_is_not(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(TestRun::queued(&store, room).await);
    }
    let cells: Vec<u64> = store.tape_with_runs(room).await.unwrap().1.iter().map(|run| run.cell).collect();
    let moving = |moves: &[(usize, usize)]| Commit {
        room_id: room,
        guard: Guard::None,
        events: Vec::new(),
        changes: moves.iter().map(|&(run, to)| RowChange::MoveRun { run_id: runs[run].id, cell: cells[to] }).collect(),
    };
    store.commit(moving(&[(2, 1), (1, 2)])).await.unwrap();
    let order: Vec<RunId> = store.tape_with_runs(room).await.unwrap().1.iter().map(|run| run.run_id).collect();
    assert_eq!(order, [runs[0].id, runs[2].id, runs[1].id]);
    let first = claim(&store, "w").await;
    assert_eq!(ids(&first), [runs[0].id]);
    let refused = store.commit(moving(&[(0, 2), (1, 0)])).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    store.commit(runs[0].ending(room, held(&first[0]))).await.unwrap();
    let next = claim(&store, "w").await;
    assert_eq!(ids(&next), [runs[2].id], "the moved run is next, and nothing of the refused commit is stored");
    assert!(next[0].posts_before() == next[0].queued_seq);
    store.commit(runs[2].ending(room, held(&next[0]))).await.unwrap();
    let last = claim(&store, "w").await;
    assert_eq!((ids(&last), last[0].posts_before()), (vec![runs[1].id], cells[2]), "it reads what went before it");
}

async fn runs_of_one_cell_are_claimed_side_by_side_and_cells_one_after_another(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut cells = vec![TestRun::queued_in_one_cell(&store, room, 3).await];
    cells.push(vec![TestRun::queued(&store, room).await]);
    cells.push(TestRun::queued_in_one_cell(&store, room, 2).await);
    for cell in &cells {
        // Two workers share a cell.
        let first = store.claim_runs("w", 1, LEASE).await.unwrap();
        let mut claims = claim(&store, "other").await;
        claims.extend(first);
        let mut expected: Vec<RunId> = cell.iter().map(|run| run.id).collect();
        let mut claimed = ids(&claims);
        expected.sort_unstable();
        claimed.sort_unstable();
        assert_eq!(claimed, expected);
        let held_runs: HashSet<RunId> =
            store.held_runs(&me(), room).await.unwrap().into_iter().map(|(run, _)| run).collect();
        assert_eq!(held_runs, expected.iter().copied().collect());
        for lease in &claims {
            assert!(claim(&store, "w").await.is_empty(), "the next cell waits for the last run of this one");
            let run = cell.iter().find(|run| run.id == lease.run_id).unwrap();
            store.commit(run.ending(room, held(lease))).await.unwrap();
        }
    }
    assert!(store.unfinished_runs(&me(), room).await.unwrap().is_empty());
    journal(&store, room).await;
}

/// The first run is claimed with its commit, the others of its cell from the queue, and a later post waits.
async fn a_claim_with_the_commit_leaves_the_rest_of_the_cell_to_the_queue(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (first, second) = (TestRun::new(), TestRun::new());
    let mut commit = offering(&first, room, "w");
    let beside = second.queueing(room);
    commit.events.extend(beside.events);
    commit.changes.extend(beside.changes.into_iter().map(|change| match change {
        RowChange::QueueRun { owner, run_id, agent_id, message_id, claim, .. } => {
            let (seq, cell) = (SeqRef::Event(1), SeqRef::Event(0));
            RowChange::QueueRun { owner, run_id, agent_id, message_id, place: None, seq, cell, claim }
        }
        other => other,
    }));
    let notify = store.queue_notify().clone();
    assert_eq!(store.commit(commit).await.unwrap().claimed_fence, Some(1));
    within(notify.notified()).await;
    assert_eq!(ids(&claim(&store, "w").await), [second.id]);
    let third = TestRun::new();
    assert_eq!(store.commit(offering(&third, room, "w")).await.unwrap().claimed_fence, None);
    assert!(claim(&store, "w").await.is_empty());
}

async fn runs_of_different_rooms_are_claimed_in_parallel(database: TestDatabase) {
    let store = database.open().await;
    let mut firsts = HashSet::new();
    for _ in 0..5 {
        let room = room(&store).await;
        firsts.insert(TestRun::queued(&store, room).await.id);
        TestRun::queued(&store, room).await;
    }
    let claims = claim(&store, "w").await;
    assert_eq!(ids(&claims).into_iter().collect::<HashSet<_>>(), firsts);
}

async fn a_claim_respects_its_limit(database: TestDatabase) {
    let store = database.open().await;
    for _ in 0..6 {
        let room = room(&store).await;
        TestRun::queued(&store, room).await;
    }
    assert!(store.claim_runs("w", 0, LEASE).await.unwrap().is_empty());
    let mut all = HashSet::new();
    for expected in [4, 2, 0] {
        let claims = store.claim_runs("w", 4, LEASE).await.unwrap();
        assert_eq!(claims.len(), expected);
        all.extend(ids(&claims));
    }
    assert_eq!(all.len(), 6);
}

/// A workspace with a long queue does not hold up another one, and does not get more slots of a worker than its share.
async fn invariant_28_shares_workspaces_take_turns_and_none_takes_all_slots(database: TestDatabase) {
    let store = database.open().await;
    for _ in 0..6 {
        let room = room(&store).await;
        TestRun::queued(&store, room).await;
    }
    let mut late = Vec::new();
    for _ in 0..2 {
        let (room, run) = (room_of(&store, &stranger()).await, TestRun::new());
        store.commit(run.queueing_for(&stranger(), room)).await.unwrap();
        late.push(run.id);
    }
    assert_eq!(store.queue_and_budgets(&me(), 100).await.unwrap(), (6, 0));
    assert_eq!(store.queue_and_budgets(&me(), 4).await.unwrap(), (4, 0));
    let claimed = |claims: &[Claim]| {
        let of = |owner: &Owner| claims.iter().filter(|claim| claim.owner == *owner).count();
        (of(&me()), of(&stranger()))
    };
    let share = |total| ClaimLimits { total, per_workspace: 3, depth: 0 };
    let first = store.claim_runs("w", share(3), LEASE).await.unwrap();
    assert_eq!(claimed(&first), (2, 1), "one each, then the older one");
    let second = store.claim_runs("w", share(1), LEASE).await.unwrap();
    assert_eq!(ids(&second), [late[1]], "the workspace with fewer runs on this worker comes first");
    let third = store.claim_runs("w", share(10), LEASE).await.unwrap();
    assert_eq!(claimed(&third), (1, 0), "up to the share of three");
    assert!(store.claim_runs("w", share(10), LEASE).await.unwrap().is_empty());
    let elsewhere = store.claim_runs("other", share(10), LEASE).await.unwrap();
    assert_eq!(claimed(&elsewhere), (3, 0), "another worker has slots of its own");
}

fn offering(run: &TestRun, room: RoomId, holder: &str) -> Commit {
    let mut commit = run.queueing(room);
    for change in &mut commit.changes {
        if let RowChange::QueueRun { claim, .. } = change {
            let started = RunStarted { provider: "p".into(), model: None };
            *claim = Some(ClaimOffer { holder: holder.into(), lease: LEASE, start_events: vec![run.event(started)] });
        }
    }
    commit
}

/// A worker that offers to start a run holds it after the commit, unless the room has another unfinished run.
async fn a_run_is_claimed_and_started_with_the_commit_that_queues_it(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (first, second) = (TestRun::new(), TestRun::new());
    let committed = store.commit(offering(&first, room, "w")).await.unwrap();
    let again = store.commit(offering(&second, room, "w")).await.unwrap();
    assert_eq!((committed.claimed_fence, again.claimed_fence), (Some(1), None));
    let started = store.run(&me(), first.id).await.unwrap();
    assert_eq!((started.status, started.started_at), (RunStatus::Running, Some(committed.at)));
    let waiting = store.run(&me(), second.id).await.unwrap();
    assert_eq!((waiting.status, waiting.started_at), (RunStatus::Queued, None));
    assert!(claim(&store, "other").await.is_empty(), "the first run is held, the second waits for it");
    let held = store.renew_leases("w", LEASE).await.unwrap();
    assert_eq!((ids(&held), held[0].fence, held[0].queued_seq), (vec![first.id], 1, committed.first_seq));
    // The same events again, as after a lost reply.
    let mut repeated = offering(&first, room, "w");
    let queued = journal(&store, room).await.into_iter().find(|event| event.run_id == Some(first.id)).unwrap();
    repeated.events[0].id = queued.id;
    let repeated = store.commit(repeated).await.unwrap();
    assert_eq!((repeated.first_seq, repeated.claimed_fence), (committed.first_seq, Some(1)));
    let told: Vec<_> = journal(&store, room).await.into_iter().filter(|event| event.run_id.is_some()).collect();
    let told: Vec<_> = told.iter().map(|event| (event.seq, event.kind, event.run_id.unwrap())).collect();
    let [queued, started] = [EventType::RunQueued, EventType::RunStarted];
    let at = committed.first_seq;
    assert_eq!(told, [(at, queued, first.id), (at + 1, started, first.id), (at + 2, queued, second.id)]);
    store.commit(first.ending(room, self::held(&held[0]))).await.unwrap();
    assert_eq!(ids(&claim(&store, "other").await), [second.id]);
}

async fn invariant_11_fence_two_workers_never_claim_the_same_run(database: TestDatabase) {
    const ROOMS: usize = 8;
    const RUNS: usize = 6;
    let one = database.open().await;
    // Two servers on PostgreSQL; on SQLite two workers of one server.
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    for _ in 0..ROOMS {
        let room = room(&one).await;
        for _ in 0..RUNS {
            TestRun::queued(&one, room).await;
        }
    }
    let mut workers = JoinSet::new();
    for n in 0..4 {
        let store: Store = if n % 2 == 0 { (*one).clone() } else { two.as_deref().unwrap_or(&one).clone() };
        workers.spawn(async move { finish_runs(&store, &format!("worker {n}"), ROOMS * RUNS).await });
    }
    let mut order: Vec<(RoomId, u64, RunId)> = Vec::new();
    while let Some(done) = within(workers.join_next()).await {
        order.extend(done.unwrap());
    }
    let distinct: HashSet<RunId> = order.iter().map(|(_, _, run)| *run).collect();
    assert_eq!((distinct.len(), order.len()), (ROOMS * RUNS, ROOMS * RUNS), "every run once");
    for room in order.iter().map(|(room, _, _)| *room).collect::<HashSet<_>>() {
        let events = journal(&one, room).await;
        let mut ended = events.iter().filter(|event| event.kind.ends_a_run()).map(|event| event.run_id.unwrap());
        let mut queued: Vec<_> = order.iter().filter(|(of, _, _)| *of == room).collect();
        queued.sort_by_key(|(_, seq, _)| *seq);
        assert!(queued.iter().all(|(_, _, run)| ended.next() == Some(*run)), "runs are finished in queue order");
    }
}

/// Claims and ends runs until the queue is empty.
async fn finish_runs(store: &Store, holder: &str, total: usize) -> Vec<(RoomId, u64, RunId)> {
    let mut done = Vec::new();
    for _ in 0..10_000 {
        let claims = store.claim_runs(holder, 2, LEASE).await.unwrap();
        if claims.is_empty() {
            let ended = store::RunFilter {
                status: Some(domain::run::RunStatus::Completed),
                limit: u32::MAX,
                ..store::RunFilter::default()
            };
            if store.runs(&me(), &ended).await.unwrap().len() == total {
                return done;
            }
            tokio::task::yield_now().await;
        }
        for claim in claims {
            let run = TestRun { id: claim.run_id, ..TestRun::new() };
            store.commit(run.ending(claim.room_id, held(&claim))).await.unwrap();
            done.push((claim.room_id, claim.queued_seq, claim.run_id));
        }
    }
    panic!("the queue did not become empty")
}

/// On PostgreSQL each of these locks rows of the queue; in different orders they would deadlock.
async fn concurrent_claims_renewals_stops_and_commits_do_not_deadlock(database: TestDatabase) {
    const ROUNDS: usize = 40;
    let one = database.open().await;
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    let stores = [(*one).clone(), two.as_deref().unwrap_or(&one).clone()];
    let mut rooms = Vec::new();
    for _ in 0..6 {
        rooms.push(room(&one).await);
    }
    let mut tasks: JoinSet<Result<(), StoreError>> = JoinSet::new();
    for (n, store) in stores.iter().cloned().enumerate() {
        let holder = format!("w{n}");
        let (writing, claiming, renewing, stopping) = (store.clone(), store.clone(), store.clone(), store);
        let (all, name) = (rooms.clone(), holder.clone());
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                // Several rooms in one group, each stopping its earlier runs.
                let commits = all.iter().cycle().skip(round).take(all.len()).map(|&room| {
                    let run = TestRun::new();
                    let mut commit = run.queueing(room);
                    commit.changes.insert(0, RowChange::StopEarlierRuns { stop: StopRequest::Interrupt });
                    writing.commit(commit)
                });
                futures_util::future::try_join_all(commits).await?;
            }
            Ok(())
        });
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                for claim in claiming.claim_runs(&name, 3, LEASE).await? {
                    let run = TestRun { id: claim.run_id, ..TestRun::new() };
                    let said = Commit { guard: held(&claim), ..append(claim.room_id, vec![run.says("x")]) };
                    for commit in [said, run.ending(claim.room_id, held(&claim))] {
                        match claiming.commit(commit).await {
                            Ok(_) | Err(StoreError::Fenced) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                for stopped in claiming.stopped_before_claim().await? {
                    let run = TestRun { id: stopped.run_id, ..TestRun::new() };
                    let unclaimed = store::journal::Guard::Unclaimed { run_id: run.id };
                    match claiming.commit(run.ending(stopped.room_id, unclaimed)).await {
                        Ok(_) | Err(StoreError::Fenced) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Ok(())
        });
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                renewing.renew_leases(&holder, LEASE).await?;
                renewing.take_over(&holder, DeadLeases::ExpiredOrOfOtherHolders, LEASE).await?;
            }
            Ok(())
        });
        let all = rooms.clone();
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let mut runs = Vec::new();
                for &room in &all {
                    runs.extend(stopping.unfinished_runs(&me(), room).await?);
                }
                if round % 2 == 0 {
                    runs.reverse();
                }
                stopping.request_stop(&by(&me()), &runs, StopRequest::Cancel).await?;
            }
            Ok(())
        });
    }
    while let Some(done) = within(tasks.join_next()).await {
        done.unwrap().unwrap();
    }
    for room in rooms {
        journal(&one, room).await;
    }
}

async fn renewal_returns_held_runs_and_stop_requests(database: TestDatabase) {
    let store = database.open().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        let room = room(&store).await;
        runs.push((room, TestRun::queued(&store, room).await));
    }
    let claims = claim(&store, "w").await;
    assert_eq!(claims.len(), 4);
    assert!(store.renew_leases("someone else", LEASE).await.unwrap().is_empty());
    let [(_, kept), (_, stopped), (ended_room, ended), (_, lost)] = &runs[..] else { unreachable!() };
    store.request_stop(&by(&me()), &[stopped.id], StopRequest::Cancel).await.unwrap();
    let lease = claims.iter().find(|claim| claim.run_id == ended.id).unwrap();
    store.commit(ended.ending(*ended_room, held(lease))).await.unwrap();
    // One lease expires and is taken over.
    store.renew_leases("w", Duration::ZERO).await.unwrap();
    let taken = within(async {
        loop {
            let taken = store.take_over("other", DeadLeases::Expired, LEASE).await.unwrap();
            if !taken.is_empty() {
                return taken;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(taken.len(), 3);
    assert!(store.renew_leases("w", LEASE).await.unwrap().is_empty(), "a run that was taken over is no longer held");
    let back = store.take_over("w", DeadLeases::ExpiredOrOfOtherHolders, LEASE).await.unwrap();
    assert_eq!(back.len(), 3);
    let renewed = store.renew_leases("w", LEASE).await.unwrap();
    let stops: Vec<_> = [kept, stopped, lost]
        .map(|run| renewed.iter().find(|claim| claim.run_id == run.id).map(|claim| (claim.stop, claim.fence)))
        .to_vec();
    assert_eq!(stops, [Some((None, 3)), Some((Some(StopRequest::Cancel), 3)), Some((None, 3))]);
}

async fn only_dead_leases_are_taken_over(database: TestDatabase) {
    let store = database.open().await;
    let (alive_room, dead_room, waiting_room) = (room(&store).await, room(&store).await, room(&store).await);
    let alive = TestRun::queued(&store, alive_room).await;
    store.claim_runs("alive", 1, LEASE).await.unwrap();
    let dead = TestRun::queued(&store, dead_room).await;
    let first = store.claim_runs("dead", 1, Duration::ZERO).await.unwrap().remove(0);
    assert_eq!(first.run_id, dead.id);
    TestRun::queued(&store, waiting_room).await;
    let taken = within(async {
        loop {
            let taken = store.take_over("me", DeadLeases::Expired, LEASE).await.unwrap();
            if !taken.is_empty() {
                return taken;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(ids(&taken), [dead.id], "neither live leases nor queued runs");
    assert_eq!(taken[0].fence, 2);
    let said = Commit { guard: held(&first), ..append(dead_room, vec![dead.says("from the dead")]) };
    assert!(matches!(store.commit(said).await, Err(StoreError::Fenced)));
    let taken = store.take_over("me", DeadLeases::ExpiredOrOfOtherHolders, LEASE).await.unwrap();
    assert_eq!(ids(&taken), [alive.id], "the runs of all others, not its own");
    assert!(store.take_over("me", DeadLeases::ExpiredOrOfOtherHolders, LEASE).await.unwrap().is_empty());
}

async fn a_run_stopped_in_the_queue_is_not_claimed(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (room(&store).await, room(&store).await);
    let (stopped, behind) = (TestRun::queued(&store, one).await, TestRun::queued(&store, one).await);
    let other = TestRun::queued(&store, two).await;
    store.request_stop(&by(&me()), &[stopped.id, RunId::generate()], StopRequest::Cancel).await.unwrap();
    assert_eq!(ids(&claim(&store, "w").await), [other.id], "a run behind it still waits");
    let waiting = store.stopped_before_claim().await.unwrap();
    assert_eq!((ids(&waiting), waiting[0].stop), (vec![stopped.id], Some(StopRequest::Cancel)));
    let unclaimed = store::journal::Guard::Unclaimed { run_id: stopped.id };
    store.commit(stopped.ending(one, unclaimed)).await.unwrap();
    assert!(store.stopped_before_claim().await.unwrap().is_empty());
    assert_eq!(ids(&claim(&store, "w").await), [behind.id]);
}

async fn the_first_stop_request_wins(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    claim(&store, "w").await;
    store.request_stop(&by(&me()), &[run.id], StopRequest::Interrupt).await.unwrap();
    store.request_stop(&by(&me()), &[run.id], StopRequest::Cancel).await.unwrap();
    assert_eq!(store.renew_leases("w", LEASE).await.unwrap()[0].stop, Some(StopRequest::Interrupt));
}

async fn workers_are_notified_when_the_queue_has_work(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let bell = store.queue_notify().clone();
    let quiet = async || tokio::time::timeout(Duration::ZERO, bell.notified()).await.is_err();
    let begun = TestRun::new();
    store.commit(offering(&begun, room, "w")).await.unwrap();
    assert!(quiet().await, "neither a new room nor a claimed run notifies");
    store.commit(append(room, vec![says("and words are nothing to do")])).await.unwrap();
    assert!(quiet().await);
    let run = TestRun::queued(&store, room).await;
    within(bell.notified()).await;
    store.request_stop(&by(&me()), &[run.id], StopRequest::Cancel).await.unwrap();
    within(bell.notified()).await;
    let unclaimed = store::journal::Guard::Unclaimed { run_id: run.id };
    store.commit(run.ending(room, unclaimed)).await.unwrap();
    within(bell.notified()).await;
}

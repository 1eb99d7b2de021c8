//! The queue: who gets which run, for how long, and what happens to the runs of the dead (invariants 4 and 11).

use crate::scene::{LEASE, Run, append, claim, held, journal, me, room, says, within};
use domain::{
    event::{EventType, RunStarted},
    ids::{RoomId, RunId},
    run::RunStatus,
};
use std::{collections::HashSet, time::Duration};
use store::{
    Error, Store,
    journal::{Change, ClaimFor, Commit, Stop},
    queue::{Claim, Dead},
};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;

contract! {
    many threads:
        invariant_11_fence_two_claimers_never_get_the_same_run,
        claiming_renewing_stopping_and_writing_at_once_do_not_block_each_other;
    one thread:
        runs_of_a_room_are_claimed_one_after_another_in_order,
        several_rooms_are_answered_in_parallel,
        a_claim_takes_no_more_than_it_was_asked_for,
        a_run_is_claimed_and_started_with_the_commit_that_queues_it,
        renewing_tells_what_is_still_held_and_what_shall_stop,
        only_the_dead_are_taken_over,
        a_run_that_was_stopped_in_the_queue_is_not_claimed,
        the_first_reason_to_stop_stays,
        the_bell_rings_for_what_the_queue_has_to_do;
}

fn ids(claims: &[Claim]) -> Vec<RunId> {
    claims.iter().map(|claim| claim.run_id).collect()
}

async fn runs_of_a_room_are_claimed_one_after_another_in_order(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(Run::queued(&store, room).await);
    }
    for (n, run) in runs.iter().enumerate() {
        let claims = claim(&store, "w").await;
        assert_eq!(ids(&claims), [run.id]);
        assert_eq!((claims[0].room_id, &claims[0].owner, claims[0].fence), (room, &me(), 1));
        assert!(claim(&store, "w").await.is_empty(), "one at a time");
        assert!(claim(&store, "other").await.is_empty(), "whoever asks");
        assert_eq!(store.unfinished(&me(), room).await.unwrap().len(), 4 - n);
        store.commit(run.ending(room, held(&claims[0]))).await.unwrap();
    }
    assert!(claim(&store, "w").await.is_empty());
}

async fn several_rooms_are_answered_in_parallel(database: TestDatabase) {
    let store = database.open().await;
    let mut firsts = HashSet::new();
    for _ in 0..5 {
        let room = room(&store).await;
        firsts.insert(Run::queued(&store, room).await.id);
        Run::queued(&store, room).await;
    }
    let claims = claim(&store, "w").await;
    assert_eq!(ids(&claims).into_iter().collect::<HashSet<_>>(), firsts);
}

async fn a_claim_takes_no_more_than_it_was_asked_for(database: TestDatabase) {
    let store = database.open().await;
    for _ in 0..6 {
        let room = room(&store).await;
        Run::queued(&store, room).await;
    }
    assert!(store.claim("w", 0, LEASE).await.unwrap().is_empty());
    let mut all = HashSet::new();
    for expected in [4, 2, 0] {
        let claims = store.claim("w", 4, LEASE).await.unwrap();
        assert_eq!(claims.len(), expected);
        all.extend(ids(&claims));
    }
    assert_eq!(all.len(), 6);
}

fn offering(run: &Run, room: RoomId, holder: &str) -> Commit {
    let mut commit = run.queueing(room);
    for change in &mut commit.changes {
        if let Change::QueueRun { claim, .. } = change {
            let started = RunStarted { provider: "p".into(), model: None };
            *claim = Some(ClaimFor { holder: holder.into(), lease: LEASE, start: vec![run.event(started)] });
        }
    }
    commit
}

/// Whoever offers to begin at once holds the run with the commit, unless another of the room is unfinished.
async fn a_run_is_claimed_and_started_with_the_commit_that_queues_it(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (first, second) = (Run::new(), Run::new());
    let committed = store.commit(offering(&first, room, "w")).await.unwrap();
    let again = store.commit(offering(&second, room, "w")).await.unwrap();
    assert_eq!((committed.claimed, again.claimed), (Some(1), None));
    let started = store.run(&me(), first.id).await.unwrap();
    assert_eq!((started.status, started.started_at), (RunStatus::Running, Some(committed.at)));
    let waiting = store.run(&me(), second.id).await.unwrap();
    assert_eq!((waiting.status, waiting.started_at), (RunStatus::Queued, None));
    assert!(claim(&store, "other").await.is_empty(), "the first is held, the second waits behind it");
    let held = store.renew("w", LEASE).await.unwrap();
    assert_eq!((ids(&held), held[0].fence, held[0].queued_seq), (vec![first.id], 1, committed.first));
    // The same events once more, as after an answer that got lost.
    let mut repeated = offering(&first, room, "w");
    let queued = journal(&store, room).await.into_iter().find(|event| event.run_id == Some(first.id)).unwrap();
    repeated.events[0].id = queued.id;
    let repeated = store.commit(repeated).await.unwrap();
    assert_eq!((repeated.first, repeated.claimed), (committed.first, Some(1)));
    let told: Vec<_> = journal(&store, room).await.into_iter().filter(|event| event.run_id.is_some()).collect();
    let told: Vec<_> = told.iter().map(|event| (event.seq, event.kind, event.run_id.unwrap())).collect();
    let [queued, started] = [EventType::RunQueued, EventType::RunStarted];
    let at = committed.first;
    assert_eq!(told, [(at, queued, first.id), (at + 1, started, first.id), (at + 2, queued, second.id)]);
    store.commit(first.ending(room, self::held(&held[0]))).await.unwrap();
    assert_eq!(ids(&claim(&store, "other").await), [second.id]);
}

async fn invariant_11_fence_two_claimers_never_get_the_same_run(database: TestDatabase) {
    const ROOMS: usize = 8;
    const RUNS: usize = 6;
    let one = database.open().await;
    // Two servers where the engine allows it; on SQLite two workers of one server.
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    for _ in 0..ROOMS {
        let room = room(&one).await;
        for _ in 0..RUNS {
            Run::queued(&one, room).await;
        }
    }
    let mut workers = JoinSet::new();
    for n in 0..4 {
        let store: Store = if n % 2 == 0 { (*one).clone() } else { two.as_deref().unwrap_or(&one).clone() };
        workers.spawn(async move { work_off(&store, &format!("worker {n}"), ROOMS * RUNS).await });
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
        assert!(queued.iter().all(|(_, _, run)| ended.next() == Some(*run)), "answered in the order they were queued");
    }
}

/// Claims and ends runs until nothing is left anywhere.
async fn work_off(store: &Store, holder: &str, total: usize) -> Vec<(RoomId, u64, RunId)> {
    let mut done = Vec::new();
    for _ in 0..10_000 {
        let claims = store.claim(holder, 2, LEASE).await.unwrap();
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
            let run = Run { id: claim.run_id, ..Run::new() };
            store.commit(run.ending(claim.room_id, held(&claim))).await.unwrap();
            done.push((claim.room_id, claim.queued_seq, claim.run_id));
        }
    }
    panic!("the queue does not become empty")
}

/// On PostgreSQL each of these locks rows of the queue; in different orders they would wait for each other in a ring.
async fn claiming_renewing_stopping_and_writing_at_once_do_not_block_each_other(database: TestDatabase) {
    const ROUNDS: usize = 40;
    let one = database.open().await;
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    let stores = [(*one).clone(), two.as_deref().unwrap_or(&one).clone()];
    let mut rooms = Vec::new();
    for _ in 0..6 {
        rooms.push(room(&one).await);
    }
    let mut tasks: JoinSet<Result<(), Error>> = JoinSet::new();
    for (n, store) in stores.iter().cloned().enumerate() {
        let holder = format!("w{n}");
        let (writing, claiming, renewing, stopping) = (store.clone(), store.clone(), store.clone(), store);
        let (all, name) = (rooms.clone(), holder.clone());
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                // Several rooms in one group, each asking its earlier runs to stop.
                let commits = all.iter().cycle().skip(round).take(all.len()).map(|&room| {
                    let run = Run::new();
                    let mut commit = run.queueing(room);
                    commit.changes.insert(0, Change::StopEarlier { stop: Stop::Interrupt });
                    writing.commit(commit)
                });
                futures_util::future::try_join_all(commits).await?;
            }
            Ok(())
        });
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                for claim in claiming.claim(&name, 3, LEASE).await? {
                    let run = Run { id: claim.run_id, ..Run::new() };
                    let said = Commit { guard: held(&claim), ..append(claim.room_id, vec![run.says("x")]) };
                    for commit in [said, run.ending(claim.room_id, held(&claim))] {
                        match claiming.commit(commit).await {
                            Ok(_) | Err(Error::Fenced) => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                for stopped in claiming.stopped_in_queue().await? {
                    let run = Run { id: stopped.run_id, ..Run::new() };
                    let unclaimed = store::journal::Guard::Unclaimed { run_id: run.id };
                    match claiming.commit(run.ending(stopped.room_id, unclaimed)).await {
                        Ok(_) | Err(Error::Fenced) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Ok(())
        });
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                renewing.renew(&holder, LEASE).await?;
                renewing.take_over(&holder, Dead::AllOthers, LEASE).await?;
            }
            Ok(())
        });
        let all = rooms.clone();
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let mut runs = Vec::new();
                for &room in &all {
                    runs.extend(stopping.unfinished(&me(), room).await?);
                }
                if round % 2 == 0 {
                    runs.reverse();
                }
                stopping.ask_to_stop(&runs, Stop::Cancel).await?;
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

async fn renewing_tells_what_is_still_held_and_what_shall_stop(database: TestDatabase) {
    let store = database.open().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        let room = room(&store).await;
        runs.push((room, Run::queued(&store, room).await));
    }
    let claims = claim(&store, "w").await;
    assert_eq!(claims.len(), 4);
    assert!(store.renew("someone else", LEASE).await.unwrap().is_empty());
    let [(_, kept), (_, stopped), (ended_room, ended), (_, lost)] = &runs[..] else { unreachable!() };
    store.ask_to_stop(&[stopped.id], Stop::Cancel).await.unwrap();
    let lease = claims.iter().find(|claim| claim.run_id == ended.id).unwrap();
    store.commit(ended.ending(*ended_room, held(lease))).await.unwrap();
    // One lease runs out and is taken over.
    store.renew("w", Duration::ZERO).await.unwrap();
    let taken = within(async {
        loop {
            let taken = store.take_over("other", Dead::Expired, LEASE).await.unwrap();
            if !taken.is_empty() {
                return taken;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(taken.len(), 3);
    assert!(store.renew("w", LEASE).await.unwrap().is_empty(), "what was taken over is not held any more");
    let back = store.take_over("w", Dead::AllOthers, LEASE).await.unwrap();
    assert_eq!(back.len(), 3);
    let renewed = store.renew("w", LEASE).await.unwrap();
    let stops: Vec<_> = [kept, stopped, lost]
        .map(|run| renewed.iter().find(|claim| claim.run_id == run.id).map(|claim| (claim.stop, claim.fence)))
        .to_vec();
    assert_eq!(stops, [Some((None, 3)), Some((Some(Stop::Cancel), 3)), Some((None, 3))]);
}

async fn only_the_dead_are_taken_over(database: TestDatabase) {
    let store = database.open().await;
    let (alive_room, dead_room, waiting_room) = (room(&store).await, room(&store).await, room(&store).await);
    let alive = Run::queued(&store, alive_room).await;
    store.claim("alive", 1, LEASE).await.unwrap();
    let dead = Run::queued(&store, dead_room).await;
    let first = store.claim("dead", 1, Duration::ZERO).await.unwrap().remove(0);
    assert_eq!(first.run_id, dead.id);
    Run::queued(&store, waiting_room).await;
    let taken = within(async {
        loop {
            let taken = store.take_over("me", Dead::Expired, LEASE).await.unwrap();
            if !taken.is_empty() {
                return taken;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(ids(&taken), [dead.id], "neither the living nor the waiting");
    assert_eq!(taken[0].fence, 2);
    let said = Commit { guard: held(&first), ..append(dead_room, vec![dead.says("from the dead")]) };
    assert!(matches!(store.commit(said).await, Err(Error::Fenced)));
    let taken = store.take_over("me", Dead::AllOthers, LEASE).await.unwrap();
    assert_eq!(ids(&taken), [alive.id], "everyone else's, not its own");
    assert!(store.take_over("me", Dead::AllOthers, LEASE).await.unwrap().is_empty());
}

async fn a_run_that_was_stopped_in_the_queue_is_not_claimed(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (room(&store).await, room(&store).await);
    let (stopped, behind) = (Run::queued(&store, one).await, Run::queued(&store, one).await);
    let other = Run::queued(&store, two).await;
    store.ask_to_stop(&[stopped.id, RunId::generate()], Stop::Cancel).await.unwrap();
    assert_eq!(ids(&claim(&store, "w").await), [other.id], "and who waits behind it still waits");
    let waiting = store.stopped_in_queue().await.unwrap();
    assert_eq!((ids(&waiting), waiting[0].stop), (vec![stopped.id], Some(Stop::Cancel)));
    let unclaimed = store::journal::Guard::Unclaimed { run_id: stopped.id };
    store.commit(stopped.ending(one, unclaimed)).await.unwrap();
    assert!(store.stopped_in_queue().await.unwrap().is_empty());
    assert_eq!(ids(&claim(&store, "w").await), [behind.id]);
}

async fn the_first_reason_to_stop_stays(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = Run::queued(&store, room).await;
    claim(&store, "w").await;
    store.ask_to_stop(&[run.id], Stop::Interrupt).await.unwrap();
    store.ask_to_stop(&[run.id], Stop::Cancel).await.unwrap();
    assert_eq!(store.renew("w", LEASE).await.unwrap()[0].stop, Some(Stop::Interrupt));
}

async fn the_bell_rings_for_what_the_queue_has_to_do(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let bell = store.queue_bell().clone();
    let quiet = async || tokio::time::timeout(Duration::ZERO, bell.notified()).await.is_err();
    let begun = Run::new();
    store.commit(offering(&begun, room, "w")).await.unwrap();
    assert!(quiet().await, "neither a new room nor a run that is claimed already");
    store.commit(append(room, vec![says("and words are nothing to do")])).await.unwrap();
    assert!(quiet().await);
    let run = Run::queued(&store, room).await;
    within(bell.notified()).await;
    store.ask_to_stop(&[run.id], Stop::Cancel).await.unwrap();
    within(bell.notified()).await;
    let unclaimed = store::journal::Guard::Unclaimed { run_id: run.id };
    store.commit(run.ending(room, unclaimed)).await.unwrap();
    within(bell.notified()).await;
}

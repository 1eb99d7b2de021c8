//! A run's status changes only as `RunStatus::may_become` allows; any other change rejects its commit, and only that.

use crate::scene::{TestRun, append, attempt, journal, me, room, says, together};
use domain::{ids::RoomId, run::RunStatus, usage::Usage};
use store::{
    Store, StoreError,
    journal::{Commit, RowChange, RunEnding},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        invariant_03_one_end_a_status_changes_only_as_the_state_machine_allows,
        a_refused_change_does_not_affect_the_rest_of_its_group;
}

/// The changes on the way from queued to `status`.
fn path(status: RunStatus) -> Vec<RunStatus> {
    match status {
        RunStatus::Queued => vec![],
        RunStatus::Running => vec![status],
        _ => vec![RunStatus::Running, status],
    }
}

fn change(run: &TestRun, status: RunStatus) -> RowChange {
    if !status.is_terminal() {
        return RowChange::RunStatus { run_id: run.id, status };
    }
    let ending = RunEnding {
        status,
        usage: Usage::default(),
        cost: None,
        model: None,
        duration_ms: 1,
        error: None,
        receipt: None,
    };
    RowChange::EndRun { run_id: run.id, ending }
}

fn changing(run: &TestRun, room: RoomId, status: RunStatus) -> Commit {
    Commit { changes: vec![change(run, status)], ..append(room, vec![run.says("changes")]) }
}

async fn run_with_status(store: &Store, room: RoomId, status: RunStatus) -> TestRun {
    let run = TestRun::queued(store, room).await;
    for step in path(status) {
        store.commit(changing(&run, room, step)).await.unwrap();
    }
    run
}

async fn invariant_03_one_end_a_status_changes_only_as_the_state_machine_allows(database: TestDatabase) {
    let store = database.open().await;
    for from in RunStatus::ALL {
        for to in RunStatus::ALL {
            let room = room(&store).await;
            let run = run_with_status(&store, room, from).await;
            let head = store.head(&me(), room).await.unwrap();
            let changed = store.commit(changing(&run, room, to)).await;
            let is_repeated = from == to && !from.is_terminal();
            let expected = if from.may_become(to) || is_repeated { to } else { from };
            assert_eq!(store.run(&me(), run.id).await.unwrap().status, expected, "{from} → {to}");
            match changed {
                Ok(_) => assert!(from.may_become(to) || is_repeated, "{from} → {to} was accepted"),
                Err(StoreError::RunStatusRefused) => {
                    assert_eq!(expected, from, "{from} → {to} was refused");
                    assert_eq!(store.head(&me(), room).await.unwrap(), head, "nothing of the commit is stored");
                }
                Err(error) => panic!("{from} → {to}: {error}"),
            }
        }
    }
}

async fn a_refused_change_does_not_affect_the_rest_of_its_group(database: TestDatabase) {
    let store = database.open().await;
    let (ended, other) = (room(&store).await, room(&store).await);
    let run = run_with_status(&store, ended, RunStatus::Completed).await;
    let key = RowChange::StoreIdempotencyKey { owner: me(), attempt: attempt("key", 1), result: "stored".into() };
    let mut again = changing(&run, ended, RunStatus::Failed);
    again.changes.push(key);
    let outcomes = together(
        &store,
        vec![
            append(other, vec![says("before")]),
            again,
            append(ended, vec![says("after")]),
            append(other, vec![says("last")]),
        ],
    )
    .await;
    let refused: Vec<bool> =
        outcomes.iter().map(|outcome| matches!(outcome, Err(StoreError::RunStatusRefused))).collect();
    assert_eq!(refused, [false, true, false, false], "{outcomes:?}");
    assert_eq!(journal(&store, other).await.len(), 2);
    assert_eq!(journal(&store, ended).await.len(), 4);
    assert_eq!(store.run(&me(), run.id).await.unwrap().status, RunStatus::Completed);
    assert!(store.earlier_result(&me(), &attempt("key", 1)).await.unwrap().is_none(), "its key is not used");
}

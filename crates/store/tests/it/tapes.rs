//! What is planned behind the queued runs: it changes only from the version that it is based on, and no run ends without
//! a decision on it.

use crate::scene::{TestRun, append, claim, held, room, says};
use domain::{ids::RoomId, position::Seq, run::RunStatus};
use store::{
    Store, StoreError,
    journal::{Commit, RowChange, TapeHold},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_plan_changes_only_from_its_current_version,
        a_run_cannot_end_without_a_decision_on_the_plan,
        the_plan_is_read_with_the_runs_of_its_room;
}

fn putting(room: RoomId, based_on: Seq, state: Option<&str>) -> Commit {
    let changes = vec![RowChange::PutTape { based_on, state: state.map(ToOwned::to_owned), hold: TapeHold::Nothing }];
    Commit { changes, ..append(room, vec![says("planned")]) }
}

async fn version(store: &Store, room: RoomId) -> Seq {
    store.tape(room).await.unwrap().unwrap().version
}

async fn a_plan_changes_only_from_its_current_version(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    assert_eq!(store.tape(room).await.unwrap(), None);
    store.commit(putting(room, 0, Some("one"))).await.unwrap();
    let first = version(&store, room).await;
    assert!(matches!(store.commit(putting(room, 0, Some("two"))).await, Err(StoreError::TapeChanged)));
    store.commit(putting(room, first, Some("two"))).await.unwrap();
    assert!(matches!(store.commit(putting(room, first, None)).await, Err(StoreError::TapeChanged)));
    store.commit(putting(room, version(&store, room).await, None)).await.unwrap();
    assert_eq!(store.tape(room).await.unwrap(), None);
    store.commit(putting(room, 0, Some("three"))).await.unwrap();
    let stale = store.commit(putting(room, first, None)).await;
    assert!(matches!(stale, Err(StoreError::TapeChanged)), "a new plan has a new version");
    assert_eq!(store.tape(room).await.unwrap().unwrap().state, "three");
}

async fn a_run_cannot_end_without_a_decision_on_the_plan(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    store.commit(putting(room, 0, Some("planned"))).await.unwrap();
    let ended = store.commit(run.ending(room, held(&lease))).await;
    assert!(matches!(ended, Err(StoreError::TapeChanged)), "{ended:?}");
    let mut ending = run.ending(room, held(&lease));
    ending
        .changes
        .insert(0, RowChange::PutTape { based_on: version(&store, room).await, state: None, hold: TapeHold::Nothing });
    store.commit(ending).await.unwrap();
    assert_eq!(store.tape(room).await.unwrap(), None);
}

async fn the_plan_is_read_with_the_runs_of_its_room(database: TestDatabase) {
    let store = database.open().await;
    let (here, other) = (room(&store).await, room(&store).await);
    assert_eq!(store.tape_with_runs(here).await.unwrap(), (None, Vec::new()));
    let (first, second) = (TestRun::queued(&store, here).await, TestRun::queued(&store, here).await);
    TestRun::queued(&store, other).await;
    store.commit(putting(here, 0, Some("planned"))).await.unwrap();
    let (tape, runs) = store.tape_with_runs(here).await.unwrap();
    assert_eq!(
        (tape.as_ref().map(|tape| tape.state.as_str()), &tape),
        (Some("planned"), &store.tape(here).await.unwrap())
    );
    assert_eq!(runs.iter().map(|run| run.run_id).collect::<Vec<_>>(), [first.id, second.id]);
    assert!(runs[0].cell < runs[1].cell && runs.iter().all(|run| run.status == RunStatus::Queued), "{runs:?}");
}

//! What is planned behind the queued runs: it changes only from the version that it is based on, and no run ends without
//! a decision on it.

use crate::scene::{TestRun, append, claim, held, room, says};
use domain::{ids::RoomId, position::Seq};
use store::{
    Store, StoreError,
    journal::{Commit, RowChange, TapeHold},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_plan_changes_only_from_its_current_version,
        a_run_cannot_end_without_a_decision_on_the_plan;
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

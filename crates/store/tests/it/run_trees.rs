//! Runs that other runs start: when they are stored, how they are claimed, and how a stop goes down the tree.

use crate::scene::{LEASE, TestRun, by, claim, me, room};
use domain::{
    ids::RoomId,
    run_tree::{MAX_TREE_RUNS, TreePlace},
};
use store::{
    Store, StoreError,
    journal::{Commit, Guard, RowChange, StopRequest},
    queue::ClaimLimits,
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        invariant_25_tree_a_stop_goes_down_the_tree_and_refuses_further_children,
        invariant_25_tree_the_end_of_a_run_stops_its_children, a_tree_has_a_limited_number_of_runs,
        each_level_is_claimed_for_itself;
}

fn below(parent: &TestRun, root: &TestRun, depth: u32) -> TreePlace {
    TreePlace { parent_id: parent.id, root_id: root.id, depth, user_id: None }
}

fn queueing(run: &TestRun, room: RoomId, place: TreePlace) -> Commit {
    let mut commit = run.queueing(room);
    for change in &mut commit.changes {
        if let RowChange::QueueRun { place: of_run, .. } = change {
            *of_run = Some(place);
        }
    }
    commit
}

async fn child(store: &Store, place: TreePlace) -> (TestRun, RoomId) {
    let (run, room) = (TestRun::new(), room(store).await);
    store.commit(queueing(&run, room, place)).await.unwrap();
    (run, room)
}

async fn invariant_25_tree_a_stop_goes_down_the_tree_and_refuses_further_children(database: TestDatabase) {
    let store = database.open().await;
    let top = TestRun::queued(&store, room(&store).await).await;
    let (middle, _) = child(&store, below(&top, &top, 1)).await;
    let (last, _) = child(&store, below(&middle, &top, 2)).await;
    let other = TestRun::queued(&store, room(&store).await).await;
    let tree = store.run_tree(&me(), top.id).await.unwrap();
    assert_eq!(tree.iter().map(|named| named.run.depth).collect::<Vec<_>>(), [0, 1, 2]);
    let above = store.run_ancestors(&me(), &tree[2].run).await.unwrap();
    assert_eq!(above.iter().map(|run| run.id).collect::<Vec<_>>(), [middle.id, top.id]);
    let stopped = store.request_stop(&by(&me()), &[top.id], StopRequest::Cancel).await.unwrap();
    assert_eq!(stopped, [top.id, middle.id, last.id]);
    let waiting = store.stopped_before_claim().await.unwrap();
    assert!(waiting.iter().all(|claim| claim.run_id != other.id) && waiting.len() == 3);
    let late = TestRun::new();
    let refused = store.commit(queueing(&late, room(&store).await, below(&middle, &top, 2))).await;
    assert!(matches!(refused, Err(StoreError::Fenced)), "{refused:?}");
    assert!(matches!(store.run(&me(), late.id).await, Err(StoreError::NotFound)));
}

async fn invariant_25_tree_the_end_of_a_run_stops_its_children(database: TestDatabase) {
    let store = database.open().await;
    let top_room = room(&store).await;
    let top = TestRun::queued(&store, top_room).await;
    let (middle, _) = child(&store, below(&top, &top, 1)).await;
    let (last, _) = child(&store, below(&middle, &top, 2)).await;
    store.commit(top.ending(top_room, Guard::Unclaimed { run_id: top.id })).await.unwrap();
    let stopping = store.stopped_before_claim().await.unwrap();
    assert_eq!(stopping.iter().map(|claim| claim.run_id).collect::<Vec<_>>(), [middle.id], "the others when it ends");
    let refused = store.commit(queueing(&TestRun::new(), room(&store).await, below(&last, &top, 3))).await;
    assert!(refused.is_err(), "the first run of the tree has ended: {refused:?}");
}

async fn a_tree_has_a_limited_number_of_runs(database: TestDatabase) {
    let store = database.open().await;
    let top = TestRun::queued(&store, room(&store).await).await;
    let (middle, _) = child(&store, below(&top, &top, 1)).await;
    for _ in 1..MAX_TREE_RUNS {
        child(&store, below(&middle, &top, 2)).await;
    }
    let refused = store.commit(queueing(&TestRun::new(), room(&store).await, below(&top, &top, 1))).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert_eq!(store.run_tree(&me(), top.id).await.unwrap().len() as u32, MAX_TREE_RUNS + 1);
}

async fn each_level_is_claimed_for_itself(database: TestDatabase) {
    let store = database.open().await;
    let top = TestRun::queued(&store, room(&store).await).await;
    let (below_it, _) = child(&store, below(&top, &top, 1)).await;
    let mut depths = store.waiting_depths().await.unwrap();
    depths.sort_unstable();
    assert_eq!(depths, [0, 1]);
    assert_eq!(claim(&store, "w").await.iter().map(|claim| claim.run_id).collect::<Vec<_>>(), [top.id]);
    let limits = ClaimLimits { total: 5, per_workspace: 1, depth: 1 };
    let claims = store.claim_runs("w", limits, LEASE).await.unwrap();
    assert_eq!(claims.iter().map(|claim| claim.run_id).collect::<Vec<_>>(), [below_it.id], "a share of each level");
}

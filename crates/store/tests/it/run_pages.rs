//! Pages of runs with names, and the events of their timelines.

use crate::scene::{TestRun, append, me, room, says, stranger};
use domain::{event::EventType, ids::RunId};
use store::{ListCursor, RunFilter, journal::Guard};
use testkit::database::TestDatabase;

contract! {
    one thread: pages_of_runs_have_no_gap, milestones_belong_to_one_run_and_stop_at_its_end;
}

async fn pages_of_runs_have_no_gap(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (room(&store).await, room(&store).await);
    let mut made: Vec<RunId> = Vec::new();
    for n in 0..25 {
        made.push(TestRun::queued(&store, if n % 5 == 0 { two } else { one }).await.id);
    }
    made.reverse();
    let mut filter = RunFilter { limit: 4, ..RunFilter::default() };
    let mut seen: Vec<RunId> = Vec::new();
    loop {
        let page = store.named_runs(&me(), &filter).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.iter().all(|named| named.room_name == "a room" && named.agent_name.is_empty()));
        let cursor = ListCursor::of_run(&last.run);
        assert_eq!(cursor.to_string().parse::<ListCursor>().unwrap(), cursor);
        filter.before = Some(cursor);
        seen.extend(page.iter().map(|named| named.run.id));
    }
    assert_eq!(seen, made, "each run once, newest first");
    let agent_id = Some(store.run(&me(), made[3]).await.unwrap().agent_id);
    let of_agent = RunFilter { agent_id, limit: 10, ..RunFilter::default() };
    assert_eq!(store.runs(&me(), &of_agent).await.unwrap().len(), 1);
    assert!(store.named_runs(&stranger(), &RunFilter { before: None, ..filter }).await.unwrap().is_empty());
    for odd in ["", ".", "1.", "x.y", "1.00000000-0000-0000-0000-00000000000", "-"] {
        assert!(odd.parse::<ListCursor>().is_err(), "{odd}");
    }
}

async fn milestones_belong_to_one_run_and_stop_at_its_end(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let (run, other) = (TestRun::queued(&store, room).await, TestRun::queued(&store, room).await);
    // The run's events are further apart than one scan.
    for _ in 0..6 {
        store.commit(append(room, (0..1000).map(|n| says(n.to_string())).collect())).await.unwrap();
    }
    store.commit(append(room, vec![run.says("mine"), other.says("not mine")])).await.unwrap();
    store.commit(run.ending(room, Guard::Unclaimed { run_id: run.id })).await.unwrap();
    let run = store.run(&me(), run.id).await.unwrap();
    let kinds: Vec<EventType> = store.run_milestones(&run).await.unwrap().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventType::RunQueued, EventType::Status, EventType::RunCompleted]);
}

//! What runs took, summed by the database.

use crate::scene::{Run, me, room, room_of, stranger};
use domain::{
    ids::RoomId,
    run::RunStatus,
    time::Timestamp,
    usage::{Cost, Usage},
};
use std::time::Duration;
use store::{
    Figures, Store, UsageBy, UsageQuery, UsageRow,
    journal::{Change, Guard},
};
use testkit::database::TestDatabase;

contract! {
    one thread: sums_are_by_what_was_asked_for, what_a_provider_reports_cannot_break_the_sums;
}

const HOUR: Duration = Duration::from_secs(3600);

async fn run(
    store: &Store,
    room: RoomId,
    status: RunStatus,
    model: Option<&str>,
    usage: Usage,
    cost: Option<i64>,
) -> Run {
    let run = Run::queued(store, room).await;
    let mut commit = run.ending(room, Guard::Unclaimed { run_id: run.id });
    if let Change::EndRun { ending, .. } = &mut commit.changes[0] {
        (ending.status, ending.model, ending.usage) = (status, model.map(Into::into), usage);
        (ending.cost, ending.duration_ms) = (cost.map(Cost::from_nanos), 10);
    }
    store.commit(commit).await.unwrap();
    run
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens: 1, ..Usage::default() }
}

async fn summed(store: &Store, by: UsageBy) -> Vec<UsageRow> {
    let (from, to) = (Timestamp::from_millis(0), Timestamp::now() + HOUR);
    let mut rows = store.usage(&me(), &UsageQuery { from, to, by, bucket: HOUR * 24 * 400_000 }).await.unwrap();
    rows.sort_by_key(|row| row.figures.usage.input_tokens);
    rows
}

async fn sums_are_by_what_was_asked_for(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (room(&store).await, room(&store).await);
    let first = run(&store, one, RunStatus::Completed, Some("a"), tokens(100), Some(5)).await;
    run(&store, one, RunStatus::Failed, Some("a"), tokens(200), None).await;
    run(&store, two, RunStatus::Cancelled, None, Usage::default(), None).await;
    run(&store, two, RunStatus::Interrupted, None, tokens(7), Some(2)).await;
    let theirs = room_of(&store, &stranger()).await;
    store.commit(Run::new().queueing_for(&stranger(), theirs)).await.unwrap();
    Run::queued(&store, two).await;

    let rows = summed(&store, UsageBy::Room).await;
    let key = |room: RoomId| Some(room.to_string());
    assert_eq!(
        rows.iter().map(|row| (row.key.clone(), row.name.as_deref())).collect::<Vec<_>>(),
        [(key(two), Some("a room")), (key(one), Some("a room"))]
    );
    let expected = Figures {
        runs: 2,
        completed: 1,
        failed: 1,
        stopped: 0,
        usage: Usage { input_tokens: 300, output_tokens: 2, ..Usage::default() },
        cost: Some(Cost::from_nanos(5)),
        unpriced: 1,
        duration_ms: 20,
    };
    assert_eq!(rows[1].figures, expected);
    assert_eq!((rows[0].figures.runs, rows[0].figures.stopped, rows[0].figures.unpriced), (3, 2, 0));

    let rows = summed(&store, UsageBy::Model).await;
    assert_eq!(rows.iter().map(|row| row.key.as_deref()).collect::<Vec<_>>(), [None, Some("a")]);
    let rows = summed(&store, UsageBy::Agent).await;
    assert_eq!(rows.len(), 5, "each run here has an agent of its own");
    let of_first = rows.iter().find(|row| row.key == Some(first.agent.to_string())).unwrap();
    assert_eq!((of_first.figures.usage.input_tokens, &of_first.name), (100, &None), "its agent is not known here");

    let now = store.run(&me(), first.id).await.unwrap().created_at;
    let query = |from, to| UsageQuery { from, to, by: UsageBy::Model, bucket: HOUR };
    let later = now + Duration::from_secs(86_400);
    assert!(store.usage(&me(), &query(later, later + HOUR)).await.unwrap().is_empty());
    let hours = store.usage(&me(), &query(now, later)).await.unwrap();
    assert!(hours.iter().all(|row| row.at <= now && row.at.as_millis() % 3_600_000 == 0), "{hours:?}");
    assert!(store.usage(&me(), &query(Timestamp::from_millis(0), now)).await.unwrap().is_empty(), "`to` is not in it");
}

async fn what_a_provider_reports_cannot_break_the_sums(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let absurd = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
    for _ in 0..3 {
        run(&store, room, RunStatus::Completed, Some("a"), absurd, Some(1)).await;
    }
    let rows = summed(&store, UsageBy::Model).await;
    assert_eq!(rows[0].figures.usage.input_tokens, 3_000_000_000_000);
}

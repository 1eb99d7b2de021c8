//! Usage of runs, summed by the database.

use crate::scene::{TestRun, me, room, room_of, stranger};
use domain::{
    ids::RoomId,
    run::RunStatus,
    time::Timestamp,
    usage::{Cost, Usage},
};
use std::time::Duration;
use store::{
    Store, UsageGrouping, UsageQuery, UsageRow, UsageTotals,
    journal::{Guard, RowChange},
};
use testkit::database::TestDatabase;

contract! {
    one thread: usage_is_grouped_as_requested, extreme_provider_reports_do_not_overflow_the_sums;
}

const HOUR: Duration = Duration::from_secs(3600);

async fn run(
    store: &Store,
    room: RoomId,
    status: RunStatus,
    model: Option<&str>,
    usage: Usage,
    cost: Option<i64>,
) -> TestRun {
    let run = TestRun::queued(store, room).await;
    let mut commit = run.ending(room, Guard::Unclaimed { run_id: run.id });
    if let RowChange::EndRun { ending, .. } = &mut commit.changes[1] {
        (ending.status, ending.model, ending.usage) = (status, model.map(Into::into), usage);
        (ending.cost, ending.duration_ms) = (cost.map(Cost::from_nanos), 10);
    }
    store.commit(commit).await.unwrap();
    run
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens: 1, ..Usage::default() }
}

async fn summed(store: &Store, by: UsageGrouping) -> Vec<UsageRow> {
    let (from, to) = (Timestamp::from_millis(0), Timestamp::now() + HOUR);
    let mut rows = store.usage(&me(), &UsageQuery { from, to, by, bucket: HOUR * 24 * 400_000 }).await.unwrap();
    rows.sort_by_key(|row| row.totals.usage.input_tokens);
    rows
}

async fn usage_is_grouped_as_requested(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (room(&store).await, room(&store).await);
    let first = run(&store, one, RunStatus::Completed, Some("a"), tokens(100), Some(5)).await;
    run(&store, one, RunStatus::Failed, Some("a"), tokens(200), None).await;
    run(&store, two, RunStatus::Cancelled, None, Usage::default(), None).await;
    run(&store, two, RunStatus::Interrupted, None, tokens(7), Some(2)).await;
    let theirs = room_of(&store, &stranger()).await;
    store.commit(TestRun::new().queueing_for(&stranger(), theirs)).await.unwrap();
    TestRun::queued(&store, two).await;

    let rows = summed(&store, UsageGrouping::Room).await;
    let key = |room: RoomId| Some(room.to_string());
    assert_eq!(
        rows.iter().map(|row| (row.key.clone(), row.name.as_deref())).collect::<Vec<_>>(),
        [(key(two), Some("a room")), (key(one), Some("a room"))]
    );
    let expected = UsageTotals {
        runs: 2,
        completed: 1,
        failed: 1,
        stopped: 0,
        usage: Usage { input_tokens: 300, output_tokens: 2, ..Usage::default() },
        cost: Some(Cost::from_nanos(5)),
        unpriced: 1,
        duration_ms: 20,
    };
    assert_eq!(rows[1].totals, expected);
    assert_eq!((rows[0].totals.runs, rows[0].totals.stopped, rows[0].totals.unpriced), (3, 2, 0));

    let rows = summed(&store, UsageGrouping::Model).await;
    assert_eq!(rows.iter().map(|row| row.key.as_deref()).collect::<Vec<_>>(), [None, Some("a")]);
    let rows = summed(&store, UsageGrouping::Agent).await;
    assert_eq!(rows.len(), 5, "each run has its own agent");
    let of_first = rows.iter().find(|row| row.key == Some(first.agent.to_string())).unwrap();
    assert_eq!((of_first.totals.usage.input_tokens, &of_first.name), (100, &None), "its agent is not stored");

    let now = store.run(&me(), first.id).await.unwrap().created_at;
    let query = |from, to| UsageQuery { from, to, by: UsageGrouping::Model, bucket: HOUR };
    let later = now + Duration::from_secs(86_400);
    assert!(store.usage(&me(), &query(later, later + HOUR)).await.unwrap().is_empty());
    let hours = store.usage(&me(), &query(now, later)).await.unwrap();
    assert!(hours.iter().all(|row| row.at <= now && row.at.as_millis() % 3_600_000 == 0), "{hours:?}");
    assert!(store.usage(&me(), &query(Timestamp::from_millis(0), now)).await.unwrap().is_empty(), "`to` is exclusive");
}

async fn extreme_provider_reports_do_not_overflow_the_sums(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let absurd = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
    for _ in 0..3 {
        run(&store, room, RunStatus::Completed, Some("a"), absurd, Some(1)).await;
    }
    let rows = summed(&store, UsageGrouping::Model).await;
    assert_eq!(rows[0].totals.usage.input_tokens, 3_000_000_000_000);
}

//! Runs: their outcome, and filters by room, message and status.

use crate::scene::{TestRun, append, claim, held, me, room};
use domain::{
    ids::{MessageId, RoomId, RunId},
    run::{Receipt, RunError, RunStatus},
    usage::{Cost, Usage},
};
use store::{
    ProviderSessionRecord, RunFilter, Store, StoreError,
    journal::{Commit, RowChange, RunEnding},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_run_changes_from_queued_to_ended,
        runs_can_be_filtered_by_any_combination,
        a_nul_in_provider_names_does_not_keep_a_run_from_ending;
}

async fn status(store: &Store, run: &TestRun, room: RoomId, commit: Vec<RowChange>) -> domain::run::Run {
    store.commit(Commit { changes: commit, ..append(room, vec![run.says("changes")]) }).await.unwrap();
    store.run(&me(), run.id).await.unwrap()
}

fn ending(model: &str) -> RunEnding {
    RunEnding {
        status: RunStatus::Failed,
        usage: Usage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: 3,
            cache_write_tokens: u64::from(u32::MAX),
        },
        cost: Some(Cost::from_nanos(1_234_567_891)),
        model: Some(model.into()),
        duration_ms: 42,
        error: Some(RunError::new("broke", "it broke\u{0}\r\n🎭")),
        receipt: Some(Receipt { processes: 2, signals: vec!["SIGTERM".into()], millis: 7 }),
    }
}

async fn a_run_changes_from_queued_to_ended(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let queued = store.run(&me(), run.id).await.unwrap();
    assert_eq!((queued.status, queued.queued_seq, queued.room_id), (RunStatus::Queued, 1, room));
    assert_eq!((queued.agent_id, queued.message_id), (run.agent, run.message));
    assert_eq!((queued.started_at, queued.ended_at, queued.cost), (None, None, None));
    let become_ = |status| vec![RowChange::RunStatus { run_id: run.id, status }];
    let running = status(&store, &run, room, become_(RunStatus::Running)).await;
    let started = running.started_at.unwrap();
    for next in [RunStatus::WaitingForApproval, RunStatus::Running, RunStatus::WaitingForQuota] {
        let waiting = status(&store, &run, room, become_(next)).await;
        assert_eq!((waiting.status, waiting.started_at), (next, Some(started)), "a run starts once");
    }
    let ended = ending("a model");
    let change = vec![RowChange::EndRun { run_id: run.id, ending: ended.clone() }];
    let stored = status(&store, &run, room, change).await;
    assert_eq!((stored.status, stored.usage, stored.cost), (ended.status, ended.usage, ended.cost));
    assert_eq!((stored.model, stored.duration_ms), (ended.model, Some(42)));
    assert_eq!((stored.error, stored.receipt), (ended.error, ended.receipt));
    assert!(stored.ended_at.is_some());
}

async fn runs_can_be_filtered_by_any_combination(database: TestDatabase) {
    let store = database.open().await;
    let (one, two) = (room(&store).await, room(&store).await);
    let (a, b, c) =
        (TestRun::queued(&store, one).await, TestRun::queued(&store, one).await, TestRun::queued(&store, two).await);
    let lease = claim(&store, "w").await.into_iter().find(|claim| claim.run_id == a.id).unwrap();
    store.commit(a.ending(one, held(&lease))).await.unwrap();
    let all = [None, Some(one), Some(two), Some(RoomId::generate())];
    let messages = [None, Some(a.message), Some(b.message), Some(c.message), Some(MessageId::generate())];
    let statuses = [None, Some(RunStatus::Completed), Some(RunStatus::Queued), Some(RunStatus::Failed)];
    let known = [(&a, one, RunStatus::Completed), (&b, one, RunStatus::Queued), (&c, two, RunStatus::Queued)];
    for room_id in all {
        for message_id in messages {
            for status in statuses {
                let filter = RunFilter { room_id, message_id, status, limit: 10, ..RunFilter::default() };
                let mut found: Vec<RunId> =
                    store.runs(&me(), &filter).await.unwrap().iter().map(|run| run.id).collect();
                found.sort_unstable();
                let expected: Vec<RunId> = known
                    .iter()
                    .filter(|(run, room, is)| {
                        room_id.is_none_or(|wanted| wanted == *room)
                            && message_id.is_none_or(|wanted| wanted == run.message)
                            && status.is_none_or(|wanted| wanted == *is)
                    })
                    .map(|(run, _, _)| run.id)
                    .collect();
                assert_eq!(found, expected, "{filter:?}");
            }
        }
    }
    let newest = |limit| RunFilter { room_id: Some(one), limit, ..RunFilter::default() };
    assert!(store.runs(&me(), &newest(0)).await.unwrap().is_empty());
    assert_eq!(store.runs(&me(), &newest(1)).await.unwrap().len(), 1);
    let times: Vec<_> = store.runs(&me(), &newest(10)).await.unwrap().iter().map(|run| run.created_at).collect();
    assert!(times.is_sorted_by(|newer, older| newer >= older), "newest first");
    assert!(matches!(store.run(&me(), RunId::generate()).await, Err(StoreError::NotFound)));
}

/// PostgreSQL text cannot contain NUL; a provider must not be able to keep its run from ending.
async fn a_nul_in_provider_names_does_not_keep_a_run_from_ending(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let session = "ses\u{0}sion".to_owned();
    let changes = vec![
        RowChange::PutSession {
            agent_id: run.agent,
            provider: "p".into(),
            session: ProviderSessionRecord::new(&session),
        },
        RowChange::EndRun { run_id: run.id, ending: ending("mo\u{0}del") },
    ];
    let ended = status(&store, &run, room, changes).await;
    assert_eq!(ended.model.as_deref(), Some("model"));
    assert_eq!(
        store.provider_session(room, run.agent, "p").await.unwrap(),
        Some(ProviderSessionRecord::new("session"))
    );
}

//! A rejected commit is not stored at all, and the other commits of its group are stored.

use crate::scene::{TestRun, append, attempt, claim, creating, held, journal, me, room, said, says, together};
use domain::{
    event::{MessagePosted, NewEvent},
    ids::{AgentId, MessageId, RoomId},
    message::{Author, Message, MessageStatus, Part},
    room::WhenBusy,
    time::Timestamp,
};
use store::{
    ProviderSessionRecord, RunFilter, Store, StoreError,
    journal::{Commit, Guard, RowChange, SeqRef},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_rejected_commit_does_not_affect_its_group,
        a_used_key_rejects_the_commit_at_any_position_in_its_changes,
        a_commit_that_the_database_rejects_does_not_affect_its_group,
        many_rejected_commits_among_many_valid_ones,
        a_room_created_in_a_group_is_visible_to_the_next_commit,
        a_run_queued_in_a_group_is_visible_to_the_next_commit;
}

/// A commit with everything that could be left behind: an event, a message, a run, a participant, a session.
fn full(room: RoomId, guard: Guard) -> (Commit, MessageId, TestRun) {
    let (id, run) = (MessageId::generate(), TestRun::new());
    let author = Author::Person { name: crate::scene::name("someone"), user_id: None };
    let text = "should not be there".to_owned();
    let posted = NewEvent::new(MessagePosted {
        message_id: id,
        author: author.clone(),
        text: text.clone(),
        when_busy: WhenBusy::Enqueue,
        mentions: Vec::new(),
        attachments: Vec::new(),
    });
    let message = Message {
        id,
        room_id: room,
        seq: 0,
        author,
        run_id: None,
        status: MessageStatus::Complete,
        text: text.clone(),
        thinking: String::new(),
        parts: vec![Part::Text { text, item: None }],
        attachments: Vec::new(),
        created_at: Timestamp::now(),
    };
    let mut commit = run.queueing(room);
    commit.guard = guard;
    commit.events.insert(0, posted);
    commit.changes = vec![
        RowChange::PutMessage { message, seq: SeqRef::Event(0) },
        RowChange::Join { agent_id: run.agent },
        RowChange::PutSession { agent_id: run.agent, provider: "p".into(), session: ProviderSessionRecord::new("s") },
        RowChange::QueueRun {
            owner: me(),
            run_id: run.id,
            agent_id: run.agent,
            message_id: id,
            place: None,
            seq: SeqRef::Event(1),
            cell: SeqRef::Event(1),
            claim: None,
        },
    ];
    (commit, id, run)
}

async fn assert_nothing_of(store: &Store, room: RoomId, message: MessageId, run: &TestRun) {
    assert!(matches!(store.message(&me(), room, message).await, Err(StoreError::NotFound)));
    assert!(matches!(store.run(&me(), run.id).await, Err(StoreError::NotFound)));
    assert!(!store.unfinished_runs(&me(), room).await.unwrap().contains(&run.id));
    assert_eq!(store.provider_session(room, run.agent, "p").await.unwrap(), None);
    let filter = RunFilter { message_id: Some(message), limit: 10, ..RunFilter::default() };
    assert!(store.runs(&me(), &filter).await.unwrap().is_empty());
}

async fn a_rejected_commit_does_not_affect_its_group(database: TestDatabase) {
    let store = database.open().await;
    let (good, busy) = (room(&store).await, room(&store).await);
    let running = TestRun::queued(&store, busy).await;
    let lease = claim(&store, "w").await.remove(0);
    store
        .commit(Commit {
            changes: vec![RowChange::StoreIdempotencyKey {
                owner: me(),
                attempt: attempt("k", 1),
                result: "first".into(),
            }],
            ..append(good, vec![says("0")])
        })
        .await
        .unwrap();

    let stale = Guard::Lease { run_id: running.id, fence: lease.fence + 1 };
    let (fenced, fenced_message, fenced_run) = full(good, stale);
    let (rejected, rejected_message, rejected_run) = full(busy, Guard::RoomIdle);
    let (mut keyed, keyed_message, keyed_run) = full(good, Guard::None);
    keyed
        .changes
        .insert(0, RowChange::StoreIdempotencyKey { owner: me(), attempt: attempt("k", 1), result: "second".into() });
    let outcomes = together(
        &store,
        vec![
            append(good, vec![says("1"), says("2")]),
            fenced,
            append(good, vec![says("3")]),
            append(RoomId::generate(), vec![says("nowhere")]),
            rejected,
            append(busy, vec![says("beside the run")]),
            keyed,
            append(good, vec![says("4")]),
        ],
    )
    .await;
    assert!(matches!(
        outcomes[..],
        [
            Ok(_),
            Err(StoreError::Fenced),
            Ok(_),
            Err(StoreError::NotFound),
            Err(StoreError::RoomBusy),
            Ok(_),
            Err(StoreError::KeyUsed),
            Ok(_)
        ]
    ));
    let texts: Vec<String> = journal(&store, good).await.iter().map(said).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "4"]);
    assert_eq!(journal(&store, busy).await.len(), 2);
    assert_nothing_of(&store, good, fenced_message, &fenced_run).await;
    assert_nothing_of(&store, busy, rejected_message, &rejected_run).await;
    assert_nothing_of(&store, good, keyed_message, &keyed_run).await;
    assert_eq!(store.earlier_result(&me(), &attempt("k", 1)).await.unwrap().unwrap().result, "first");
    store.commit(running.ending(busy, held(&lease))).await.unwrap();
}

async fn a_used_key_rejects_the_commit_at_any_position_in_its_changes(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let remember = || RowChange::StoreIdempotencyKey { owner: me(), attempt: attempt("k", 1), result: "r".into() };
    store.commit(Commit { changes: vec![remember()], ..append(room, vec![says("1")]) }).await.unwrap();
    let (mut commit, message, run) = full(room, Guard::None);
    commit.changes.push(remember());
    let outcomes = together(&store, vec![append(room, vec![says("2")]), commit]).await;
    assert!(matches!(outcomes[..], [Ok(_), Err(StoreError::KeyUsed)]));
    assert_nothing_of(&store, room, message, &run).await;
    assert_eq!(journal(&store, room).await.len(), 2);
}

async fn a_commit_that_the_database_rejects_does_not_affect_its_group(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let known = says("stored before");
    store.commit(append(room, vec![known.clone()])).await.unwrap();
    let run = TestRun::queued(&store, room).await;
    let again = TestRun { id: run.id, ..TestRun::new() };
    let outcomes = together(
        &store,
        vec![
            append(room, vec![says("a")]),
            // Only its second event is stored: the commit is neither new nor a repetition.
            append(room, vec![says("half new"), known]),
            append(room, vec![says("b")]),
            again.queueing(room),
            append(room, vec![says("c")]),
        ],
    )
    .await;
    assert!(matches!(
        outcomes[..],
        [Ok(_), Err(StoreError::Unavailable(_)), Ok(_), Err(StoreError::Unavailable(_)), Ok(_)]
    ));
    let events = journal(&store, room).await;
    let texts: Vec<String> = events.iter().filter(|event| event.run_id.is_none()).map(said).collect();
    assert_eq!(texts, ["stored before", "a", "b", "c"]);
    assert_eq!(events.len(), 5);
}

async fn many_rejected_commits_among_many_valid_ones(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let known = says("known");
    store.commit(append(room, vec![known.clone()])).await.unwrap();
    let bad = |n: usize| n % 20 == 7;
    let commits = (0..100)
        .map(|n| {
            if bad(n) { append(room, vec![says("x"), known.clone()]) } else { append(room, vec![says(n.to_string())]) }
        })
        .collect();
    let outcomes = together(&store, commits).await;
    assert!(outcomes.iter().enumerate().all(|(n, outcome)| outcome.is_err() == bad(n)));
    let texts: Vec<String> = journal(&store, room).await.iter().skip(1).map(said).collect();
    assert!(texts.into_iter().eq((0..100).filter(|&n| !bad(n)).map(|n| n.to_string())), "order is kept");
}

async fn a_room_created_in_a_group_is_visible_to_the_next_commit(database: TestDatabase) {
    let store = database.open().await;
    let creating = creating(&me());
    let room = creating.room_id;
    let agent_id = AgentId::generate();
    let join = Commit { changes: vec![RowChange::Join { agent_id }], ..append(room, Vec::new()) };
    let outcomes = together(&store, vec![creating, join, append(room, vec![says("1")])]).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(journal(&store, room).await.len(), 1);
}

async fn a_run_queued_in_a_group_is_visible_to_the_next_commit(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::new();
    let unclaimed = Guard::Unclaimed { run_id: run.id };
    let commits = vec![run.queueing(room), run.ending(room, unclaimed.clone()), run.ending(room, unclaimed)];
    let outcomes = together(&store, commits).await;
    assert!(matches!(outcomes[..], [Ok(_), Ok(_), Err(StoreError::Fenced)]), "{outcomes:?}");
    assert_eq!(journal(&store, room).await.len(), 2);
    assert!(store.unfinished_runs(&me(), room).await.unwrap().is_empty());
}

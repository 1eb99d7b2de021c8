//! Repeating an event id or an Idempotency-Key has one result (invariant 7).

use crate::scene::{append, attempt, by, journal, me, name, renaming, room, said, says, stranger, together, within};
use domain::{agent::AgentSpec, room::RoomPolicy};
use std::collections::HashSet;
use store::{
    EarlierResult, Store, StoreError,
    journal::{Commit, RowChange},
};
use testkit::database::TestDatabase;
use tokio::task::JoinSet;

contract! {
    many threads:
        invariant_07_idempotent_one_of_many_concurrent_requests_wins,
        invariant_07_idempotent_two_servers_store_an_event_once;
    one thread:
        invariant_07_idempotent_an_event_id_is_stored_once_within_a_group,
        invariant_07_idempotent_an_event_id_is_stored_once_across_groups,
        invariant_07_idempotent_a_repeated_commit_succeeds_after_the_run_has_ended,
        invariant_07_idempotent_a_key_is_stored_with_its_result,
        invariant_07_idempotent_catalog_writes_store_their_key,
        invariant_07_idempotent_a_failed_write_does_not_use_its_key,
        expired_keys_are_deleted;
}

pub fn spec(text: &str) -> AgentSpec {
    AgentSpec::new(name(text), "scripted")
}

async fn invariant_07_idempotent_an_event_id_is_stored_once_within_a_group(database: TestDatabase) {
    let store = database.open().await;
    let (a, b) = (room(&store).await, room(&store).await);
    let (one, two) = (says("one"), says("two"));
    let outcomes = together(
        &store,
        vec![
            append(a, vec![says("before")]),
            append(a, vec![one.clone(), two.clone()]),
            append(b, vec![says("elsewhere")]),
            append(a, vec![one.clone(), two.clone()]),
            append(a, vec![says("after")]),
            append(a, vec![one, two]),
        ],
    )
    .await;
    let moments: HashSet<_> = outcomes.iter().map(|outcome| outcome.as_ref().unwrap().at).collect();
    assert_eq!(moments.len(), 1, "all are stored in one transaction");
    let firsts: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap().first_seq).collect();
    assert_eq!(firsts, [1, 2, 1, 2, 4, 2]);
    let texts: Vec<String> = journal(&store, a).await.iter().map(said).collect();
    assert_eq!(texts, ["before", "one", "two", "after"]);
}

async fn invariant_07_idempotent_an_event_id_is_stored_once_across_groups(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let event = says("once");
    assert_eq!(store.commit(append(room, vec![event.clone()])).await.unwrap().first_seq, 1);
    store.commit(append(room, vec![says("more")])).await.unwrap();
    assert_eq!(store.commit(append(room, vec![event.clone()])).await.unwrap().first_seq, 1);
    store.shut_down().await;
    let store = database.open().await;
    assert_eq!(store.commit(append(room, vec![event])).await.unwrap().first_seq, 1);
    assert_eq!(store.commit(append(room, vec![says("last")])).await.unwrap().first_seq, 3);
    assert_eq!(journal(&store, room).await.len(), 3);
}

async fn invariant_07_idempotent_a_repeated_commit_succeeds_after_the_run_has_ended(database: TestDatabase) {
    use crate::scene::{TestRun, claim, held};
    let store = database.open().await;
    let room = room(&store).await;
    let run = TestRun::queued(&store, room).await;
    let lease = claim(&store, "w").await.remove(0);
    let end = run.ending(room, held(&lease));
    let repeated = Commit { events: end.events.clone(), ..run.ending(room, held(&lease)) };
    assert_eq!(store.commit(end).await.unwrap().first_seq, 2);
    assert_eq!(store.commit(repeated).await.unwrap().first_seq, 2, "a retry succeeds");
    assert_eq!(journal(&store, room).await.len(), 2);
}

async fn invariant_07_idempotent_one_of_many_concurrent_requests_wins(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let mut tasks = JoinSet::new();
    for n in 0..20 {
        let store: Store = (*store).clone();
        tasks.spawn(async move {
            let remember =
                RowChange::StoreIdempotencyKey { owner: me(), attempt: attempt("key", 0), result: n.to_string() };
            let commit = Commit { changes: vec![remember], ..append(room, vec![says(n.to_string())]) };
            match store.commit(commit).await {
                Ok(_) => Some(n),
                Err(StoreError::KeyUsed) => None,
                Err(error) => panic!("{error}"),
            }
        });
    }
    let winners: Vec<i32> = within(tasks.join_all()).await.into_iter().flatten().collect();
    let [winner] = winners[..] else { panic!("{winners:?} all won") };
    let events = journal(&store, room).await;
    assert_eq!(events.iter().map(said).collect::<Vec<_>>(), [winner.to_string()]);
    let remembered = store.earlier_result(&me(), &attempt("key", 0)).await.unwrap().unwrap();
    assert_eq!(remembered, EarlierResult { same_request: true, result: winner.to_string() });
}

async fn invariant_07_idempotent_two_servers_store_an_event_once(database: TestDatabase) {
    let one = database.open().await;
    let two = if database.is_sqlite() { None } else { Some(database.open().await) };
    let stores: Vec<&Store> = std::iter::once(&*one).chain(two.as_deref()).collect();
    let room = room(&one).await;
    for n in 0..20 {
        let event = says(n.to_string());
        let tries = (0..6).map(|k| stores[k % stores.len()].commit(append(room, vec![event.clone()])));
        for outcome in within(futures_util::future::join_all(tries)).await {
            assert_eq!(outcome.unwrap().first_seq, n + 1);
        }
    }
    assert_eq!(journal(&one, room).await.len(), 20);
}

async fn invariant_07_idempotent_a_key_is_stored_with_its_result(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    assert_eq!(store.earlier_result(&me(), &attempt("k", 1)).await.unwrap(), None);
    let remember =
        |result: &str| RowChange::StoreIdempotencyKey { owner: me(), attempt: attempt("k", 1), result: result.into() };
    store.commit(Commit { changes: vec![remember("made")], ..append(room, vec![says("1")]) }).await.unwrap();
    let same = store.earlier_result(&me(), &attempt("k", 1)).await.unwrap().unwrap();
    assert_eq!(same, EarlierResult { same_request: true, result: "made".into() });
    let other = store.earlier_result(&me(), &attempt("k", 2)).await.unwrap().unwrap();
    assert!(!other.same_request, "the same key with another body");
    assert_eq!(store.earlier_result(&stranger(), &attempt("k", 1)).await.unwrap(), None, "keys belong to their owner");
    let theirs =
        RowChange::StoreIdempotencyKey { owner: stranger(), attempt: attempt("k", 1), result: "theirs".into() };
    store.commit(Commit { changes: vec![theirs], ..append(room, vec![says("2")]) }).await.unwrap();
}

async fn invariant_07_idempotent_catalog_writes_store_their_key(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let agent = store.create_agent(&by(&me()), spec("a"), Some(&attempt("create", 1))).await.unwrap();
    let again = store.create_agent(&by(&me()), spec("b"), Some(&attempt("create", 1))).await;
    assert!(matches!(again, Err(StoreError::KeyUsed)));
    assert_eq!(store.agents(&me()).await.unwrap().len(), 1);
    let remembered = store.earlier_result(&me(), &attempt("create", 1)).await.unwrap().unwrap();
    assert_eq!(remembered.result, agent.id.to_string());

    store.update_agent(&by(&me()), agent.id, spec("c"), Some(&attempt("update", 1))).await.unwrap();
    let again = store.update_agent(&by(&me()), agent.id, spec("d"), Some(&attempt("update", 1))).await;
    assert!(matches!(again, Err(StoreError::KeyUsed)));
    assert_eq!(store.agent(&me(), agent.id).await.unwrap().spec.name, name("c"));

    let policy = RoomPolicy::default();
    store.commit(renaming(room, &name("new"), &policy, Some(attempt("room", 1)))).await.unwrap();
    let again = store.commit(renaming(room, &name("newer"), &policy, Some(attempt("room", 1)))).await;
    assert!(matches!(again, Err(StoreError::KeyUsed)));
    assert_eq!(store.room(&me(), room).await.unwrap().name, name("new"));
}

async fn invariant_07_idempotent_a_failed_write_does_not_use_its_key(database: TestDatabase) {
    let store = database.open().await;
    store.create_agent(&by(&me()), spec("taken"), None).await.unwrap();
    let failed = store.create_agent(&by(&me()), spec("taken"), Some(&attempt("k", 1))).await;
    assert!(matches!(failed, Err(StoreError::AgentNameTaken(name)) if name == "taken"));
    assert_eq!(store.earlier_result(&me(), &attempt("k", 1)).await.unwrap(), None);
    store.create_agent(&by(&me()), spec("free"), Some(&attempt("k", 1))).await.unwrap();
}

async fn expired_keys_are_deleted(database: TestDatabase) {
    let store = database.open().await;
    store.create_agent(&by(&me()), spec("a"), Some(&attempt("k", 1))).await.unwrap();
    store.delete_expired_keys().await.unwrap();
    assert!(store.earlier_result(&me(), &attempt("k", 1)).await.unwrap().is_some(), "a key is valid for a day");
}

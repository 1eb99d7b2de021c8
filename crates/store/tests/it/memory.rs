//! Agents' memories: per agent, per owner, limited.

use crate::{
    idempotent::spec,
    scene::{by, me, stranger},
};
use store::{MAX_MEMORIES, StoreError};
use testkit::database::TestDatabase;

contract! {
    one thread:
        memories_are_saved_once_and_listed_newest_first,
        memories_belong_to_one_agent_and_one_owner,
        memories_are_changed_and_deleted_by_their_owner_only,
        memories_are_limited;
}

async fn memories_are_saved_once_and_listed_newest_first(database: TestDatabase) {
    let store = database.open().await;
    let agent = store.create_agent(&by(&me()), spec("Ann"), None).await.unwrap().id;
    for text in ["likes tea ☕", "works at night\u{0}", "likes tea ☕"] {
        assert!(store.save_memory(&by(&me()), agent, text).await.unwrap());
    }
    let texts: Vec<String> =
        store.memories(&me(), agent).await.unwrap().into_iter().map(|memory| memory.text).collect();
    assert_eq!(texts, ["works at night", "likes tea ☕"]);
}

async fn memories_belong_to_one_agent_and_one_owner(database: TestDatabase) {
    let store = database.open().await;
    let ann = store.create_agent(&by(&me()), spec("Ann"), None).await.unwrap().id;
    let bob = store.create_agent(&by(&me()), spec("Bob"), None).await.unwrap().id;
    store.save_memory(&by(&me()), ann, "a secret").await.unwrap();
    assert!(store.memories(&me(), bob).await.unwrap().is_empty());
    assert!(matches!(store.memories(&stranger(), ann).await, Err(StoreError::NotFound)));
    assert!(matches!(store.save_memory(&by(&stranger()), ann, "x").await, Err(StoreError::NotFound)));
    store.delete_agent(&by(&me()), ann, None).await.unwrap();
    assert!(matches!(store.memories(&me(), ann).await, Err(StoreError::NotFound)));
}

async fn memories_are_changed_and_deleted_by_their_owner_only(database: TestDatabase) {
    let store = database.open().await;
    let ann = store.create_agent(&by(&me()), spec("Ann"), None).await.unwrap().id;
    let bob = store.create_agent(&by(&me()), spec("Bob"), None).await.unwrap().id;
    store.save_memory(&by(&me()), ann, "likes tea").await.unwrap();
    let id = store.memories(&me(), ann).await.unwrap()[0].id;
    store.update_memory(&by(&me()), ann, id, "likes coffee", None).await.unwrap();
    assert_eq!(store.memories(&me(), ann).await.unwrap()[0].text, "likes coffee");
    for (actor, agent) in [(stranger(), ann), (me(), bob)] {
        let changed = store.update_memory(&by(&actor), agent, id, "x", None).await;
        assert!(matches!(changed, Err(StoreError::NotFound)), "{changed:?}");
        let deleted = store.delete_memory(&by(&actor), agent, id, None).await;
        assert!(matches!(deleted, Err(StoreError::NotFound)), "{deleted:?}");
    }
    store.delete_memory(&by(&me()), ann, id, None).await.unwrap();
    assert!(store.memories(&me(), ann).await.unwrap().is_empty());
}

async fn memories_are_limited(database: TestDatabase) {
    let store = database.open().await;
    let agent = store.create_agent(&by(&me()), spec("Ann"), None).await.unwrap().id;
    for number in 0..MAX_MEMORIES {
        assert!(store.save_memory(&by(&me()), agent, &number.to_string()).await.unwrap());
    }
    assert!(!store.save_memory(&by(&me()), agent, "one more").await.unwrap());
    assert!(store.save_memory(&by(&me()), agent, "0").await.unwrap(), "an existing memory is accepted");
    assert_eq!(store.memories(&me(), agent).await.unwrap().len(), MAX_MEMORIES);
}

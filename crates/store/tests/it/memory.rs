//! What agents remember: their own, their owner's, bounded.

use crate::{
    idempotent::spec,
    scene::{me, stranger},
};
use store::{Error, MAX_MEMORIES};
use testkit::database::TestDatabase;

contract! {
    one thread:
        what_is_saved_is_read_back_once_and_the_newest_first,
        a_memory_is_its_agents_and_its_owners_own,
        there_is_a_bound;
}

async fn what_is_saved_is_read_back_once_and_the_newest_first(database: TestDatabase) {
    let store = database.open().await;
    let agent = store.create_agent(&me(), spec("Ann"), None).await.unwrap().id;
    for text in ["likes tea ☕", "works at night\u{0}", "likes tea ☕"] {
        assert!(store.save_memory(&me(), agent, text).await.unwrap());
    }
    let texts: Vec<String> =
        store.memories(&me(), agent).await.unwrap().into_iter().map(|memory| memory.text).collect();
    assert_eq!(texts, ["works at night", "likes tea ☕"]);
}

async fn a_memory_is_its_agents_and_its_owners_own(database: TestDatabase) {
    let store = database.open().await;
    let ann = store.create_agent(&me(), spec("Ann"), None).await.unwrap().id;
    let bob = store.create_agent(&me(), spec("Bob"), None).await.unwrap().id;
    store.save_memory(&me(), ann, "a secret").await.unwrap();
    assert!(store.memories(&me(), bob).await.unwrap().is_empty());
    assert!(matches!(store.memories(&stranger(), ann).await, Err(Error::NotFound)));
    assert!(matches!(store.save_memory(&stranger(), ann, "x").await, Err(Error::NotFound)));
    store.delete_agent(&me(), ann, None).await.unwrap();
    assert!(matches!(store.memories(&me(), ann).await, Err(Error::NotFound)));
}

async fn there_is_a_bound(database: TestDatabase) {
    let store = database.open().await;
    let agent = store.create_agent(&me(), spec("Ann"), None).await.unwrap().id;
    for number in 0..MAX_MEMORIES {
        assert!(store.save_memory(&me(), agent, &number.to_string()).await.unwrap());
    }
    assert!(!store.save_memory(&me(), agent, "one more").await.unwrap());
    assert!(store.save_memory(&me(), agent, "0").await.unwrap(), "what is there is there");
    assert_eq!(store.memories(&me(), agent).await.unwrap().len(), MAX_MEMORIES);
}

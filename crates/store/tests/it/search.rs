//! The search index: the same words are found on both databases, as they are found without an index.

use crate::{
    history,
    scene::{by, me, room, room_of, stranger, within},
};
use domain::{
    ids::{MessageId, RoomId},
    owner::Owner,
    search::SearchQuery,
};
use std::time::Duration;
use store::{ErasureStep, IndexStep, Store};
use testkit::{database::TestDatabase, database_dump::DatabaseDump};
use tokio::{task::JoinSet, time::Instant};

contract! {
    many threads:
        commits_go_on_while_messages_are_indexed;
    one thread:
        words_are_found_as_without_an_index,
        any_text_is_a_query,
        pages_go_from_newest_to_oldest,
        invariant_15_owner_messages_of_others_are_not_found,
        m8_nothing_of_an_erased_room_is_in_the_index,
        a_dropped_index_is_filled_again;
}

async fn post(store: &Store, room: RoomId, text: &str) -> MessageId {
    history::post(store, room, text).await.id
}

async fn index(store: &Store, room: RoomId) -> usize {
    let mut steps = 1;
    while within(store.index_messages(room)).await.unwrap() == IndexStep::More {
        steps += 1;
    }
    steps
}

async fn found(store: &Store, owner: &Owner, query: &str) -> Vec<MessageId> {
    let found = store.search_messages(owner, &SearchQuery::parse(query), None, 1000).await.unwrap();
    found.into_iter().map(|found| found.message.id).collect()
}

const WORDS: [&str; 16] = [
    "green",
    "Room",
    "Zürich",
    "naïve",
    "straße",
    "Привет",
    "日本",
    "my_name",
    "v1.2",
    "x",
    "greens",
    "AND",
    "NOT",
    "the",
    "o'neil",
    "*",
];

async fn words_are_found_as_without_an_index(database: TestDatabase) {
    let (store, mut texts) = (database.open().await, Vec::new());
    let rooms = [room(&store).await, room(&store).await];
    // A fixed sequence that looks random.
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for n in 0..120 {
        let words: Vec<&str> = (0..next(6)).map(|_| WORDS[next(WORDS.len())]).collect();
        let text = words.join([" ", ", ", "\n", "-"][next(4)]);
        texts.push((post(&store, rooms[n % 2], &text).await, text));
    }
    for room in rooms {
        assert!(index(&store, room).await >= 1);
        assert_eq!(store.index_messages(room).await.unwrap(), IndexStep::Done);
    }
    for one in WORDS {
        for other in ["", "gre", "Zurich", "room", "日", "strasse", "name v1"] {
            let query = format!("{one} {other}");
            let parsed = SearchQuery::parse(&query);
            let mut expected: Vec<MessageId> =
                texts.iter().filter(|(_, text)| parsed.score(text).is_some()).map(|(id, _)| *id).collect();
            let mut hits = found(&store, &me(), &query).await;
            expected.sort_unstable();
            hits.sort_unstable();
            assert_eq!(hits, expected, "{query:?}");
        }
    }
    assert!(!found(&store, &me(), "green").await.is_empty() && !found(&store, &me(), "日本").await.is_empty());
    store.shut_down().await;
}

async fn any_text_is_a_query(database: TestDatabase) {
    let store = database.open().await;
    let here = room(&store).await;
    let odd = "a\"b'c* (d) NEAR/2 {e} ^f :g -h +i & | ! <-> \\ % _ ; \u{0} \u{e000} 😀 ' OR 1=1 --";
    post(&store, here, odd).await;
    index(&store, here).await;
    let letters: Vec<char> = odd.chars().collect();
    for from in 0..letters.len() {
        for to in [from + 1, from + 3, letters.len()] {
            let query: String = letters[from..to.min(letters.len())].iter().collect();
            let hits = found(&store, &me(), &query).await;
            assert_eq!(hits.len(), usize::from(SearchQuery::parse(&query).score(odd).is_some()), "{query:?}");
        }
    }
    store.shut_down().await;
}

async fn pages_go_from_newest_to_oldest(database: TestDatabase) {
    let store = database.open().await;
    let here = room(&store).await;
    let mut posted = Vec::new();
    for n in 0..70 {
        posted.push(post(&store, here, &format!("word {n}")).await);
        if n == 40 {
            index(&store, here).await;
        }
    }
    assert_eq!(store.take_changed_rooms(), Some(vec![here]));
    assert!(index(&store, here).await >= 1);
    let (mut below, mut seen) = (None, Vec::new());
    loop {
        let page = store.search_messages(&me(), &SearchQuery::parse("wor"), below, 20).await.unwrap();
        let Some(last) = page.last() else { break };
        below = Some(last.entry);
        seen.extend(page.iter().map(|found| found.message.id));
    }
    posted.reverse();
    assert_eq!(seen, posted);
    store.shut_down().await;
}

async fn invariant_15_owner_messages_of_others_are_not_found(database: TestDatabase) {
    let store = database.open().await;
    let (mine, theirs) = (room(&store).await, room_of(&store, &stranger()).await);
    let (own, other) = (post(&store, mine, "shared secret").await, post(&store, theirs, "shared secret").await);
    for room in [mine, theirs] {
        index(&store, room).await;
    }
    assert_eq!(found(&store, &me(), "secret").await, [own]);
    assert_eq!(found(&store, &stranger(), "secret").await, [other]);
    store.delete_room(&by(&me()), mine, None).await.unwrap();
    assert!(found(&store, &me(), "secret").await.is_empty(), "a deleted room is hidden at once");
    store.shut_down().await;
}

async fn m8_nothing_of_an_erased_room_is_in_the_index(database: TestDatabase) {
    let store = database.open().await;
    let (kept, deleted) = (room(&store).await, room(&store).await);
    post(&store, kept, "keptqx").await;
    for n in 0..120 {
        post(&store, deleted, &format!("markqx number{n}")).await;
    }
    for room in [kept, deleted] {
        index(&store, room).await;
    }
    store.delete_room(&by(&me()), deleted, None).await.unwrap();
    let erasure = store.due_erasures(Duration::ZERO, 0, 10).await.unwrap().remove(0);
    let files = store.find_erased_files(&erasure).await.unwrap();
    while within(store.erase_rows(&erasure, &files)).await.unwrap() == ErasureStep::More {
        // An indexer that is late brings nothing back.
        assert_eq!(store.index_messages(deleted).await.unwrap(), IndexStep::Done);
    }
    store.finish_erasure(&erasure).await.unwrap();
    store.shut_down().await;
    let dump = DatabaseDump::read(&database).await;
    // The blocks of the index are shown as hexadecimal digits.
    for text in ["markqx", "6d61726b7178", "number1", "6e756d626572"] {
        assert!(dump.tables_with(text, &[]).is_empty(), "{text}: {:?}", dump.tables_with(text, &[]));
    }
    assert!(!dump.tables_with("keptqx", &["events", "messages"]).is_empty());
    let store = database.open().await;
    assert_eq!(found(&store, &me(), "keptqx").await.len(), 1);
    store.shut_down().await;
}

async fn a_dropped_index_is_filled_again(database: TestDatabase) {
    let store = database.open().await;
    let here = room(&store).await;
    let posted = post(&store, here, "again and again").await;
    index(&store, here).await;
    let nobody = RoomId(uuid::Uuid::nil());
    assert_eq!(store.unindexed_rooms(nobody).await.unwrap(), (Vec::new(), None));
    store.drop_search_index().await.unwrap();
    assert!(found(&store, &me(), "again").await.is_empty());
    assert_eq!(store.unindexed_rooms(nobody).await.unwrap(), (vec![here], None));
    index(&store, here).await;
    index(&store, here).await;
    assert_eq!(found(&store, &me(), "again").await, [posted]);
    store.shut_down().await;
}

/// A commit waits for at most one step of the indexer.
async fn commits_go_on_while_messages_are_indexed(database: TestDatabase) {
    let store = database.open().await;
    let (old, busy) = (room(&store).await, room(&store).await);
    let text: String = (0..2000).map(|n| format!("word{n} ")).collect();
    for _ in 0..60 {
        post(&store, old, &text).await;
    }
    let (mut indexing, shared) = (JoinSet::new(), (*store).clone());
    indexing.spawn(async move { index(&shared, old).await });
    let mut longest = Duration::ZERO;
    let steps = loop {
        let begun = Instant::now();
        post(&store, busy, "short").await;
        longest = longest.max(begun.elapsed());
        if let Some(steps) = indexing.try_join_next() {
            break steps.unwrap();
        }
    };
    assert!(steps > 3, "in several steps");
    assert!(longest < Duration::from_secs(2), "a commit took {longest:?}");
    store.shut_down().await;
}

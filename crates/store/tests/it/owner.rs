//! The owner is in every query: a foreign id and an unknown id look the same (invariant 15).

use crate::{
    idempotent::spec,
    scene::{TestRun, append, at, attempt, by, me, name, room, says, stranger},
};
use domain::{
    ids::{AgentId, MessageId, RoomId, RunId},
    message::{Author, Message, MessageStatus},
    owner::Owner,
    time::Timestamp,
};
use std::{fmt::Debug, sync::Arc};
use store::{
    RunFilter, Store, StoreError, TranscriptRange,
    journal::{Commit, RowChange, SeqRef},
    notify::Notifier,
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        invariant_15_owner_a_foreign_id_looks_like_an_unknown_id,
        invariant_15_owner_lists_contain_only_own_objects;
}

struct OwnedObjects {
    room: RoomId,
    agent: AgentId,
    run: RunId,
    message: MessageId,
}

async fn owned_objects(store: &Store) -> OwnedObjects {
    let room = room(store).await;
    let agent = store.create_agent(&by(&me()), spec("mine"), Some(&attempt("key", 1))).await.unwrap().id;
    let run = TestRun { agent, ..TestRun::new() };
    let message = Message {
        id: run.message,
        room_id: room,
        seq: 0,
        author: Author::Person { name: name("me"), user_id: None },
        run_id: None,
        status: MessageStatus::Complete,
        text: String::new(),
        thinking: String::new(),
        parts: Vec::new(),
        attachments: Vec::new(),
        created_at: Timestamp::now(),
    };
    let mut commit = run.queueing(room);
    commit.changes.insert(0, RowChange::PutMessage { message, seq: SeqRef::Event(0) });
    commit.changes.push(RowChange::Join { agent_id: agent });
    store.commit(commit).await.unwrap();
    store.commit(Commit { ..append(room, vec![says("mine")]) }).await.unwrap();
    OwnedObjects { room, agent, run: run.id, message: run.message }
}

fn is_unknown<T: Debug>(what: &str, foreign: Result<T, StoreError>, unknown: Result<T, StoreError>) {
    assert!(matches!(foreign, Err(StoreError::NotFound)), "{what}: {foreign:?}");
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{what}: {unknown:?}");
}

/// Runs the same query for a foreign object and for one that does not exist.
macro_rules! same {
    ($($what:literal: |$id:ident in [$foreign:expr, $unknown:expr]| $call:expr;)+) => {
        $({
            let foreign = { let $id = $foreign; $call };
            let unknown = { let $id = $unknown; $call };
            is_unknown($what, foreign, unknown);
        })+
    };
}

async fn invariant_15_owner_a_foreign_id_looks_like_an_unknown_id(database: TestDatabase) {
    let store = database.open().await;
    let mine = owned_objects(&store).await;
    let them: &Owner = &stranger();
    let (no_room, no_agent) = (RoomId::generate(), AgentId::generate());
    let bell = || Arc::new(Notifier::default());
    same! {
        "head": |id in [mine.room, no_room]| store.head(them, id).await;
        "page": |id in [mine.room, no_room]| store.page(them, id, &at(0), 10, true).await;
        "history": |id in [mine.room, no_room]| store.history(them, id, 0, None, 10).await;
        "said_before": |id in [mine.room, no_room]| store.messages_before_run(them, id, TranscriptRange { posts_before: 9, answers_until: 9 }, None, 10).await;
        "follow": |id in [mine.room, no_room]| store.follow(them, id, &at(0), bell()).await.map(|_| ());
        "follow beyond": |id in [mine.room, no_room]| store.follow(them, id, &at(99), bell()).await.map(|_| ());
        "room": |id in [mine.room, no_room]| store.room(them, id).await;
        "seating": |id in [mine.room, no_room]| store.room_with_agents(them, id).await;
        "delete_room": |id in [mine.room, no_room]| store.delete_room(&by(them), id, None).await;
        "remembered_tools": |id in [mine.room, no_room]| store.remembered_tools(them, id).await;
        "forget_tool": |id in [mine.room, no_room]| store.forget_tool(&by(them), id, mine.agent, "Bash").await;
        "agent": |id in [mine.agent, no_agent]| store.agent(them, id).await;
        "update_agent": |id in [mine.agent, no_agent]| store.update_agent(&by(them), id, spec("x"), None).await;
        "delete_agent": |id in [mine.agent, no_agent]| store.delete_agent(&by(them), id, None).await;
        "run": |id in [mine.run, RunId::generate()]| store.run(them, id).await;
        "message": |id in [mine.message, MessageId::generate()]| store.message(them, mine.room, id).await;
        "room_of_message": |id in [mine.message, MessageId::generate()]| store.room_of_message(them, id).await;
    }
    assert_eq!(store.room(&me(), mine.room).await.unwrap().name, name("a room"), "nothing was changed");
    assert_eq!(store.agent(&me(), mine.agent).await.unwrap().spec, spec("mine"));
}

async fn invariant_15_owner_lists_contain_only_own_objects(database: TestDatabase) {
    let store = database.open().await;
    let mine = owned_objects(&store).await;
    let them = stranger();
    assert!(store.agents(&them).await.unwrap().is_empty());
    assert!(store.rooms(&them, 100).await.unwrap().is_empty());
    assert!(store.unfinished_runs(&them, mine.room).await.unwrap().is_empty());
    let filters = [
        RunFilter { limit: 100, ..RunFilter::default() },
        RunFilter { room_id: Some(mine.room), limit: 100, ..RunFilter::default() },
        RunFilter { message_id: Some(mine.message), limit: 100, ..RunFilter::default() },
    ];
    for filter in filters {
        assert!(store.runs(&them, &filter).await.unwrap().is_empty());
        assert_eq!(store.runs(&me(), &filter).await.unwrap().len(), 1);
    }
    assert_eq!(store.earlier_result(&them, &attempt("key", 1)).await.unwrap(), None);
    assert!(store.earlier_result(&me(), &attempt("key", 1)).await.unwrap().is_some());
    assert_eq!(store.unfinished_runs(&me(), mine.room).await.unwrap(), [mine.run]);
    assert_eq!(store.room_with_agents(&me(), mine.room).await.unwrap().1.len(), 1);
    // Being a participant of a foreign room does not reveal it either.
    let theirs = store.create_agent(&by(&them), spec("theirs"), None).await.unwrap();
    let join = Commit { changes: vec![RowChange::Join { agent_id: theirs.id }], ..append(mine.room, Vec::new()) };
    store.commit(join).await.unwrap();
    assert!(store.rooms(&them, 100).await.unwrap().is_empty());
    assert!(matches!(store.room(&them, mine.room).await, Err(StoreError::NotFound)));
}

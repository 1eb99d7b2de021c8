//! Rooms: list, rename, delete; and pages of their journals.

use crate::scene::{TestRun, append, at, by, creating, journal, me, name, renaming, room, says};
use domain::{
    ids::{MessageId, ProjectId},
    message::{Author, Message, MessageStatus},
    position::Seq,
    project::{Project, ProjectSettings},
    room::{RoomPolicy, WhenBusy},
    time::Timestamp,
};
use store::{
    StoreError,
    journal::{Commit, RowChange, SeqRef},
};
use testkit::database::TestDatabase;

contract! {
    one thread:
        a_room_reads_back_as_created,
        rooms_are_listed_most_recently_active_first,
        a_deleted_room_is_not_found,
        a_page_respects_its_event_limit,
        a_page_respects_its_byte_limit,
        raw_provider_data_is_stored_and_returned_only_on_request;
}

async fn a_room_reads_back_as_created(database: TestDatabase) {
    let store = database.open().await;
    let mut commit = creating(&me());
    let (project, now) = (ProjectId::generate(), Timestamp::default());
    let (settings, folder) = (ProjectSettings::default(), None);
    let row = Project { id: project, name: name("A project"), folder, settings, created_at: now, updated_at: now };
    store.create_project(&by(&me()), &row, 1, None).await.unwrap();
    if let RowChange::CreateRoom { room, .. } = &mut commit.changes[0] {
        room.name = name("Grüner Raum");
        room.project_id = Some(project);
        room.policy = RoomPolicy { when_busy: WhenBusy::Reject, ..RoomPolicy::default() };
    }
    let id = commit.room_id;
    commit.events.push(says("hello"));
    assert_eq!(store.commit(commit).await.unwrap().first_seq, 1);
    let room = store.room(&me(), id).await.unwrap();
    assert_eq!((room.id, &room.name, room.project_id, room.head), (id, &name("Grüner Raum"), Some(project), 1));
    assert_eq!(room.policy, RoomPolicy { when_busy: WhenBusy::Reject, ..RoomPolicy::default() });
    assert_eq!(store.rooms(&me(), 10).await.unwrap()[0].room, room);

    let policy = RoomPolicy { when_busy: WhenBusy::Interrupt, ..RoomPolicy::default() };
    store.commit(renaming(id, &name("Other"), &policy, None)).await.unwrap();
    let changed = store.room(&me(), id).await.unwrap();
    assert_eq!((&changed.name, &changed.policy, changed.head), (&name("Other"), &policy, 1));
    let twice = Commit { room_id: id, ..creating(&me()) };
    let RowChange::CreateRoom { room: mut again, owner } = twice.changes.into_iter().next().unwrap() else {
        unreachable!()
    };
    again.id = id;
    let twice = Commit { changes: vec![RowChange::CreateRoom { owner, room: again }], ..append(id, vec![says("x")]) };
    assert!(store.commit(twice).await.is_err());
    assert_eq!(store.room(&me(), id).await.unwrap(), changed, "a room is created once");
}

async fn rooms_are_listed_most_recently_active_first(database: TestDatabase) {
    let store = database.open().await;
    let mut rooms = Vec::new();
    for _ in 0..4 {
        rooms.push(room(&store).await);
    }
    let message = Message {
        id: MessageId::generate(),
        room_id: rooms[1],
        seq: 0,
        author: Author::Person { name: name("someone"), user_id: None },
        run_id: None,
        status: MessageStatus::Complete,
        text: String::new(),
        thinking: String::new(),
        parts: Vec::new(),
        attachments: Vec::new(),
        created_at: Timestamp::now(),
    };
    let before = store.room(&me(), rooms[1]).await.unwrap().updated_at;
    let put = RowChange::PutMessage { message, seq: SeqRef::Event(0) };
    store.commit(Commit { changes: vec![put], ..append(rooms[1], vec![says("active")]) }).await.unwrap();
    let listed = store.rooms(&me(), 10).await.unwrap();
    assert_eq!(listed.len(), 4);
    assert!(listed.iter().map(|listed| listed.room.updated_at).is_sorted_by(|newer, older| newer >= older));
    assert!(listed.iter().find(|listed| listed.room.id == rooms[1]).unwrap().room.updated_at >= before);
    assert_eq!(store.rooms(&me(), 2).await.unwrap(), listed[..2]);
    assert!(store.rooms(&me(), 0).await.unwrap().is_empty());
}

async fn a_deleted_room_is_not_found(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    store.commit(append(room, vec![says("1")])).await.unwrap();
    let run = TestRun::queued(&store, room).await;
    store.delete_room(&by(&me()), room, None).await.unwrap();
    assert!(matches!(store.delete_room(&by(&me()), room, None).await, Err(StoreError::NotFound)));
    assert!(matches!(store.room(&me(), room).await, Err(StoreError::NotFound)));
    assert!(matches!(store.head(&me(), room).await, Err(StoreError::NotFound)));
    assert!(matches!(store.page(&me(), room, &at(0), 10, false).await, Err(StoreError::NotFound)));
    assert!(matches!(store.history(&me(), room, 0, None, 10).await, Err(StoreError::NotFound)));
    assert!(store.rooms(&me(), 10).await.unwrap().is_empty());
    let policy = RoomPolicy::default();
    assert!(matches!(store.commit(renaming(room, &name("x"), &policy, None)).await, Err(StoreError::NotFound)));
    let unclaimed = store::journal::Guard::Unclaimed { run_id: run.id };
    store.commit(run.ending(room, unclaimed)).await.expect("an unfinished run can still be ended");
}

async fn a_page_respects_its_event_limit(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    store.commit(append(room, (0..30).map(|n| says(n.to_string())).collect())).await.unwrap();
    for (after, limit, expected) in
        [(0, 10, 1..=10), (10, 10, 11..=20), (25, 10, 26..=30), (0, 1, 1..=1), (0, 10_000, 1..=30)]
    {
        let page = store.page(&me(), room, &at(after), limit, false).await.unwrap();
        assert!(page.events.iter().map(|event| event.seq).eq(expected));
        assert_eq!(page.head, 30);
    }
    assert!(store.page(&me(), room, &at(30), 10, false).await.unwrap().events.is_empty());
}

async fn a_page_respects_its_byte_limit(database: TestDatabase) {
    const MEGABYTE: usize = 1024 * 1024;
    let store = database.open().await;
    let room = room(&store).await;
    for n in 0..7 {
        let large = says("x".repeat(MEGABYTE)).with_raw(Some(format!("\"{}\"", n.to_string().repeat(MEGABYTE))));
        store.commit(append(room, vec![large])).await.unwrap();
    }
    for with_raw in [false, true] {
        let (mut after, mut pages) = (0, 0);
        while after < 7 {
            let page = store.page(&me(), room, &at(after), 100, with_raw).await.unwrap();
            let bytes: usize =
                page.events.iter().map(|event| event.data.len() + event.raw.as_ref().map_or(0, String::len)).sum();
            assert!(bytes < 6 * MEGABYTE + 1000, "{bytes}");
            assert_eq!(page.events[0].seq, after + 1);
            after += page.events.len() as Seq;
            pages += 1;
        }
        assert_eq!(pages, if with_raw { 4 } else { 2 });
    }
    assert_eq!(journal(&store, room).await.len(), 7, "a truncated page does not break the connection");
}

async fn raw_provider_data_is_stored_and_returned_only_on_request(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let raw = "{\"lone\":\"\\ud800\",\"nul\":\"\\u0000\",\n \"spaces\" : 1.0e2}";
    store.commit(append(room, vec![says("a").with_raw(Some(raw.into())), says("b")])).await.unwrap();
    let without = store.page(&me(), room, &at(0), 10, false).await.unwrap();
    assert!(without.events.iter().all(|event| event.raw.is_none()));
    let with = store.page(&me(), room, &at(0), 10, true).await.unwrap();
    assert_eq!(with.events[0].raw.as_deref(), Some(raw), "byte for byte");
    assert_eq!(with.events[1].raw, None);
}

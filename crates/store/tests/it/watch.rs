//! A watch of all rooms of an owner reports which of them changed.

use crate::scene::{append, by, me, name, renaming, room, room_of, says, stranger, within};
use domain::{ids::RoomId, room::RoomPolicy};
use std::collections::BTreeSet;
use testkit::database::TestDatabase;

contract! {
    many threads: a_watch_reports_its_rooms_and_list_changes;
}

async fn a_watch_reports_its_rooms_and_list_changes(database: TestDatabase) {
    let store = database.open().await;
    let (one, two, theirs) = (room(&store).await, room(&store).await, room_of(&store, &stranger()).await);
    let mut watch = store.watch(&me());
    watch.set_rooms(BTreeSet::from([one, two]));
    let moved = async |expected: &[RoomId], list: bool| {
        within(watch.changed()).await;
        let moved = watch.take_changes();
        assert_eq!((moved.rooms, moved.room_list), (expected.iter().copied().collect(), list));
    };
    store.commit(append(theirs, vec![says("x")])).await.unwrap();
    room_of(&store, &stranger()).await;
    for n in 0..50 {
        store.commit(append(two, vec![says(n.to_string())])).await.unwrap();
    }
    moved(&[two], false).await;
    let made = room(&store).await;
    moved(&[], true).await;
    store.commit(renaming(made, &name("new name"), &RoomPolicy::default(), None)).await.unwrap();
    moved(&[], true).await;
    store.delete_room(&by(&me()), made, None).await.unwrap();
    moved(&[], true).await;

    let mut watch = watch;
    watch.set_rooms(BTreeSet::from([one]));
    store.commit(append(two, vec![says("not watched any more")])).await.unwrap();
    store.commit(append(one, vec![says("watched")])).await.unwrap();
    within(watch.changed()).await;
    assert_eq!(watch.take_changes().rooms, BTreeSet::from([one]));
}

//! What workspaces use of the server.

use crate::scene::{TestRun, append, by, me, name, room, room_of, says, stranger};
use domain::{ids::UploadId, scope::Scopes, time::Timestamp, upload::Upload};
use store::{Membership, NamedRun, NewToken, RunFilter};
use testkit::database::TestDatabase;

contract! {
    one thread:
        h5_stored_bytes_are_counted_by_workspace,
        h5_rooms_are_counted_up_to_a_limit,
        h5_the_operator_sees_the_runs_of_all_workspaces;
}

async fn h5_stored_bytes_are_counted_by_workspace(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let empty = store.stored_bytes(&me()).await.unwrap();
    let text = "x".repeat(1000);
    for _ in 0..3 {
        store.commit(append(room, vec![says(&text), says(&text).with_raw(Some(text.clone()))])).await.unwrap();
    }
    let events = store.page(&me(), room, &crate::scene::at(0), 100, true).await.unwrap().events;
    let expected: usize = events.iter().map(|event| event.data.len() + event.raw.as_ref().map_or(0, String::len)).sum();
    let stored = store.stored_bytes(&me()).await.unwrap();
    assert_eq!(stored, expected as u64, "every byte of the journal");
    assert!(stored >= empty + 9000, "{stored}");
    let upload = Upload {
        id: UploadId::generate(),
        name: name("a.txt"),
        media_type: "text/plain".into(),
        bytes: 5000,
        created_at: Timestamp::now(),
    };
    store.add_uploads(&by(&me()), &[upload], None).await.unwrap();
    assert_eq!(store.stored_bytes(&me()).await.unwrap(), stored + 5000);
    store.delete_room(&by(&me()), room, None).await.unwrap();
    assert_eq!(store.stored_bytes(&me()).await.unwrap(), stored + 5000, "what is stored counts, deleted or not");
    assert_eq!(store.stored_bytes(&stranger()).await.unwrap(), 0);
}

async fn h5_rooms_are_counted_up_to_a_limit(database: TestDatabase) {
    let store = database.open().await;
    let rooms = [room(&store).await, room(&store).await, room(&store).await];
    room_of(&store, &stranger()).await;
    assert_eq!(store.room_count(&me(), 10).await.unwrap(), 3);
    assert_eq!(store.room_count(&me(), 2).await.unwrap(), 2, "no more than asked for are counted");
    store.delete_room(&by(&me()), rooms[0], None).await.unwrap();
    assert_eq!(store.room_count(&me(), 10).await.unwrap(), 2);
}

async fn h5_the_operator_sees_the_runs_of_all_workspaces(database: TestDatabase) {
    let store = database.open().await;
    let token = NewToken { label: name("a token"), hash: [7; 32], scopes: Scopes::ALL, expires_at: None };
    store.create_token(&by(&stranger()), &Membership::alone(&stranger()), &token).await.unwrap();
    let (mine, theirs) = (room(&store).await, room_of(&store, &stranger()).await);
    let run = TestRun::queued(&store, mine).await;
    let other = TestRun::new();
    store.commit(other.queueing_for(&stranger(), theirs)).await.unwrap();
    let all = store.named_runs_of_all(&RunFilter { limit: 10, ..RunFilter::default() }).await.unwrap();
    let mut seen: Vec<_> = all.iter().map(|NamedRun { workspace, run, .. }| (workspace.clone(), run.id)).collect();
    seen.sort_by_key(|(_, run)| *run != other.id);
    assert_eq!(seen, [(stranger(), other.id), (me(), run.id)]);
    assert_eq!(store.workspace_of_run(other.id).await.unwrap(), stranger());
    let uses = store.workspace_uses(10).await.unwrap();
    let used = |workspace| uses.iter().find(|used| used.workspace == workspace).unwrap();
    assert_eq!((used(stranger()).rooms, used(stranger()).unfinished_runs), (1, 1));
    assert_eq!(used(stranger()).stored_bytes, store.stored_bytes(&stranger()).await.unwrap());
    assert_eq!((used(me()).rooms, used(me()).unfinished_runs), (1, 1));
}

//! Room summaries.

use crate::scene::{TestRun, append, claim, held, me, name, room, says};
use domain::{
    ids::{MessageId, RoomId},
    message::{Author, Message, MessageStatus},
    run::RunStatus,
    time::Timestamp,
};
use store::journal::{Commit, RowChange, SeqRef};
use testkit::database::TestDatabase;

contract! {
    one thread: a_summary_shows_activity, a_summary_shows_the_last_message;
}

async fn a_summary_shows_activity(database: TestDatabase) {
    let store = database.open().await;
    let (busy, idle) = (room(&store).await, room(&store).await);
    let state = async || {
        let rooms = store.rooms(&me(), 10).await.unwrap();
        let of = |id| rooms.iter().find(|summary| summary.room.id == id).unwrap().clone();
        assert_eq!(
            store.room_summary(&me(), busy).await.unwrap(),
            of(busy),
            "one summary equals its entry in the list"
        );
        assert_eq!((of(idle).busy, of(idle).waiting, of(idle).last_message), (false, false, None));
        (of(busy).busy, of(busy).waiting)
    };
    assert_eq!(state().await, (false, false));
    let run = TestRun::queued(&store, busy).await;
    assert_eq!(state().await, (true, false));
    let claims = claim(&store, "w").await;
    for status in [RunStatus::Running, RunStatus::WaitingForApproval] {
        let changes = vec![RowChange::RunStatus { run_id: run.id, status }];
        store.commit(Commit { changes, ..append(busy, vec![run.says("asks")]) }).await.unwrap();
    }
    assert_eq!(state().await, (true, true));
    store.commit(run.ending(busy, held(&claims[0]))).await.unwrap();
    assert_eq!(state().await, (false, false));
}

fn message(room_id: RoomId, text: &str) -> Message {
    Message {
        id: MessageId::generate(),
        room_id,
        seq: 0,
        author: Author::Person { name: name("someone"), user_id: None },
        run_id: None,
        status: MessageStatus::Complete,
        text: text.into(),
        thinking: String::new(),
        parts: Vec::new(),
        attachments: Vec::new(),
        created_at: Timestamp::from_millis(1_763_200_000_250),
    }
}

async fn a_summary_shows_the_last_message(database: TestDatabase) {
    let store = database.open().await;
    let room = room(&store).await;
    let long = "🎭\u{0}".repeat(150);
    for (text, expected) in [("hello", "hello"), (&long, &long.chars().take(200).collect::<String>()), ("", "…")] {
        let put = RowChange::PutMessage { message: message(room, text), seq: SeqRef::Event(0) };
        let commit = Commit { changes: vec![put], ..append(room, vec![says("x")]) };
        let seq = store.commit(commit).await.unwrap().first_seq;
        let last = store.room_summary(&me(), room).await.unwrap().last_message.unwrap();
        if text.is_empty() {
            assert_eq!(last.seq + 1, seq, "an empty message changes nothing");
        } else {
            assert_eq!((last.seq, last.text.as_str()), (seq, expected));
            assert_eq!(last.author, Author::Person { name: name("someone"), user_id: None });
            assert_eq!(last.created_at, Timestamp::from_millis(1_763_200_000_250));
        }
    }
}

//! A message for an answer that is under way.

use crate::scene::{Stage, Turn, me, told};
use domain::{
    event::EventBody,
    ids::{MessageId, RoomId, RunId},
    room::WhenBusy,
    run::RunStatus,
};
use engine::{
    Error,
    commands::{Posted, RunRef},
};
use providers::{Kept, TurnCommand, TurnEnd, TurnEvent};
use store::Attempt;
use testkit::database::TestDatabase;

contract! {
    a_message_is_taken_into_the_answer,
    a_message_that_is_refused_gets_a_run_of_its_own,
    a_message_that_comes_too_late_gets_a_run_of_its_own,
    an_idle_room_answers_as_usual,
    who_cannot_be_steered_says_so_and_nothing_is_stored,
    a_client_that_goes_away_is_answered_all_the_same,
    what_was_taken_is_known_to_the_session,
}

/// Posts a message to be steered, while the test plays the provider.
async fn steer(stage: &Stage, room: RoomId, turn: &mut Turn, answer: impl AsyncFnOnce(&mut Turn, MessageId)) -> Posted {
    let attempt = attempt();
    let posting = stage.steer(room, &[], Some(&attempt));
    let playing = async {
        let TurnCommand::Steer { message, text } = turn.told().await else { panic!("a message to take") };
        assert_eq!(text, "left");
        answer(turn, message).await;
    };
    let (posted, ()) = tokio::join!(posting, playing);
    posted.unwrap()
}

fn attempt() -> Attempt {
    Attempt { key: "steer".into(), fingerprint: [7; 32] }
}

async fn takes(turn: &mut Turn, message: MessageId) {
    turn.says(TurnEvent::Steered { message, taken: true }).await;
}

/// The messages that a run says it has taken.
async fn taken_by(stage: &Stage, room: RoomId, run: RunId) -> Vec<MessageId> {
    let events = stage.store.run_events(room, run, 0).await.unwrap();
    let taken = events.iter().filter_map(|event| match event.body().unwrap() {
        EventBody::Status(status) if status.status == "steered" => status.message_id,
        _ => None,
    });
    taken.collect()
}

async fn again(stage: &Stage, room: RoomId) -> Vec<RunRef> {
    stage.steer(room, &[], Some(&attempt())).await.unwrap().runs
}

async fn a_message_is_taken_into_the_answer(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let running = stage.post(room, "one").await.runs[0];
    let mut turn = stage.turn().await;
    turn.text("going right").await;
    let posted = steer(&stage, room, &mut turn, takes).await;
    assert_eq!(posted.runs, [running], "the run that is under way answers it");
    assert_eq!(taken_by(&stage, room, running.id).await, [posted.message.id], "it is stored when it is acknowledged");
    assert_eq!(again(&stage, room).await, [running], "the same request is answered alike");
    turn.text(", now left").await;
    turn.completes();
    assert_eq!(stage.ended(running.id).await.status, RunStatus::Completed);
    assert!(stage.store.unfinished(&me(), room).await.unwrap().is_empty(), "no other run");
    stage.stop().await;
}

async fn a_message_that_is_refused_gets_a_run_of_its_own(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let running = stage.post(room, "one").await.runs[0];
    let mut turn = stage.turn().await;
    let refuses = async |turn: &mut Turn, message| turn.says(TurnEvent::Steered { message, taken: false }).await;
    let posted = steer(&stage, room, &mut turn, refuses).await;
    assert_eq!((posted.runs.len(), posted.runs[0].agent_id), (1, ann.id));
    assert_ne!(posted.runs[0], running);
    assert_eq!(again(&stage, room).await, posted.runs);
    assert!(taken_by(&stage, room, running.id).await.is_empty());
    turn.completes();
    let turn = stage.turn().await;
    assert_eq!(turn.request.prompt, "left");
    turn.completes();
    assert_eq!(stage.ended(posted.runs[0].id).await.status, RunStatus::Completed);
    stage.stop().await;
}

async fn a_message_that_comes_too_late_gets_a_run_of_its_own(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.post(room, "one").await;
    let mut turn = stage.turn().await;
    let posting = stage.steer(room, &[], None);
    let playing = async {
        assert!(matches!(turn.told().await, TurnCommand::Steer { .. }));
        // It had ended already when the message reached it.
        turn.completes();
    };
    let (posted, ()) = tokio::join!(posting, playing);
    let turn = stage.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.request.run_id), ("left", posted.unwrap().runs[0].id));
    turn.completes();
    stage.stop().await;
}

async fn an_idle_room_answers_as_usual(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let bob = stage.agent("Bob", "q").await;
    let room = stage.room(&[&bob]).await;
    let posted = stage.post_when(room, "one", WhenBusy::Steer, &[]).await;
    let turn = stage.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.request.run_id), ("one", posted.runs[0].id));
    turn.completes();
    stage.stop().await;
}

async fn who_cannot_be_steered_says_so_and_nothing_is_stored(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let bob = stage.agent("Bob", "q").await;
    let room = stage.room(&[&bob]).await;
    stage.post(room, "one").await;
    let turn = stage.turn().await;
    let head = stage.store.room(&me(), room).await.unwrap().head;
    match stage.steer(room, &[], None).await {
        Err(Error::Unsupported(why)) => assert!(why.contains("Bob") && why.contains("provider q"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(stage.store.room(&me(), room).await.unwrap().head, head);
    turn.completes();
    stage.stop().await;
}

async fn a_client_that_goes_away_is_answered_all_the_same(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.post(room, "one").await;
    let mut turn = stage.turn().await;
    let message = tokio::select! {
        posted = stage.steer(room, &[], None) => panic!("{posted:?}"),
        told = turn.told() => match told {
            TurnCommand::Steer { message, .. } => message,
            other => panic!("{other:?}"),
        },
    };
    turn.says(TurnEvent::Steered { message, taken: false }).await;
    turn.completes();
    let turn = stage.turn().await;
    assert_eq!(turn.request.prompt, "left");
    turn.completes();
    stage.stop().await;
}

/// It is not told again, and what was said between to somebody else still is.
async fn what_was_taken_is_known_to_the_session(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let (ann, bob) = (stage.agent("Ann", "p").await, stage.agent("Bob", "p").await);
    for (between, kept, missed) in [
        (false, Kept::PromptAndAnswer, vec![]),
        (false, Kept::Prompt, vec!["you: right", "local: left"]),
        (false, Kept::Nothing, vec!["local: one", "you: right", "local: left"]),
        (true, Kept::PromptAndAnswer, vec!["local: psst", "local: left", "Bob: yes?"]),
    ] {
        let room = stage.room(&[&ann, &bob]).await;
        let asked = [ann.id];
        let running = stage.post_when(room, "one", WhenBusy::Enqueue, &asked).await.runs[0];
        let mut turn = stage.turn().await;
        turn.session("s").await;
        turn.text("right").await;
        if between {
            stage.post_when(room, "psst", WhenBusy::Enqueue, &[bob.id]).await;
        }
        let posting = stage.steer(room, &asked, None);
        let playing = async {
            let TurnCommand::Steer { message, .. } = turn.told().await else { panic!("a message to take") };
            takes(&mut turn, message).await;
        };
        let (posted, ()) = tokio::join!(posting, playing);
        assert_eq!(posted.unwrap().runs, [running]);
        turn.ends(TurnEnd::Completed, kept);
        if between {
            stage.turn().await.answers("b", "yes?").await;
        }
        stage.post_when(room, "two", WhenBusy::Enqueue, &asked).await;
        let turn = stage.turn().await;
        assert_eq!((turn.agent(), turn.request.prompt.as_str()), (ann.id, "two"));
        assert_eq!(told(&turn.resumed().unheard), missed, "{between} {kept:?}");
        turn.completes();
    }
    stage.stop().await;
}

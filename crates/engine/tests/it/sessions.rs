//! What a provider's own session is told, and what it is not told twice.

use crate::scene::{Stage, Turn, me, told};
use domain::{
    agent::AgentSpec,
    event::Interruption,
    room::WhenBusy,
    run::{RunError, RunStatus},
};
use providers::{Kept, TurnCommand, TurnEnd};
use testkit::database::TestDatabase;

contract! {
    a_session_is_resumed_and_told_only_what_it_does_not_know,
    agents_hear_each_other,
    an_agent_hears_what_it_was_not_asked,
    an_answer_that_ends_while_one_is_asked_is_told,
    what_waited_in_the_queue_is_not_told_twice,
    an_interrupted_turn_is_told_as_far_as_its_session_lost_it,
    a_failed_turn_is_told_as_far_as_its_session_lost_it,
    a_session_that_was_replaced_knows_nothing,
    after_a_crash_the_session_is_told_what_it_may_have_lost,
    another_provider_has_a_session_of_its_own,
}

fn unheard(turn: &Turn) -> Vec<String> {
    told(&turn.resumed().unheard)
}

async fn a_session_is_resumed_and_told_only_what_it_does_not_know(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let first = stage.post(room, "one").await.runs[0].id;
    let turn = stage.turn().await;
    assert_eq!((turn.request.prompt.as_str(), &turn.request.session), ("one", &None));
    assert!(turn.history().await.is_empty());
    turn.answers("s", "1").await;
    stage.ended(first).await;
    let session = stage.store.provider_session(room, ann.id, "p").await.unwrap().unwrap();
    assert!(session.heard_seq > 0 && session.spoke_seq > Some(session.heard_seq), "{session:?}");

    let second = stage.post(room, "two").await.runs[0].id;
    let turn = stage.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.resumed().id.as_str()), ("two", "s"));
    assert_eq!(turn.history().await, ["local: one", "you: 1"], "should the session be gone");
    assert!(unheard(&turn).is_empty(), "{:?}", unheard(&turn));
    turn.answers("s", "2").await;
    stage.ended(second).await;
    let other = stage.room(&[&ann]).await;
    stage.post(other, "elsewhere").await;
    assert_eq!(stage.turn().await.request.session, None, "a room of its own, a session of its own");
    stage.stop().await;
}

async fn agents_hear_each_other(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let (ann, bob) = (stage.agent("Ann", "p").await, stage.agent("Bob", "p").await);
    let room = stage.room(&[&ann, &bob]).await;
    let expected: [(&str, [&[&str]; 2]); 3] = [
        ("one", [&[], &["Ann: Ann on one"]]),
        ("two", [&["Bob: Bob on one"], &["Ann: Ann on two"]]),
        ("three", [&["Bob: Bob on two"], &["Ann: Ann on three"]]),
    ];
    for (text, missed) in expected {
        let posted = stage.post(room, text).await;
        for ((agent, name), missed) in [(&ann, "Ann"), (&bob, "Bob")].into_iter().zip(missed) {
            let turn = stage.turn().await;
            assert_eq!((turn.agent(), turn.request.prompt.as_str()), (agent.id, text));
            match text {
                "one" => assert_eq!(turn.history().await, missed, "{name} on {text}"),
                _ => assert_eq!(unheard(&turn), missed, "{name} on {text}"),
            }
            turn.answers(name, &format!("{name} on {text}")).await;
        }
        stage.ended(posted.runs[1].id).await;
    }
    stage.stop().await;
}

async fn an_agent_hears_what_it_was_not_asked(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let (ann, bob) = (stage.agent("Ann", "p").await, stage.agent("Bob", "p").await);
    let room = stage.room(&[&ann, &bob]).await;
    for (who, text) in [(&ann, "hi Ann"), (&bob, "hi Bob"), (&bob, "bye Bob")] {
        let posted = stage.post_when(room, text, WhenBusy::Enqueue, &[who.id]).await;
        stage.turn().await.answers(&who.id.to_string(), &format!("to {text}")).await;
        stage.ended(posted.runs[0].id).await;
    }
    stage.post_when(room, "Ann?", WhenBusy::Enqueue, &[ann.id]).await;
    let turn = stage.turn().await;
    let missed = ["local: hi Bob", "Bob: to hi Bob", "local: bye Bob", "Bob: to bye Bob"];
    assert_eq!(unheard(&turn), missed);
    turn.completes();
    stage.stop().await;
}

/// What a run reads ahead, while its message is being stored, must not miss what happens in that moment.
async fn an_answer_that_ends_while_one_is_asked_is_told(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let (ann, bob) = (stage.agent("Ann", "p").await, stage.agent("Bob", "p").await);
    let room = stage.room(&[&ann, &bob]).await;
    let posted = stage.post_when(room, "hello", WhenBusy::Enqueue, &[ann.id]).await;
    stage.turn().await.answers("Ann", "hi").await;
    stage.ended(posted.runs[0].id).await;
    for round in 0..20 {
        stage.post_when(room, "Bob?", WhenBusy::Enqueue, &[bob.id]).await;
        let (turn, answer) = (stage.turn().await, format!("answer {round}"));
        let (whom, ending) = ([ann.id], turn.answers("Bob", &answer));
        let (posted, ()) = tokio::join!(stage.post_when(room, "Ann?", WhenBusy::Enqueue, &whom), ending);
        let turn = stage.turn().await;
        assert_eq!((turn.agent(), unheard(&turn)), (ann.id, vec!["local: Bob?".into(), format!("Bob: {answer}")]));
        turn.answers("Ann", "heard").await;
        stage.ended(posted.runs[0].id).await;
    }
    stage.stop().await;
}

/// While the first is answered two more are said: each is answered in its turn, and each is known once it was.
async fn what_waited_in_the_queue_is_not_told_twice(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.post(room, "one").await;
    let first = stage.turn().await;
    stage.post(room, "two").await;
    let last = stage.post(room, "three").await.runs[0].id;
    assert!(first.history().await.is_empty(), "what is said later waits for its own turn");
    first.answers("s", "1").await;
    for (prompt, answer) in [("two", "2"), ("three", "3")] {
        let turn = stage.turn().await;
        assert_eq!((turn.request.prompt.as_str(), unheard(&turn)), (prompt, vec![]));
        turn.answers("s", answer).await;
    }
    stage.ended(last).await;
    stage.post(room, "four").await;
    let turn = stage.turn().await;
    assert!(unheard(&turn).is_empty(), "{:?}", unheard(&turn));
    let history = ["local: one", "you: 1", "local: two", "local: three", "you: 2", "you: 3"];
    assert_eq!(turn.history().await, history);
    turn.completes();
    stage.stop().await;
}

async fn an_interrupted_turn_is_told_as_far_as_its_session_lost_it(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let cases: [(Kept, &[&str]); 3] =
        [(Kept::Nothing, &["local: two", "you: part"]), (Kept::Prompt, &["you: part"]), (Kept::PromptAndAnswer, &[])];
    for (kept, missed) in cases {
        let room = stage.room(&[&ann]).await;
        stage.talk(room, "one", "s", "1").await;
        let interrupted = stage.post(room, "two").await.runs[0].id;
        let mut turn = stage.turn().await;
        turn.session("s").await;
        turn.text("part").await;
        let words = seen(&stage, interrupted, "part");
        crate::scene::within("the part to be seen", words).await;
        let last = stage.post_when(room, "three", WhenBusy::Interrupt, &[]).await.runs[0].id;
        assert_eq!(turn.told().await, TurnCommand::Interrupt);
        turn.text(" and what came too late").await;
        turn.ends(TurnEnd::Stopped, kept);
        let turn = stage.turn().await;
        let ended = stage.engine.store().run(&me(), interrupted).await.unwrap();
        assert_eq!(ended.status, RunStatus::Interrupted, "it has ended before the next one begins");
        assert_eq!(
            (turn.request.prompt.as_str(), unheard(&turn).as_slice()),
            ("three", &owned(missed)[..]),
            "{kept:?}"
        );
        turn.answers("s", "3").await;
        stage.ended(last).await;
        stage.post(room, "four").await;
        let turn = stage.turn().await;
        assert!(unheard(&turn).is_empty(), "told once: {:?}", unheard(&turn));
        turn.completes();
    }
    stage.stop().await;
}

async fn a_failed_turn_is_told_as_far_as_its_session_lost_it(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.talk(room, "one", "s", "1").await;
    let failing = stage.post(room, "two").await.runs[0].id;
    let turn = stage.turn().await;
    turn.ends(TurnEnd::Failed(RunError::new("api_error", "try later")), Kept::Prompt);
    assert_eq!(stage.ended(failing).await.status, RunStatus::Failed);
    stage.post(room, "three").await;
    let turn = stage.turn().await;
    assert!(unheard(&turn).is_empty(), "it has the prompt, and nothing was said: {:?}", unheard(&turn));
    turn.completes();
    stage.stop().await;
}

async fn a_session_that_was_replaced_knows_nothing(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    for (kept, missed) in [(Kept::PromptAndAnswer, 0), (Kept::Nothing, 4)] {
        let room = stage.room(&[&ann]).await;
        stage.talk(room, "one", "old", "1").await;
        let run = stage.post(room, "two").await.runs[0].id;
        let turn = stage.turn().await;
        turn.session("new").await;
        turn.session("new").await;
        turn.text("2").await;
        turn.ends(TurnEnd::Completed, kept);
        stage.ended(run).await;
        stage.post(room, "three").await;
        let turn = stage.turn().await;
        assert_eq!((turn.resumed().id.as_str(), turn.resumed().unheard.len()), ("new", missed), "{kept:?}");
        turn.completes();
    }
    stage.stop().await;
}

async fn after_a_crash_the_session_is_told_what_it_may_have_lost(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    stage.talk(room, "one", "s", "1").await;
    let before = stage.store.provider_session(room, ann.id, "p").await.unwrap();
    let lost = stage.post(room, "two").await.runs[0].id;
    let turn = stage.turn().await;
    turn.session("s").await;
    turn.text("part").await;
    crate::scene::within("the part to be seen", seen(&stage, lost, "part")).await;
    stage.crash().await;
    stage.start().await;
    let ended = stage.ended(lost).await;
    assert_eq!(ended.status, RunStatus::Interrupted);
    let events = stage.store.run_events(room, lost, ended.queued_seq).await.unwrap();
    let last = events.last().unwrap().body().unwrap();
    let domain::event::EventBody::RunInterrupted(end) = last else { panic!("{last:?}") };
    assert_eq!(end.reason, Interruption::Crash);
    assert_eq!(stage.store.provider_session(room, ann.id, "p").await.unwrap(), before, "it knows no more than before");
    drop(turn);
    stage.post(room, "three").await;
    let turn = stage.turn().await;
    assert_eq!(unheard(&turn), ["local: two", "you: part"]);
    turn.completes();
    stage.stop().await;
}

async fn another_provider_has_a_session_of_its_own(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let switch = async |stage: &Stage, provider: &str| {
        let spec = AgentSpec { provider: provider.into(), ..ann.spec.clone() };
        stage.store.update_agent(&me(), ann.id, spec, None).await.unwrap();
    };
    stage.talk(room, "one", "with p", "1").await;
    switch(&stage, "q").await;
    let run = stage.post(room, "two").await.runs[0].id;
    let turn = stage.turn().await;
    assert_eq!(turn.request.session, None);
    assert_eq!(turn.history().await, ["local: one", "you: 1"]);
    turn.answers("with q", "2").await;
    stage.ended(run).await;
    switch(&stage, "p").await;
    stage.post(room, "three").await;
    let turn = stage.turn().await;
    assert_eq!((turn.resumed().id.as_str(), unheard(&turn)), ("with p", owned(&["local: two", "you: 2"])));
    turn.completes();
    stage.stop().await;
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Waits until the run's answer so far is this.
async fn seen(stage: &Stage, run: domain::ids::RunId, text: &str) {
    let room = stage.store.run(&me(), run).await.unwrap().room_id;
    loop {
        let history = stage.store.history(&me(), room, 0, None, 100).await.unwrap();
        if history.messages.iter().any(|message| message.run_id == Some(run) && message.text == text) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

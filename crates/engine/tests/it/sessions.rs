//! Which messages a provider's own session receives, and that it receives none twice.

use crate::harness::{EngineHarness, TestTurn, me, transcript_lines};
use domain::{
    agent::AgentSpec,
    event::Interruption,
    room::WhenBusy,
    run::{RunError, RunStatus},
};
use providers::{SavedInSession, TurnCommand, TurnEnd};
use testkit::database::TestDatabase;

contract! {
    a_resumed_session_receives_only_missed_messages,
    agents_receive_each_others_answers,
    an_agent_receives_messages_to_other_agents,
    an_answer_that_ends_during_a_post_is_not_missed,
    queued_messages_are_not_sent_twice,
    after_an_interruption_the_session_receives_what_it_lost,
    after_a_failure_the_session_receives_what_it_lost,
    a_replaced_session_receives_everything,
    after_a_crash_the_session_receives_what_it_may_have_lost,
    each_provider_has_its_own_session,
}

fn missed_messages(turn: &TestTurn) -> Vec<String> {
    transcript_lines(&turn.session_to_resume().missed)
}

async fn a_resumed_session_receives_only_missed_messages(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let first = harness.post(room, "one").await.runs[0].id;
    let turn = harness.turn().await;
    assert_eq!((turn.request.prompt.as_str(), &turn.request.session), ("one", &None));
    assert!(turn.history().await.is_empty());
    turn.answer("s", "1").await;
    harness.ended(first).await;
    let session = harness.store.provider_session(room, ann.id, "p").await.unwrap().unwrap();
    assert!(session.heard_seq > 0 && session.answer_seq > Some(session.heard_seq), "{session:?}");
    // What the turn knew was read before its answer, at the latest when its run had started (on a slow machine).
    assert!(session.spoke_seq.is_some() && session.spoke_seq <= session.answer_seq, "{session:?}");

    let second = harness.post(room, "two").await.runs[0].id;
    let turn = harness.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.session_to_resume().id.as_str()), ("two", "s"));
    assert_eq!(turn.history().await, ["local: one", "you: 1"], "the history for a lost session");
    assert!(missed_messages(&turn).is_empty(), "{:?}", missed_messages(&turn));
    turn.answer("s", "2").await;
    harness.ended(second).await;
    let other = harness.room(&[&ann]).await;
    harness.post(other, "elsewhere").await;
    assert_eq!(harness.turn().await.request.session, None, "another room has another session");
    harness.stop().await;
}

async fn agents_receive_each_others_answers(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    let expected: [(&str, [&[&str]; 2]); 3] = [
        ("one", [&[], &["Ann: Ann on one"]]),
        ("two", [&["Bob: Bob on one"], &["Ann: Ann on two"]]),
        ("three", [&["Bob: Bob on two"], &["Ann: Ann on three"]]),
    ];
    for (text, missed) in expected {
        let posted = harness.post(room, text).await;
        for ((agent, name), missed) in [(&ann, "Ann"), (&bob, "Bob")].into_iter().zip(missed) {
            let turn = harness.turn().await;
            assert_eq!((turn.agent(), turn.request.prompt.as_str()), (agent.id, text));
            // What came before the question, then what was answered to it.
            let mut heard = if text == "one" { turn.history().await } else { missed_messages(&turn) };
            heard.extend(turn.later());
            assert_eq!(heard, missed, "{name} on {text}");
            assert_eq!(turn.later().is_empty(), name == "Ann", "Bob answers after Ann");
            turn.answer(name, &format!("{name} on {text}")).await;
        }
        harness.ended(posted.runs[1].id).await;
    }
    harness.stop().await;
}

async fn an_agent_receives_messages_to_other_agents(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    for (who, text) in [(&ann, "hi Ann"), (&bob, "hi Bob"), (&bob, "bye Bob")] {
        let posted = harness.post_when(room, text, WhenBusy::Enqueue, &[who.id]).await;
        harness.turn().await.answer(&who.id.to_string(), &format!("to {text}")).await;
        harness.ended(posted.runs[0].id).await;
    }
    harness.post_when(room, "Ann?", WhenBusy::Enqueue, &[ann.id]).await;
    let turn = harness.turn().await;
    let missed = ["local: hi Bob", "Bob: to hi Bob", "local: bye Bob", "Bob: to bye Bob"];
    assert_eq!(missed_messages(&turn), missed);
    turn.complete();
    harness.stop().await;
}

/// The prefetch runs during the commit of the message and must not miss events of that moment.
async fn an_answer_that_ends_during_a_post_is_not_missed(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    let posted = harness.post_when(room, "hello", WhenBusy::Enqueue, &[ann.id]).await;
    harness.turn().await.answer("Ann", "hi").await;
    harness.ended(posted.runs[0].id).await;
    for round in 0..20 {
        harness.post_when(room, "Bob?", WhenBusy::Enqueue, &[bob.id]).await;
        let (turn, answer) = (harness.turn().await, format!("answer {round}"));
        let (whom, ending) = ([ann.id], turn.answer("Bob", &answer));
        let (posted, ()) = tokio::join!(harness.post_when(room, "Ann?", WhenBusy::Enqueue, &whom), ending);
        let turn = harness.turn().await;
        assert_eq!(
            (turn.agent(), missed_messages(&turn)),
            (ann.id, vec!["local: Bob?".into(), format!("Bob: {answer}")])
        );
        turn.answer("Ann", "heard").await;
        harness.ended(posted.runs[0].id).await;
    }
    harness.stop().await;
}

/// Two messages are posted during the first answer: each is answered in turn, and the session then knows it.
async fn queued_messages_are_not_sent_twice(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.post(room, "one").await;
    let first = harness.turn().await;
    harness.post(room, "two").await;
    let last = harness.post(room, "three").await.runs[0].id;
    assert!(first.history().await.is_empty(), "later messages wait for their own turn");
    first.answer("s", "1").await;
    for (prompt, answer) in [("two", "2"), ("three", "3")] {
        let turn = harness.turn().await;
        assert_eq!((turn.request.prompt.as_str(), missed_messages(&turn)), (prompt, vec![]));
        turn.answer("s", answer).await;
    }
    harness.ended(last).await;
    harness.post(room, "four").await;
    let turn = harness.turn().await;
    assert!(missed_messages(&turn).is_empty(), "{:?}", missed_messages(&turn));
    let history = ["local: one", "you: 1", "local: two", "local: three", "you: 2", "you: 3"];
    assert_eq!(turn.history().await, history);
    turn.complete();
    harness.stop().await;
}

async fn after_an_interruption_the_session_receives_what_it_lost(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let cases: [(SavedInSession, &[&str]); 3] = [
        (SavedInSession::Nothing, &["local: two", "you: part"]),
        (SavedInSession::Prompt, &["you: part"]),
        (SavedInSession::PromptAndAnswer, &[]),
    ];
    for (kept, missed) in cases {
        let room = harness.room(&[&ann]).await;
        harness.post_and_answer(room, "one", "s", "1").await;
        let interrupted = harness.post(room, "two").await.runs[0].id;
        let mut turn = harness.turn().await;
        turn.session("s").await;
        turn.text("part").await;
        let stored = wait_for_text(&harness, interrupted, "part");
        crate::harness::within("the stored part", stored).await;
        let last = harness.post_when(room, "three", WhenBusy::Interrupt, &[]).await.runs[0].id;
        assert_eq!(turn.next_command().await, TurnCommand::Interrupt);
        turn.text(" and what came too late").await;
        turn.end(TurnEnd::Stopped, kept);
        let turn = harness.turn().await;
        let ended = harness.store.run(&me().workspace, interrupted).await.unwrap();
        assert_eq!(ended.status, RunStatus::Interrupted, "it has ended before the next run starts");
        assert_eq!(
            (turn.request.prompt.as_str(), missed_messages(&turn).as_slice()),
            ("three", &owned(missed)[..]),
            "{kept:?}"
        );
        turn.answer("s", "3").await;
        harness.ended(last).await;
        harness.post(room, "four").await;
        let turn = harness.turn().await;
        assert!(missed_messages(&turn).is_empty(), "sent once: {:?}", missed_messages(&turn));
        turn.complete();
    }
    harness.stop().await;
}

async fn after_a_failure_the_session_receives_what_it_lost(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.post_and_answer(room, "one", "s", "1").await;
    let failing = harness.post(room, "two").await.runs[0].id;
    let turn = harness.turn().await;
    turn.end(TurnEnd::Failed(RunError::new("api_error", "try later")), SavedInSession::Prompt);
    assert_eq!(harness.ended(failing).await.status, RunStatus::Failed);
    harness.post(room, "three").await;
    let turn = harness.turn().await;
    assert!(
        missed_messages(&turn).is_empty(),
        "the session has the prompt, and there was no answer: {:?}",
        missed_messages(&turn)
    );
    turn.complete();
    harness.stop().await;
}

async fn a_replaced_session_receives_everything(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    for (kept, missed) in [(SavedInSession::PromptAndAnswer, 0), (SavedInSession::Nothing, 4)] {
        let room = harness.room(&[&ann]).await;
        harness.post_and_answer(room, "one", "old", "1").await;
        let run = harness.post(room, "two").await.runs[0].id;
        let turn = harness.turn().await;
        turn.session("new").await;
        turn.session("new").await;
        turn.text("2").await;
        turn.end(TurnEnd::Completed, kept);
        harness.ended(run).await;
        harness.post(room, "three").await;
        let turn = harness.turn().await;
        assert_eq!(
            (turn.session_to_resume().id.as_str(), turn.session_to_resume().missed.len()),
            ("new", missed),
            "{kept:?}"
        );
        turn.complete();
    }
    harness.stop().await;
}

async fn after_a_crash_the_session_receives_what_it_may_have_lost(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    harness.post_and_answer(room, "one", "s", "1").await;
    let before = harness.store.provider_session(room, ann.id, "p").await.unwrap();
    let lost = harness.post(room, "two").await.runs[0].id;
    let turn = harness.turn().await;
    turn.session("s").await;
    turn.text("part").await;
    crate::harness::within("the stored part", wait_for_text(&harness, lost, "part")).await;
    harness.crash().await;
    harness.start().await;
    let ended = harness.ended(lost).await;
    assert_eq!(ended.status, RunStatus::Interrupted);
    let events = harness.store.run_events(room, lost, ended.queued_seq).await.unwrap();
    let last = events.last().unwrap().body().unwrap();
    let domain::event::EventBody::RunInterrupted(end) = last else { panic!("{last:?}") };
    assert_eq!(end.reason, Interruption::Crash);
    assert_eq!(harness.store.provider_session(room, ann.id, "p").await.unwrap(), before, "its marks are unchanged");
    drop(turn);
    harness.post(room, "three").await;
    let turn = harness.turn().await;
    assert_eq!(missed_messages(&turn), ["local: two", "you: part"]);
    turn.complete();
    harness.stop().await;
}

async fn each_provider_has_its_own_session(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let switch = async |harness: &EngineHarness, provider: &str| {
        let spec = AgentSpec { provider: provider.into(), ..ann.spec.clone() };
        harness.store.update_agent(&me(), ann.id, spec, None).await.unwrap();
    };
    harness.post_and_answer(room, "one", "with p", "1").await;
    switch(&harness, "q").await;
    let run = harness.post(room, "two").await.runs[0].id;
    let turn = harness.turn().await;
    assert_eq!(turn.request.session, None);
    assert_eq!(turn.history().await, ["local: one", "you: 1"]);
    turn.answer("with q", "2").await;
    harness.ended(run).await;
    switch(&harness, "p").await;
    harness.post(room, "three").await;
    let turn = harness.turn().await;
    assert_eq!(
        (turn.session_to_resume().id.as_str(), missed_messages(&turn)),
        ("with p", owned(&["local: two", "you: 2"]))
    );
    turn.complete();
    harness.stop().await;
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Waits until the run's stored text is this.
async fn wait_for_text(harness: &EngineHarness, run: domain::ids::RunId, text: &str) {
    let room = harness.store.run(&me().workspace, run).await.unwrap().room_id;
    loop {
        let history = harness.store.history(&me().workspace, room, 0, None, 100).await.unwrap();
        if history.messages.iter().any(|message| message.run_id == Some(run) && message.text == text) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

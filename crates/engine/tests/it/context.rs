//! What an agent in company is told: who is here, what was said and in which order, and what can be read back of it.

use crate::harness::{EngineHarness, TestTurn, me, transcript_lines};
use domain::{
    agent::{Agent, AgentSpec},
    event::EventType,
    name::Name,
    position::Position,
    room::{MemberSettings, RoomPolicy, TurnOrder, WhenBusy},
    run::RunStatus,
};
use engine::ContextMessage;
use providers::{RoomRequest, SavedInSession, TurnCommand, TurnEnd, TurnEvent};
use testkit::database::TestDatabase;

contract! {
    a_question_comes_before_its_answers,
    the_system_prompt_says_who_is_here,
    a_critic_is_read_by_people_only,
    agents_react_until_all_skip,
    an_agent_ends_the_round_and_whispers,
    an_interrupted_answer_is_marked,
    another_provider_in_the_middle_of_a_room_gets_the_whole_history,
}

/// Agents that speak in the order given.
fn by_priority(agents: &[&Agent], policy: RoomPolicy) -> RoomPolicy {
    let priority =
        |at: usize| MemberSettings { priority: 10 - i32::try_from(at).unwrap(), ..MemberSettings::default() };
    let members = agents.iter().enumerate().map(|(at, agent)| (agent.id, priority(at))).collect();
    RoomPolicy { members, ..policy }
}

fn lines(messages: &[ContextMessage]) -> Vec<String> {
    messages.iter().map(|said| format!("{}: {}", said.by.as_deref().unwrap_or("you"), said.text)).collect()
}

/// The context that can be read back is what the provider got.
async fn assert_read_back(harness: &EngineHarness, turn: &TestTurn) {
    turn.text("so").await;
    let run = turn.request.run_id;
    let context = loop {
        match harness.engine.run_context(&me(), run).await {
            Ok(context) => break context,
            Err(engine::EngineError::NotFound) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(context.system_prompt, turn.request.agent().spec.system_prompt);
    assert_eq!(
        (context.prompt.text.as_str(), context.prompt.by.as_deref()),
        (turn.request.prompt.as_str(), Some("local"))
    );
    assert_eq!(lines(&context.after), turn.later());
    let before = match &turn.request.session {
        Some(session) => transcript_lines(&session.missed),
        None => turn.history().await,
    };
    assert_eq!(lines(&context.before), before);
    assert_eq!(context.session_id, turn.request.session.as_ref().map(|session| session.id.clone()));
}

async fn a_question_comes_before_its_answers(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room_with(&[&ann, &bob], by_priority(&[&ann, &bob], RoomPolicy::for_new_room())).await;
    for (text, missed) in [("one", None), ("two", Some(vec!["Bob: soBob on one".to_owned()]))] {
        harness.post(room, text).await;
        let turn = harness.turn().await;
        assert_eq!((turn.agent(), turn.later()), (ann.id, vec![]));
        assert_eq!(turn.request.session.as_ref().map(|session| transcript_lines(&session.missed)), missed);
        assert_read_back(&harness, &turn).await;
        turn.answer("a", &format!("Ann on {text}")).await;
        let turn = harness.turn().await;
        assert_eq!((turn.agent(), turn.request.prompt.as_str()), (bob.id, text));
        assert_eq!(turn.later(), [format!("Ann: soAnn on {text}")]);
        let known = turn.request.session.as_ref().map(|session| transcript_lines(&session.missed));
        assert_eq!(known.unwrap_or_default(), Vec::<String>::new(), "its session knows the rest");
        assert_read_back(&harness, &turn).await;
        let run = turn.request.run_id;
        turn.answer("b", &format!("Bob on {text}")).await;
        harness.ended(run).await;
    }
    harness.stop().await;
}

async fn the_system_prompt_says_who_is_here(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let ann = AgentSpec { system_prompt: Some("Be brief.".into()), ..AgentSpec::new(Name::parse("Ann").unwrap(), "p") };
    let (ann, bob) = (harness.agent_of(ann).await, harness.agent("Bob", "p").await);
    let room = harness.room(&[&ann, &bob]).await;
    harness.post(room, "hi").await;
    let turn = harness.turn().await;
    let prompt = turn.request.agent().spec.system_prompt.clone().unwrap();
    assert!(prompt.starts_with("Be brief.\n\nYou are Ann") && prompt.contains("other agents: Bob."), "{prompt}");
    assert!(turn.request.workspace.has_company);
    let prepared = harness.seen.prepared.lock().unwrap().iter().find(|place| place.agent.id == ann.id).cloned();
    assert_eq!(prepared.unwrap().agent.spec.system_prompt, Some(prompt), "a warm process has the same prompt");
    turn.complete();
    harness.turn().await.complete();
    let alone = harness.room(&[&ann]).await;
    harness.post(alone, "hi").await;
    let turn = harness.turn().await;
    assert_eq!(turn.request.agent().spec.system_prompt.as_deref(), Some("Be brief."), "an agent that is alone");
    assert!(!turn.request.workspace.has_company);
    turn.complete();
    harness.stop().await;
}

async fn a_critic_is_read_by_people_only(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (critic, bob) = (harness.agent("Critic", "p").await, harness.agent("Bob", "p").await);
    let mut policy = by_priority(&[&critic, &bob], RoomPolicy::for_new_room());
    policy.members.get_mut(&critic.id).unwrap().critic = true;
    let room = harness.room_with(&[&critic, &bob], policy).await;
    for text in ["one", "two"] {
        harness.post(room, text).await;
        let turn = harness.turn().await;
        assert_eq!(turn.agent(), critic.id);
        turn.answer("c", "I object").await;
        let turn = harness.turn().await;
        assert_eq!((turn.agent(), turn.later()), (bob.id, vec![]));
        assert!(!turn.history().await.iter().any(|line| line.contains("object")));
        let run = turn.request.run_id;
        turn.answer("b", "fine").await;
        harness.ended(run).await;
    }
    let history = harness.store.history(&me().workspace, room, 0, None, 100).await.unwrap();
    assert_eq!(history.messages.iter().filter(|message| message.text == "I object").count(), 2, "people read it");
    harness.stop().await;
}

async fn agents_react_until_all_skip(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let policy = RoomPolicy { follow_up: true, ..RoomPolicy::for_new_room() };
    let room = harness.room_with(&[&ann, &bob], by_priority(&[&ann, &bob], policy)).await;
    harness.post(room, "what now?").await;
    harness.turn().await.answer("a", "left").await;
    harness.turn().await.answer("b", "right").await;
    let turn = harness.turn().await;
    assert_eq!(turn.agent(), ann.id);
    assert!(turn.request.prompt.starts_with("It is your turn again."), "{}", turn.request.prompt);
    assert_eq!(transcript_lines(&turn.session_to_resume().missed), ["Bob: right"]);
    assert_eq!(turn.history().await, ["local: what now?", "you: left", "Bob: right"], "in the order it was said");
    assert_read_back(&harness, &turn).await;
    turn.answer("a", " be it").await;
    let turn = harness.turn().await;
    assert_eq!(
        (turn.agent(), transcript_lines(&turn.session_to_resume().missed)),
        (bob.id, vec!["Ann: so be it".into()])
    );
    turn.report(TurnEvent::Room(RoomRequest::Skip)).await;
    turn.text("I skip.").await;
    turn.complete();
    // Bob has skipped, so only he has something to react to.
    let turn = harness.turn().await;
    assert_eq!(turn.agent(), bob.id);
    let last = turn.request.run_id;
    turn.end(TurnEnd::Skipped, SavedInSession::Prompt);
    assert_eq!(harness.ended(last).await.status, RunStatus::Completed);
    assert_eq!(harness.store.tape(room).await.unwrap(), None);
    assert!(harness.store.unfinished_runs(&me().workspace, room).await.unwrap().is_empty());
    let page = harness.store.page(&me().workspace, room, &Position::START, 1000, false).await.unwrap();
    let skipped: Vec<bool> = page
        .events
        .iter()
        .filter(|event| event.kind == EventType::StreamEnd)
        .map(|event| event.data.contains("\"skipped\":true"))
        .collect();
    assert_eq!(skipped, [false, false, false, true, true]);
    assert!(!page.events.iter().any(|event| event.data.contains("I skip.")), "nothing is shown of a skipped turn");
    harness.stop().await;
}

async fn an_agent_ends_the_round_and_whispers(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let policy = RoomPolicy { follow_up: true, ..RoomPolicy::for_new_room() };
    let room = harness.room_with(&[&ann, &bob], by_priority(&[&ann, &bob], policy)).await;
    harness.post(room, "what now?").await;
    let turn = harness.turn().await;
    turn.report(TurnEvent::Room(RoomRequest::Whisper("a secret".into()))).await;
    turn.answer("a", "left").await;
    let turn = harness.turn().await;
    assert!(!turn.later().iter().chain(&turn.history().await).any(|line| line.contains("secret")), "for people only");
    turn.report(TurnEvent::Room(RoomRequest::EndRound)).await;
    let last = turn.request.run_id;
    turn.answer("b", "left it is").await;
    harness.ended(last).await;
    assert_eq!(harness.store.tape(room).await.unwrap(), None);
    assert!(harness.store.unfinished_runs(&me().workspace, room).await.unwrap().is_empty(), "no follow-up round");
    let page = harness.store.page(&me().workspace, room, &Position::START, 1000, false).await.unwrap();
    let whispers =
        page.events.iter().filter(|event| event.kind == EventType::Status && event.data.contains("a secret"));
    assert_eq!(whispers.count(), 1);
    harness.stop().await;
}

async fn an_interrupted_answer_is_marked(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let policy = RoomPolicy { kind: TurnOrder::Concurrent, ..RoomPolicy::for_new_room() };
    let room = harness.room_with(&[&ann, &bob], policy).await;
    harness.post(room, "tell me").await;
    let (mut one, mut two) = (harness.turn().await, harness.turn().await);
    one.text("Once upon").await;
    two.text("In the beginning").await;
    harness.post_when(room, "shorter", WhenBusy::Interrupt, &[ann.id]).await;
    for turn in [&mut one, &mut two] {
        assert_eq!(turn.next_command().await, TurnCommand::Interrupt);
    }
    let first = if one.agent() == ann.id { "you: Once upon" } else { "you: In the beginning" };
    let other = if one.agent() == ann.id { "Bob: In the beginning" } else { "Bob: Once upon" };
    one.end(TurnEnd::Stopped, SavedInSession::Nothing);
    two.end(TurnEnd::Stopped, SavedInSession::Nothing);
    let turn = harness.turn().await;
    assert_eq!(turn.request.prompt, "shorter");
    let mut history = turn.history().await;
    history[1..].sort();
    let cut = |line: &str| format!("{line}\n[The answer was cut off here.]");
    assert_eq!(history, ["local: tell me".to_owned(), cut(other), cut(first)]);
    turn.complete();
    harness.stop().await;
}

async fn another_provider_in_the_middle_of_a_room_gets_the_whole_history(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "p").await);
    let room = harness.room_with(&[&ann, &bob], by_priority(&[&ann, &bob], RoomPolicy::for_new_room())).await;
    harness.post(room, "one").await;
    harness.turn().await.answer("a", "1").await;
    let turn = harness.turn().await;
    let run = turn.request.run_id;
    turn.answer("b", "I").await;
    harness.ended(run).await;
    let spec = AgentSpec { provider: "q".into(), model: Some("other".into()), ..ann.spec.clone() };
    harness.store.update_agent(&me(), ann.id, spec, None).await.unwrap();
    for (provider, session) in [("q", None), ("p", Some("a"))] {
        harness.post(room, "two").await;
        let turn = harness.turn().await;
        assert_eq!((turn.agent(), turn.request.agent().spec.provider.as_str()), (ann.id, provider));
        assert_eq!(turn.request.session.as_ref().map(|session| session.id.as_str()), session);
        match session {
            None => assert_eq!(turn.history().await, ["local: one", "you: 1", "Bob: I"]),
            Some(_) => assert!(transcript_lines(&turn.session_to_resume().missed).contains(&"you: 2".to_owned())),
        }
        turn.answer(&format!("new {provider}"), "2").await;
        let turn = harness.turn().await;
        let run = turn.request.run_id;
        turn.answer("b", "II").await;
        harness.ended(run).await;
        // Back to the first provider, whose session has missed what the other one said.
        harness.store.update_agent(&me(), ann.id, ann.spec.clone(), None).await.unwrap();
    }
    harness.stop().await;
}

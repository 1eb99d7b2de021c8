//! From turn to turn: what stays warm, what is resumed, what has to wait.

use super::double::{SESSION, Theatre};
use crate::{Provider as _, Session, SkillFolder, Speaker, Spoken, TurnCommand, TurnEnd, TurnEvent, TurnRequest};
use domain::mcp::{Server, Transport};
use serde_json::json;
use std::{fs, time::Duration};

fn arguments(command: &workbench::process::Command) -> Vec<String> {
    command.args.iter().map(|arg| arg.to_str().unwrap().to_owned()).collect()
}

fn resumes(command: &workbench::process::Command) -> bool {
    arguments(command).contains(&format!("--resume={SESSION}"))
}

#[tokio::test(start_paused = true)]
async fn the_second_turn_is_warm_and_is_told_only_what_it_missed() {
    let theatre = Theatre::new(1, 0);
    let mut actor = theatre.warmed().await;
    let missed = Spoken::new(Speaker::OtherAgent("Bob".into()), "I disagree");
    let request = TurnRequest {
        history: vec![Spoken::new(Speaker::Person("ann".into()), "say hello"), missed.clone()].into(),
        session: Some(Session { id: SESSION.into(), unheard: vec![missed] }),
        ..theatre.request("and now?")
    };
    let running = theatre.begin(request);
    let prompt = actor.prompt().await;
    let said = prompt["message"]["content"].as_str().unwrap();
    assert!(said.contains("I disagree") && said.ends_with("and now?") && !said.contains("say hello"), "{said}");
    actor.answer(&prompt, "Fine").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stored_session_is_resumed_in_a_new_process() {
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.resuming("recall"));
    let mut actor = theatre.actor().await;
    assert!(resumes(&actor.command));
    actor.greet().await;
    let prompt = actor.prompt().await;
    assert_eq!(prompt["message"]["content"], "recall");
    actor.answer(&prompt, "I remember").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_is_rebuilt_from_what_was_said() {
    let theatre = Theatre::new(1, 0);
    let history = vec![Spoken::new(Speaker::Person("ann".into()), "my cat is Tom")].into();
    let running = theatre.begin(TurnRequest { history, ..theatre.resuming("who is Tom?") });
    let mut first = theatre.actor().await;
    first.hear().await;
    first.hear().await;
    let gone = format!("No conversation found with session ID: {SESSION}");
    first.say(json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": [gone]})).await;
    let mut second = theatre.actor().await;
    assert!(!resumes(&second.command));
    second.greet().await;
    let prompt = second.prompt().await;
    assert!(prompt["message"]["content"].as_str().unwrap().contains("my cat is Tom"));
    second.answer(&prompt, "Your cat").await;
    let (outcome, events) = running.both().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    let rebuilt = |event: &&TurnEvent| matches!(event, TurnEvent::Status { status, .. } if status == "session_rebuilt");
    assert_eq!(events.iter().filter(rebuilt).count(), 1, "{events:?}");
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_died_while_it_was_idle_is_replaced_without_a_word() {
    let theatre = Theatre::new(1, 0);
    drop(theatre.warmed().await);
    let running = theatre.begin(theatre.resuming("still there?"));
    let mut second = theatre.actor().await;
    assert!(resumes(&second.command));
    second.greet().await;
    let prompt = second.prompt().await;
    second.answer(&prompt, "Yes").await;
    let (outcome, events) = running.both().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Status { .. })), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_dies_of_the_prompt_itself_is_replaced_once() {
    let theatre = Theatre::new(1, 0);
    let mut first = theatre.warmed().await;
    let running = theatre.begin(theatre.resuming("boom"));
    first.hear().await;
    drop(first);
    let mut second = theatre.actor().await;
    second.hear().await;
    drop(second);
    let outcome = running.outcome().await;
    assert!(matches!(&outcome.end, TurnEnd::Failed(error) if error.code == "program_crashed"), "{outcome:?}");
    assert_eq!(theatre.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_whose_conversation_nobody_remembers_is_not_used_for_a_new_one() {
    let theatre = Theatre::new(1, 0);
    let _warm = theatre.warmed().await;
    let running = theatre.begin(theatre.request("who are you?"));
    assert!(!resumes(&theatre.actor().await.command));
    running.turn.abort();

    // Nor is one that had a prompt but was stopped before it said which conversation this is.
    let theatre = Theatre::new(1, 0);
    let running = theatre.begin(theatre.request("hello"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.hear().await;
    running.tell(TurnCommand::Interrupt).await;
    actor.be_interrupted(&prompt).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
    let running = theatre.begin(theatre.request("hello"));
    theatre.actor().await;
    running.turn.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_fixed_at_the_start_makes_a_new_process_when_it_changes() {
    type Change = fn(&mut TurnRequest);
    let changes: [(&str, Change); 3] = [
        ("system prompt", |request| request.place.agent.spec.system_prompt = Some("Be brief.".into())),
        ("MCP servers", |request| {
            let transport = Transport::Http { url: "http://127.0.0.1:1/".into(), headers: [].into() };
            request.place.mcp_servers = vec![Server::new("shop", transport)];
        }),
        ("skills", |request| {
            let path = request.place.home.join("greet");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("SKILL.md"), "---\nname: greet\n---\n").unwrap();
            request.place.skills = vec![SkillFolder { name: "greet".into(), path }];
        }),
    ];
    for (what, change) in changes {
        let theatre = Theatre::new(1, 0);
        let mut first = theatre.warmed().await;
        let mut request = theatre.resuming("again");
        change(&mut request);
        let running = theatre.begin(request);
        let mut second = theatre.actor().await;
        assert!(resumes(&second.command), "{what}");
        assert!(first.is_let_go().await, "{what}");
        second.greet().await;
        let prompt = second.prompt().await;
        second.answer(&prompt, "Yes").await;
        assert_eq!(running.outcome().await.end, TurnEnd::Completed, "{what}");
        assert_eq!(theatre.alive(), 1, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_fixed_makes_no_new_process() {
    let theatre = Theatre::new(1, 0);
    let mut actor = theatre.warmed().await;
    let mut request = theatre.resuming("again");
    request.place.agent.spec.name = domain::name::Name::parse("Grace").unwrap();
    request.place.agent.spec.tools.deny = vec!["Bash".into()];
    request.place.agent.spec.limits.turns = Some(3);
    let running = theatre.begin(request);
    let prompt = actor.prompt().await;
    actor.answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn another_model_is_set_in_the_running_process() {
    let theatre = Theatre::new(1, 0);
    let mut actor = theatre.warmed().await;
    assert!(!arguments(&actor.command).iter().any(|arg| arg.starts_with("--model")));
    let mut request = theatre.resuming("again");
    request.place.agent.spec.model = Some("opus".into());
    let running = theatre.begin(request);
    let set = actor.hear().await;
    assert_eq!(set["request"], json!({"subtype": "set_model", "model": "opus"}));
    actor.agree(&set).await;
    let prompt = actor.prompt().await;
    actor.answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);

    // Back to the default, which it does not take this time.
    let running = theatre.begin(theatre.resuming("again"));
    let set = actor.hear().await;
    assert_eq!(set["request"], json!({"subtype": "set_model"}));
    let response = json!({"subtype": "error", "request_id": set["request_id"], "error": "no"});
    actor.say(json!({"type": "control_response", "response": response})).await;
    let mut second = theatre.actor().await;
    assert!(resumes(&second.command));
    second.greet().await;
    let prompt = second.prompt().await;
    second.answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_when_all_are_busy_the_next_waits_and_is_told() {
    let theatre = Theatre::new(1, 0);
    let first = theatre.begin(theatre.request("slow"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    let mut second = theatre.begin(theatre.request_in(theatre.another_room(), "hello"));
    let TurnEvent::Waiting { status, message } = second.event().await else { panic!() };
    assert_eq!(status, "waiting_for_slot");
    assert!(message.contains("all 1 Claude Code"), "{message}");
    // One that waits can be stopped, and is passed over.
    let mut third = theatre.begin(theatre.request_in(theatre.another_room(), "hello"));
    assert!(matches!(third.event().await, TurnEvent::Waiting { .. }));
    third.tell(TurnCommand::Interrupt).await;
    assert_eq!(third.outcome().await.end, TurnEnd::Stopped);
    assert_eq!(theatre.alive(), 1);

    actor.answer(&prompt, "Done").await;
    assert_eq!(first.outcome().await.end, TurnEnd::Completed);
    let mut other = theatre.actor().await;
    assert!(actor.is_let_go().await, "the idle one makes room");
    other.greet().await;
    let prompt = other.prompt().await;
    other.answer(&prompt, "Hello").await;
    assert_eq!(second.outcome().await.end, TurnEnd::Completed);
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_one_is_ended_after_a_while_and_its_session_resumed_later() {
    let theatre = Theatre::new(1, 0);
    let mut actor = theatre.warmed().await;
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert_eq!(theatre.alive(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(actor.is_let_go().await);
    assert_eq!(theatre.alive(), 0);
    let running = theatre.begin(theatre.resuming("again"));
    assert!(resumes(&theatre.actor().await.command));
    running.turn.abort();
}

#[tokio::test(start_paused = true)]
async fn a_spare_is_ready_before_it_is_asked() {
    let theatre = Theatre::new(3, 1);
    theatre.provider.prepare(theatre.place.clone());
    theatre.provider.prepare(theatre.another_room());
    let mut actor = theatre.actor().await;
    let running = theatre.begin(TurnRequest {
        history: vec![Spoken::new(Speaker::Person("ann".into()), "before")].into(),
        ..theatre.request("hello")
    });
    actor.greet().await;
    let list =
        json!({"subtype": "mcp_message", "server_name": "greenroom", "message": {"id": 1, "method": "tools/list"}});
    actor.request("m1", list).await;
    assert_eq!(actor.reply("m1").await["subtype"], "success");
    let prompt = actor.prompt().await;
    assert!(prompt["message"]["content"].as_str().unwrap().contains("before"));
    actor.answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(theatre.alive(), 1, "one spare is enough");
}

#[tokio::test(start_paused = true)]
async fn a_spare_is_of_no_use_to_a_conversation_that_is_to_be_resumed() {
    let theatre = Theatre::new(3, 1);
    theatre.provider.prepare(theatre.place.clone());
    let mut spare = theatre.actor().await;
    spare.greet().await;
    let running = theatre.begin(theatre.resuming("recall"));
    let mut actor = theatre.actor().await;
    assert!(resumes(&actor.command) && !resumes(&spare.command));
    actor.greet().await;
    let prompt = actor.prompt().await;
    actor.answer(&prompt, "I remember").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_does_not_get_ready_leaves_nothing() {
    let theatre = Theatre::new(3, 1);
    theatre.provider.prepare(theatre.place.clone());
    drop(theatre.actor().await);
    let running = theatre.begin(theatre.request("hello"));
    let mut actor = theatre.actor().await;
    actor.greet().await;
    let prompt = actor.prompt().await;
    actor.answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(theatre.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_leaves_nothing_behind() {
    let theatre = Theatre::new(3, 2);
    let _warm = theatre.warmed().await;
    theatre.provider.prepare(theatre.another_room());
    let _preparing = theatre.actor().await;
    assert_eq!(theatre.alive(), 2);
    theatre.provider.close().await;
    assert_eq!(theatre.alive(), 0);
    let outcome = theatre.begin(theatre.request("hello")).outcome().await;
    assert!(matches!(&outcome.end, TurnEnd::Failed(error) if error.code == "server_stopping"), "{outcome:?}");
}

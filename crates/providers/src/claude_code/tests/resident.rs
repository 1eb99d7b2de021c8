//! Tests across turns: warm processes, resumed sessions, and waiting for a slot.

use super::fake::{ClaudeHarness, SESSION};
use crate::{
    HistoryAuthor, HistoryMessage, Provider as _, ResumableSession, TurnCommand, TurnEnd, TurnEvent, TurnRequest,
};
use domain::mcp::{McpTransport, NamedMcpServer};
use serde_json::json;
use std::{fs, time::Duration};
use workbench::skills::SkillFolder;

fn arguments(command: &workbench::process::ProcessSpec) -> Vec<String> {
    command.args.iter().map(|arg| arg.to_str().unwrap().to_owned()).collect()
}

fn resumes(command: &workbench::process::ProcessSpec) -> bool {
    arguments(command).contains(&format!("--resume={SESSION}"))
}

#[tokio::test(start_paused = true)]
async fn second_turn_reuses_the_process_and_gets_only_missed_messages() {
    let harness = ClaudeHarness::new(1, 0);
    let mut claude = harness.run_first_turn().await;
    let missed = HistoryMessage::new(HistoryAuthor::OtherAgent("Bob".into()), "I disagree");
    let request = TurnRequest {
        history: vec![HistoryMessage::new(HistoryAuthor::Person("ann".into()), "say hello"), missed.clone()].into(),
        session: Some(ResumableSession { id: SESSION.into(), missed: vec![missed] }),
        ..harness.request("and now?")
    };
    let running = harness.begin(request);
    let prompt = claude.accept_prompt().await;
    let said = prompt["message"]["content"].as_str().unwrap();
    assert!(said.contains("I disagree") && said.ends_with("and now?") && !said.contains("say hello"), "{said}");
    claude.send_answer(&prompt, "Fine").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn stored_session_is_resumed_in_a_new_process() {
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.resuming("recall"));
    let mut claude = harness.next_process().await;
    assert!(resumes(&claude.command));
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    assert_eq!(prompt["message"]["content"], "recall");
    claude.send_answer(&prompt, "I remember").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn missing_session_is_rebuilt_from_the_history() {
    let harness = ClaudeHarness::new(1, 0);
    let history = vec![HistoryMessage::new(HistoryAuthor::Person("ann".into()), "my cat is Tom")].into();
    let running = harness.begin(TurnRequest { history, ..harness.resuming("who is Tom?") });
    let mut first = harness.next_process().await;
    first.receive().await;
    first.receive().await;
    let not_found = format!("No conversation found with session ID: {SESSION}");
    first
        .send(json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": [not_found]}))
        .await;
    let mut second = harness.next_process().await;
    assert!(!resumes(&second.command));
    second.accept_initialize().await;
    let prompt = second.accept_prompt().await;
    assert!(prompt["message"]["content"].as_str().unwrap().contains("my cat is Tom"));
    second.send_answer(&prompt, "Your cat").await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    let rebuilt = |event: &&TurnEvent| matches!(event, TurnEvent::Status { status, .. } if status == "session_rebuilt");
    assert_eq!(events.iter().filter(rebuilt).count(), 1, "{events:?}");
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn process_that_died_while_idle_is_replaced_silently() {
    let harness = ClaudeHarness::new(1, 0);
    drop(harness.run_first_turn().await);
    let running = harness.begin(harness.resuming("still there?"));
    let mut second = harness.next_process().await;
    assert!(resumes(&second.command));
    second.accept_initialize().await;
    let prompt = second.accept_prompt().await;
    second.send_answer(&prompt, "Yes").await;
    let (outcome, events) = running.outcome_and_events().await;
    assert_eq!(outcome.end, TurnEnd::Completed);
    assert!(!events.iter().any(|event| matches!(event, TurnEvent::Status { .. })), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn process_that_dies_on_the_prompt_is_replaced_once() {
    let harness = ClaudeHarness::new(1, 0);
    let mut first = harness.run_first_turn().await;
    let running = harness.begin(harness.resuming("boom"));
    first.receive().await;
    drop(first);
    let mut second = harness.next_process().await;
    second.receive().await;
    drop(second);
    let outcome = running.outcome().await;
    assert!(matches!(&outcome.end, TurnEnd::Failed(error) if error.code == "program_crashed"), "{outcome:?}");
    assert_eq!(harness.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn process_of_a_forgotten_session_is_not_reused() {
    let harness = ClaudeHarness::new(1, 0);
    let _warm = harness.run_first_turn().await;
    let running = harness.begin(harness.request("who are you?"));
    assert!(!resumes(&harness.next_process().await.command));
    running.turn.abort();

    // Nor is a process that was interrupted before it reported its session.
    let harness = ClaudeHarness::new(1, 0);
    let running = harness.begin(harness.request("hello"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.receive().await;
    running.send(TurnCommand::Interrupt).await;
    claude.accept_interrupt(&prompt).await;
    assert_eq!(running.outcome().await.end, TurnEnd::Stopped);
    let running = harness.begin(harness.request("hello"));
    harness.next_process().await;
    running.turn.abort();
}

#[tokio::test(start_paused = true)]
async fn changed_launch_settings_replace_the_process() {
    type Change = fn(&mut TurnRequest);
    let changes: [(&str, Change); 3] = [
        ("system prompt", |request| request.workspace.agent.spec.system_prompt = Some("Be brief.".into())),
        ("MCP servers", |request| {
            let transport = McpTransport::Http { url: "http://127.0.0.1:1/".into(), headers: [].into() };
            request.workspace.mcp_servers = vec![NamedMcpServer::new("shop", transport)];
        }),
        ("skills", |request| {
            let path = request.workspace.home.join("greet");
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("SKILL.md"), "---\nname: greet\n---\n").unwrap();
            request.workspace.skills = vec![SkillFolder::read("greet", path).unwrap()];
        }),
    ];
    for (what, change) in changes {
        let harness = ClaudeHarness::new(1, 0);
        let mut first = harness.run_first_turn().await;
        let mut request = harness.resuming("again");
        change(&mut request);
        let running = harness.begin(request);
        let mut second = harness.next_process().await;
        assert!(resumes(&second.command), "{what}");
        assert!(first.input_closed().await, "{what}");
        second.accept_initialize().await;
        let prompt = second.accept_prompt().await;
        second.send_answer(&prompt, "Yes").await;
        assert_eq!(running.outcome().await.end, TurnEnd::Completed, "{what}");
        assert_eq!(harness.alive(), 1, "{what}");
    }
}

/// A warm process has read `SKILL.md` and may have read the scripts, so each change replaces it.
#[tokio::test(start_paused = true)]
async fn changed_script_of_a_skill_replaces_the_process_however_fast_it_changes() {
    let harness = ClaudeHarness::new(1, 0);
    let folder = harness.workspace.home.join("greet");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: greet\n---\n").unwrap();
    let script = folder.join("greet.sh");
    let turn = async |word: &str, session: bool| {
        fs::write(&script, word).unwrap();
        // All versions have the same length and the same time.
        fs::File::options().write(true).open(&script).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let mut request = if session { harness.resuming("greet") } else { harness.request("greet") };
        request.workspace.skills = vec![SkillFolder::read("greet", &folder).unwrap()];
        harness.begin(request)
    };
    let room = harness.workspace.room_id.to_string();
    let copy = harness.workspace.home.join("skills").join(room).join("skills/greet/greet.sh");
    let mut warm = None;
    for word in ["one", "two", "six"] {
        let running = turn(word, warm.is_some()).await;
        let mut claude = harness.next_process().await;
        assert_eq!(fs::read_to_string(&copy).unwrap(), word);
        claude.accept_initialize().await;
        let prompt = claude.accept_prompt().await;
        claude.send_answer(&prompt, "Hello").await;
        assert_eq!(running.outcome().await.end, TurnEnd::Completed, "{word}");
        warm = Some(claude);
    }
    // Without a change, the process is kept.
    let running = turn("six", true).await;
    let mut claude = warm.unwrap();
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_changes_keep_the_process() {
    let harness = ClaudeHarness::new(1, 0);
    let mut claude = harness.run_first_turn().await;
    let mut request = harness.resuming("again");
    request.workspace.agent.spec.name = domain::name::Name::parse("Grace").unwrap();
    request.workspace.agent.spec.tools.deny = vec!["Bash".into()];
    request.workspace.agent.spec.limits.turns = Some(3);
    let running = harness.begin(request);
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
}

#[tokio::test(start_paused = true)]
async fn model_change_is_applied_to_the_running_process() {
    let harness = ClaudeHarness::new(1, 0);
    let mut claude = harness.run_first_turn().await;
    assert!(!arguments(&claude.command).iter().any(|arg| arg.starts_with("--model")));
    let mut request = harness.resuming("again");
    request.workspace.agent.spec.model = Some("opus".into());
    let running = harness.begin(request);
    let set = claude.receive().await;
    assert_eq!(set["request"], json!({"subtype": "set_model", "model": "opus"}));
    claude.accept(&set).await;
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);

    // Back to the default model, which the program rejects this time.
    let running = harness.begin(harness.resuming("again"));
    let set = claude.receive().await;
    assert_eq!(set["request"], json!({"subtype": "set_model"}));
    let response = json!({"subtype": "error", "request_id": set["request_id"], "error": "no"});
    claude.send(json!({"type": "control_response", "response": response})).await;
    let mut second = harness.next_process().await;
    assert!(resumes(&second.command));
    second.accept_initialize().await;
    let prompt = second.accept_prompt().await;
    second.send_answer(&prompt, "Yes").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn invariant_14_limits_when_all_processes_are_busy_the_next_turn_waits_and_reports_it() {
    let harness = ClaudeHarness::new(1, 0);
    let first = harness.begin(harness.request("slow"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    let mut second = harness.begin(harness.request_in(harness.another_room(), "hello"));
    let TurnEvent::Waiting { status, message } = second.next_event().await else { panic!() };
    assert_eq!(status, "waiting_for_slot");
    assert!(message.contains("all 1 Claude Code"), "{message}");
    // A waiting turn can be interrupted and is then skipped.
    let mut third = harness.begin(harness.request_in(harness.another_room(), "hello"));
    assert!(matches!(third.next_event().await, TurnEvent::Waiting { .. }));
    third.send(TurnCommand::Interrupt).await;
    assert_eq!(third.outcome().await.end, TurnEnd::Stopped);
    assert_eq!(harness.alive(), 1);

    claude.send_answer(&prompt, "Done").await;
    assert_eq!(first.outcome().await.end, TurnEnd::Completed);
    let mut other = harness.next_process().await;
    assert!(claude.input_closed().await, "the idle process is stopped");
    other.accept_initialize().await;
    let prompt = other.accept_prompt().await;
    other.send_answer(&prompt, "Hello").await;
    assert_eq!(second.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn idle_process_is_stopped_after_a_while_and_its_session_resumed_later() {
    let harness = ClaudeHarness::new(1, 0);
    let mut claude = harness.run_first_turn().await;
    tokio::time::sleep(Duration::from_secs(599)).await;
    assert_eq!(harness.alive(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(claude.input_closed().await);
    assert_eq!(harness.alive(), 0);
    let running = harness.begin(harness.resuming("again"));
    assert!(resumes(&harness.next_process().await.command));
    running.turn.abort();
}

#[tokio::test(start_paused = true)]
async fn spare_is_started_before_the_first_turn() {
    let harness = ClaudeHarness::new(3, 1);
    harness.provider.prepare(harness.workspace.clone());
    harness.provider.prepare(harness.another_room());
    let mut claude = harness.next_process().await;
    let running = harness.begin(TurnRequest {
        history: vec![HistoryMessage::new(HistoryAuthor::Person("ann".into()), "before")].into(),
        ..harness.request("hello")
    });
    claude.accept_initialize().await;
    let list =
        json!({"subtype": "mcp_message", "server_name": "greenroom", "message": {"id": 1, "method": "tools/list"}});
    claude.send_request("m1", list).await;
    assert_eq!(claude.expect_reply("m1").await["subtype"], "success");
    let prompt = claude.accept_prompt().await;
    assert!(prompt["message"]["content"].as_str().unwrap().contains("before"));
    claude.send_answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1, "one spare is enough");
}

#[tokio::test(start_paused = true)]
async fn spare_is_not_used_to_resume_a_session() {
    let harness = ClaudeHarness::new(3, 1);
    harness.provider.prepare(harness.workspace.clone());
    let mut spare = harness.next_process().await;
    spare.accept_initialize().await;
    let running = harness.begin(harness.resuming("recall"));
    let mut claude = harness.next_process().await;
    assert!(resumes(&claude.command) && !resumes(&spare.command));
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "I remember").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_spare_leaves_nothing_behind() {
    let harness = ClaudeHarness::new(3, 1);
    harness.provider.prepare(harness.workspace.clone());
    drop(harness.next_process().await);
    let running = harness.begin(harness.request("hello"));
    let mut claude = harness.next_process().await;
    claude.accept_initialize().await;
    let prompt = claude.accept_prompt().await;
    claude.send_answer(&prompt, "Hello").await;
    assert_eq!(running.outcome().await.end, TurnEnd::Completed);
    assert_eq!(harness.alive(), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_leaves_nothing_behind() {
    let harness = ClaudeHarness::new(3, 2);
    let _warm = harness.run_first_turn().await;
    harness.provider.prepare(harness.another_room());
    let _preparing = harness.next_process().await;
    assert_eq!(harness.alive(), 2);
    harness.provider.close().await;
    assert_eq!(harness.alive(), 0);
    let outcome = harness.begin(harness.request("hello")).outcome().await;
    assert!(matches!(&outcome.end, TurnEnd::Failed(error) if error.code == "server_stopping"), "{outcome:?}");
}

//! The skills of a run: those that its agent names, its room trains, or its message calls.

use crate::harness::{EngineHarness, TestTurn, me, within};
use domain::{
    agent::{Agent, AgentSpec},
    ids::RoomId,
    name::Name,
    run::RunStatus,
    skill::{Parameter, ParameterKind, ParameterValue, ParameterValues, SkillFile, SkillName, SkillSpec},
};
use engine::{
    EngineError,
    commands::{NewPost, SkillRevision},
};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use store::SkillFilesChange;
use testkit::database::TestDatabase;

contract! {
    a_filled_in_skill_is_written_for_the_run_and_removed_afterwards,
    concurrent_runs_keep_their_skill_versions,
    a_message_calls_a_skill_with_parameters,
    an_invalid_skill_call_is_refused_before_it_is_stored,
    a_skill_with_missing_values_is_used_only_when_called,
    a_skill_denies_tools_always_and_allows_them_only_when_called,
    m3_an_imported_skill_runs_without_what_it_asks_for,
    a_skill_in_the_data_folder_can_be_called,
    a_changed_script_of_a_skill_changes_its_digest,
    a_training_room_adds_its_skill_and_the_training_note,
    outdated_parameter_values_fail_the_run,
}

fn name(text: &str) -> SkillName {
    text.parse().unwrap()
}

fn greet() -> SkillSpec {
    let mut spec = SkillSpec::new(name("greet"), "Greets people. Use it to greet.", "Say {{word}} {{times}} times.\n");
    spec.parameters = vec![
        Parameter { required: true, ..Parameter::new("word", ParameterKind::Text) },
        Parameter { default: Some(ParameterValue::Number(1.into())), ..Parameter::new("times", ParameterKind::Number) },
    ];
    spec
}

fn agent(skills: &[&str], given: &[(&str, &str)]) -> AgentSpec {
    let given: ParameterValues =
        given.iter().map(|(k, v)| ((*k).to_owned(), ParameterValue::Text((*v).to_owned()))).collect();
    let skill_parameters = if given.is_empty() { [].into() } else { [("greet".to_owned(), given)].into() };
    let skills = skills.iter().map(|name| (*name).to_owned()).collect();
    AgentSpec { skills, skill_parameters, ..AgentSpec::new(Name::parse("Ann").unwrap(), "p") }
}

async fn agent_in_room(harness: &EngineHarness, spec: AgentSpec) -> (Agent, RoomId) {
    let agent = harness.agent_of(spec).await;
    let room = harness.room(&[&agent]).await;
    (agent, room)
}

fn skill_of(turn: &TestTurn, name: &str) -> Option<PathBuf> {
    let place = &turn.request.workspace;
    place.skills.iter().find(|skill| skill.name == name).map(|skill| skill.path.clone())
}

fn document(folder: &Path) -> String {
    fs::read_to_string(folder.join("SKILL.md")).unwrap()
}

async fn a_changed_script_of_a_skill_changes_its_digest(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let folder = harness.database.folder().join("data/skills/from-disk");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "# From disk").unwrap();
    harness.engine.create_skill(&me(), SkillSpec::new(name("stored"), "Does it.", "Do it."), None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&["from-disk", "stored"], &[])).await;
    let mut seen = Vec::new();
    for script in ["one", "two", "two"] {
        fs::write(folder.join("run.sh"), script).unwrap();
        let file = SkillFile { path: "run.sh".parse().unwrap(), executable: true, content: script.into() };
        harness.engine.put_skill_file(&me(), &name("stored"), file, SkillRevision::default(), None).await.unwrap();
        let run = harness.post(room, "hi").await.runs[0].id;
        let turn = harness.turn().await;
        seen.push(turn.request.workspace.skills.clone());
        turn.complete();
        harness.ended(run).await;
    }
    assert_eq!(seen[0].len(), 2);
    for ((one, two), three) in seen[0].iter().zip(&seen[1]).zip(&seen[2]) {
        assert_ne!(one, two, "within a second, and of the same length");
        assert_eq!(two, three);
    }
    harness.stop().await;
}

async fn a_filled_in_skill_is_written_for_the_run_and_removed_afterwards(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    harness.engine.create_skill(&me(), greet(), None).await.unwrap();
    let script =
        SkillFile { path: "scripts/run.sh".parse().unwrap(), executable: true, content: b"#!/bin/sh".to_vec() };
    harness.engine.put_skill_file(&me(), &name("greet"), script, SkillRevision::default(), None).await.unwrap();
    let spec = agent(&["greet"], &[("word", "{{times}} hello")]);
    let (_, room) = agent_in_room(&harness, spec).await;
    let run = harness.post(room, "hi").await.runs[0].id;
    let turn = harness.turn().await;
    let folder = skill_of(&turn, "greet").unwrap();
    assert!(folder.starts_with(harness.database.folder().join("data/runs").join(run.to_string())));
    let text = document(&folder);
    assert!(text.ends_with("---\n\nSay {{times}} hello 1 times.\n"), "a value is data: {text}");
    assert!(text.starts_with("---\nname: greet\ndescription: Greets people. Use it to greet.\n---"), "{text}");
    assert_eq!(fs::read(folder.join("scripts/run.sh")).unwrap(), b"#!/bin/sh");
    assert_eq!(turn.request.prompt, "hi");
    turn.complete();
    harness.ended(run).await;
    let runs = harness.database.folder().join("data/runs");
    within("removal of the run's folder", async {
        while fs::read_dir(&runs).unwrap().count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    harness.stop().await;
}

async fn concurrent_runs_keep_their_skill_versions(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let skill = SkillSpec::new(name("write"), "Writes.", "version one");
    let first = harness.engine.create_skill(&me(), skill.clone(), None).await.unwrap();
    let ann = harness.agent_of(agent(&["write"], &[])).await;
    let rooms = [harness.room(&[&ann]).await, harness.room(&[&ann]).await];
    harness.post(rooms[0], "hi").await;
    let one = harness.turn().await;
    let changed = SkillSpec { body: "version two".into(), ..skill };
    harness.engine.change_skill(&me(), first, changed, SkillRevision::default(), None).await.unwrap();
    harness.post(rooms[1], "hi").await;
    let two = harness.turn().await;
    for (turn, expected) in [(&one, "version one"), (&two, "version two")] {
        assert!(document(&skill_of(turn, "write").unwrap()).ends_with(expected), "{expected}");
    }
    one.complete();
    assert!(document(&skill_of(&two, "write").unwrap()).ends_with("version two"));
    two.complete();
    harness.stop().await;
}

async fn a_message_calls_a_skill_with_parameters(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let made = harness.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&[], &[])).await;
    let text = r#"/greet word="good {{times}} day" times=3 and be nice"#;
    let posted = harness.post(room, text).await;
    assert_eq!(posted.message.text, text, "the message is stored unchanged");
    let turn = harness.turn().await;
    let prompt = &turn.request.prompt;
    assert!(prompt.contains("<skill name=\"greet\">\nSay good {{times}} day 3 times.\n</skill>"), "{prompt}");
    assert!(prompt.ends_with("\n\nand be nice\n"), "{prompt}");
    assert!(document(&skill_of(&turn, "greet").unwrap()).contains("Say good {{times}} day 3 times."));
    turn.complete();
    harness.ended(posted.runs[0].id).await;

    let plain = harness.post(room, "/nothing word=x").await;
    let turn = harness.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.request.workspace.skills.len()), ("/nothing word=x", 0));
    turn.complete();
    harness.ended(plain.runs[0].id).await;
    let figures = within("the statistics", async {
        loop {
            match harness.store.skill_stats(&me().workspace).await.unwrap().get(&made.id) {
                Some(figures) => return *figures,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await;
    assert_eq!((figures.offered, figures.invoked, figures.completed, figures.failed), (1, 1, 1, 0));
    assert!(figures.last_used_at.is_some());
    harness.stop().await;
}

async fn an_invalid_skill_call_is_refused_before_it_is_stored(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    harness.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&["greet"], &[])).await;
    for (text, expected) in [
        ("/greet", "missing values for: word"),
        ("/greet hello", "missing values for: word"),
        ("/greet word=a nope=b", "unknown parameter \"nope\"; the skill has: word, times"),
        ("/greet word=a times=often", "the parameter times must be a number"),
        ("/greet word=\"a", "has an invalid quote"),
    ] {
        match harness.engine.post_message(&me(), room, NewPost::new(text), None).await {
            Err(EngineError::Refused { pointer, detail }) if pointer == "/text" => {
                assert!(detail.contains(expected), "{text}: {detail}")
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(harness.store.history(&me().workspace, room, 0, None, 10).await.unwrap().messages.len(), 0);
    for (given, expected) in [(("nope", "x"), "unknown parameter"), (("times", "x"), "must be a number")] {
        match harness.engine.create_agent(&me(), agent(&["greet"], &[given]), None).await {
            Err(EngineError::Refused { pointer, detail }) if pointer == "/skill_parameters" => {
                assert!(detail.contains(expected), "{detail}")
            }
            other => panic!("{other:?}"),
        }
    }
    harness.stop().await;
}

async fn a_skill_with_missing_values_is_used_only_when_called(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    harness.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&["greet"], &[])).await;
    for (text, is_used) in [("hi", false), ("/greet word=a", true)] {
        let run = harness.post(room, text).await.runs[0].id;
        let turn = harness.turn().await;
        assert_eq!(skill_of(&turn, "greet").is_some(), is_used, "{text}");
        turn.complete();
        harness.ended(run).await;
    }
    harness.stop().await;
}

async fn a_skill_denies_tools_always_and_allows_them_only_when_called(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let mut skill = SkillSpec::new(name("careful"), "Careful.", "Take care.");
    skill.tools.deny.push("Bash".into());
    skill.tools.allow.push("Read".into());
    skill.mcp_servers.insert("git".into(), json!({"command": "git-mcp"}));
    harness.engine.create_skill(&me(), skill, None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&["careful"], &[])).await;
    for (text, allowed) in [("hi", false), ("/careful", true)] {
        let run = harness.post(room, text).await.runs[0].id;
        let turn = harness.turn().await;
        let tools = &turn.request.workspace.agent.spec.tools;
        assert_eq!(
            (tools.deny.as_slice(), tools.allow.contains(&"Read".to_owned())),
            (&["Bash".to_owned()][..], allowed)
        );
        turn.complete();
        harness.ended(run).await;
    }
    harness.stop().await;
}

async fn m3_an_imported_skill_runs_without_what_it_asks_for(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    let mut skill = SkillSpec::new(name("evil"), "Evil.", "Do evil.");
    skill.tools.allow.push("*".into());
    skill.mcp_servers.insert("git".into(), json!({"command": "git-mcp"}));
    let file = |path: &str| SkillFile { path: path.parse().unwrap(), executable: false, content: b"x".to_vec() };
    let files = SkillFilesChange::Imported(vec![file("notes.md"), file("scripts/run.sh")]);
    harness.store.create_skill(&me(), &skill, files, None, None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&["evil"], &[])).await;
    for is_accepted in [false, true] {
        if is_accepted {
            harness.engine.accept_skill(&me(), &name("evil"), 1).await.unwrap();
        }
        let run = harness.post(room, "/evil").await.runs[0].id;
        let turn = harness.turn().await;
        let workspace = &turn.request.workspace;
        let folder = skill_of(&turn, "evil").unwrap();
        assert!(folder.join("notes.md").exists());
        assert_eq!(
            (
                workspace.agent.spec.tools.allow.contains(&"*".to_owned()),
                workspace.mcp_servers.iter().any(|server| server.name == "git"),
                folder.join("scripts/run.sh").exists(),
            ),
            (is_accepted, is_accepted, is_accepted)
        );
        turn.complete();
        harness.ended(run).await;
    }
    harness.stop().await;
}

async fn a_skill_in_the_data_folder_can_be_called(database: TestDatabase) {
    let folder = database.folder().join("data/skills/review");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: review\ndescription: d\n---\nLook {{closely}}.").unwrap();
    let mut harness = EngineHarness::new(database).await;
    let (_, room) = agent_in_room(&harness, agent(&[], &[])).await;
    let run = harness.post(room, "/review x=1 now").await.runs[0].id;
    let turn = harness.turn().await;
    let prompt = turn.request.prompt.clone();
    assert!(prompt.contains("Look {{closely}}.\n</skill>") && prompt.contains("x=1 now"), "{prompt}");
    assert!(prompt.contains(&folder.display().to_string()), "{prompt}");
    assert_eq!(skill_of(&turn, "review"), Some(folder));
    turn.complete();
    harness.ended(run).await;
    harness.stop().await;
}

async fn a_training_room_adds_its_skill_and_the_training_note(database: TestDatabase) {
    let mut harness = EngineHarness::new(database).await;
    harness.engine.create_skill(&me(), greet(), None).await.unwrap();
    let ann = harness.agent_of(agent(&[], &[])).await;
    let room = harness.engine.open_training(&me(), &name("greet"), ann.id, None).await.unwrap().room_id;
    let run = harness.post(room, "hi").await.runs[0].id;
    let turn = harness.turn().await;
    let prompt = turn.request.workspace.agent.spec.system_prompt.clone().unwrap();
    assert!(prompt.contains("````skill") && prompt.contains("Say {{word}} {{times}} times."), "{prompt}");
    assert!(document(&skill_of(&turn, "greet").unwrap()).contains("{{word}}"), "a missing value stays a placeholder");
    turn.complete();
    harness.ended(run).await;
    let elsewhere = harness.room(&[&ann]).await;
    let run = harness.post(elsewhere, "hi").await.runs[0].id;
    let turn = harness.turn().await;
    assert_eq!((&turn.request.workspace.agent.spec.system_prompt, turn.request.workspace.skills.len()), (&None, 0));
    turn.complete();
    harness.ended(run).await;
    harness.stop().await;
}

async fn outdated_parameter_values_fail_the_run(database: TestDatabase) {
    let harness = EngineHarness::new(database).await;
    let made = harness.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = agent_in_room(&harness, agent(&["greet"], &[("word", "a")])).await;
    let mut changed = greet();
    changed.parameters.remove(0);
    harness.engine.change_skill(&me(), made, changed, SkillRevision::default(), None).await.unwrap();
    let run = harness.post(room, "hi").await.runs[0].id;
    let ended = harness.ended(run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, "skill_parameters"));
    harness.stop().await;
}

//! What a run is given of the skills that its agent names, its room trains, or its message calls.

use crate::scene::{Stage, Turn, me, within};
use domain::{
    agent::{Agent, AgentSpec},
    ids::RoomId,
    name::Name,
    run::RunStatus,
    skill::{Given, Parameter, ParameterKind, ParameterValue, SkillFile, SkillName, SkillSpec},
};
use engine::{
    Error,
    commands::{Post, Revision},
};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use testkit::database::TestDatabase;

contract! {
    a_skill_is_written_for_the_run_filled_in_and_gone_afterwards,
    two_runs_with_two_versions_do_not_disturb_each_other,
    a_message_calls_a_skill_with_parameters,
    a_call_that_cannot_be_is_refused_before_it_is_stored,
    a_skill_without_its_values_is_only_there_where_it_is_called,
    what_a_skill_forbids_is_forbidden_and_what_it_allows_needs_a_call,
    a_skill_of_the_data_folder_can_be_called_too,
    a_training_room_has_its_skill_and_says_how_to_propose,
    values_that_do_not_fit_any_more_fail_the_run,
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
    let given: Given = given.iter().map(|(k, v)| ((*k).to_owned(), ParameterValue::Text((*v).to_owned()))).collect();
    let skill_parameters = if given.is_empty() { [].into() } else { [("greet".to_owned(), given)].into() };
    let skills = skills.iter().map(|name| (*name).to_owned()).collect();
    AgentSpec { skills, skill_parameters, ..AgentSpec::new(Name::parse("Ann").unwrap(), "p") }
}

async fn seated(stage: &Stage, spec: AgentSpec) -> (Agent, RoomId) {
    let agent = stage.agent_of(spec).await;
    let room = stage.room(&[&agent]).await;
    (agent, room)
}

fn skill_of(turn: &Turn, name: &str) -> Option<PathBuf> {
    let place = &turn.request.place;
    place.skills.iter().find(|skill| skill.name == name).map(|skill| skill.path.clone())
}

fn document(folder: &Path) -> String {
    fs::read_to_string(folder.join("SKILL.md")).unwrap()
}

async fn a_skill_is_written_for_the_run_filled_in_and_gone_afterwards(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    stage.engine.create_skill(&me(), greet(), None).await.unwrap();
    let script =
        SkillFile { path: "scripts/run.sh".parse().unwrap(), executable: true, content: b"#!/bin/sh".to_vec() };
    stage.engine.put_skill_file(&me(), &name("greet"), script, Revision::default(), None).await.unwrap();
    let spec = agent(&["greet"], &[("word", "{{times}} hello")]);
    stage.engine.check_agent(&me(), &spec).await.unwrap();
    let (_, room) = seated(&stage, spec).await;
    let run = stage.post(room, "hi").await.runs[0].id;
    let turn = stage.turn().await;
    let folder = skill_of(&turn, "greet").unwrap();
    assert!(folder.starts_with(stage.database.folder().join("data/runs").join(run.to_string())));
    let text = document(&folder);
    assert!(text.ends_with("---\n\nSay {{times}} hello 1 times.\n"), "a value is data: {text}");
    assert!(text.starts_with("---\nname: greet\ndescription: Greets people. Use it to greet.\n---"), "{text}");
    assert_eq!(fs::read(folder.join("scripts/run.sh")).unwrap(), b"#!/bin/sh");
    assert_eq!(turn.request.prompt, "hi");
    turn.completes();
    stage.ended(run).await;
    let runs = stage.database.folder().join("data/runs");
    within("nothing to stay behind", async {
        while fs::read_dir(&runs).unwrap().count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    stage.stop().await;
}

async fn two_runs_with_two_versions_do_not_disturb_each_other(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let skill = SkillSpec::new(name("write"), "Writes.", "version one");
    let first = stage.engine.create_skill(&me(), skill.clone(), None).await.unwrap();
    let ann = stage.agent_of(agent(&["write"], &[])).await;
    let rooms = [stage.room(&[&ann]).await, stage.room(&[&ann]).await];
    stage.post(rooms[0], "hi").await;
    let one = stage.turn().await;
    let changed = SkillSpec { body: "version two".into(), ..skill };
    stage.engine.change_skill(&me(), first, changed, Revision::default(), None).await.unwrap();
    stage.post(rooms[1], "hi").await;
    let two = stage.turn().await;
    for (turn, says) in [(&one, "version one"), (&two, "version two")] {
        assert!(document(&skill_of(turn, "write").unwrap()).ends_with(says), "{says}");
    }
    one.completes();
    assert!(document(&skill_of(&two, "write").unwrap()).ends_with("version two"));
    two.completes();
    stage.stop().await;
}

async fn a_message_calls_a_skill_with_parameters(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let made = stage.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = seated(&stage, agent(&[], &[])).await;
    let text = r#"/greet word="good {{times}} day" times=3 and be nice"#;
    let posted = stage.post(room, text).await;
    assert_eq!(posted.message.text, text, "what the person said is stored as it is");
    let turn = stage.turn().await;
    let prompt = &turn.request.prompt;
    assert!(prompt.contains("<skill name=\"greet\">\nSay good {{times}} day 3 times.\n</skill>"), "{prompt}");
    assert!(prompt.ends_with("\n\nand be nice\n"), "{prompt}");
    assert!(document(&skill_of(&turn, "greet").unwrap()).contains("Say good {{times}} day 3 times."));
    turn.completes();
    stage.ended(posted.runs[0].id).await;

    let plain = stage.post(room, "/nothing word=x").await;
    let turn = stage.turn().await;
    assert_eq!((turn.request.prompt.as_str(), turn.request.place.skills.len()), ("/nothing word=x", 0));
    turn.completes();
    stage.ended(plain.runs[0].id).await;
    let figures = within("the figures", async {
        loop {
            match stage.store.skill_figures(&me()).await.unwrap().get(&made.id) {
                Some(figures) => return *figures,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
    .await;
    assert_eq!((figures.offered, figures.invoked, figures.completed, figures.failed), (1, 1, 1, 0));
    assert!(figures.last_used_at.is_some());
    stage.stop().await;
}

async fn a_call_that_cannot_be_is_refused_before_it_is_stored(database: TestDatabase) {
    let stage = Stage::new(database).await;
    stage.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = seated(&stage, agent(&["greet"], &[])).await;
    for (text, says) in [
        ("/greet", "it needs a value for: word"),
        ("/greet hello", "it needs a value for: word"),
        ("/greet word=a nope=b", "there is no parameter \"nope\"; it takes: word, times"),
        ("/greet word=a times=often", "the parameter times is a number"),
        ("/greet word=\"a", "not quoted well"),
    ] {
        let (when_busy, attachments, mentions) = (None, Vec::new(), Vec::new());
        let post = Post { text: text.into(), when_busy, attachments, mentions };
        match stage.engine.post(&me(), room, post, None).await {
            Err(Error::Refused { pointer: "/text", detail }) => assert!(detail.contains(says), "{text}: {detail}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    assert_eq!(stage.store.history(&me(), room, 0, None, 10).await.unwrap().messages.len(), 0);
    for (given, says) in [(("nope", "x"), "no parameter"), (("times", "x"), "is a number")] {
        match stage.engine.check_agent(&me(), &agent(&["greet"], &[given])).await {
            Err(Error::Refused { pointer: "/skill_parameters", detail }) => assert!(detail.contains(says), "{detail}"),
            other => panic!("{other:?}"),
        }
    }
    stage.stop().await;
}

async fn a_skill_without_its_values_is_only_there_where_it_is_called(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    stage.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = seated(&stage, agent(&["greet"], &[])).await;
    for (text, is_there) in [("hi", false), ("/greet word=a", true)] {
        let run = stage.post(room, text).await.runs[0].id;
        let turn = stage.turn().await;
        assert_eq!(skill_of(&turn, "greet").is_some(), is_there, "{text}");
        turn.completes();
        stage.ended(run).await;
    }
    stage.stop().await;
}

async fn what_a_skill_forbids_is_forbidden_and_what_it_allows_needs_a_call(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    let mut skill = SkillSpec::new(name("careful"), "Careful.", "Take care.");
    skill.tools.deny.push("Bash".into());
    skill.tools.allow.push("Read".into());
    skill.mcp_servers.insert("git".into(), json!({"command": "git-mcp"}));
    stage.engine.create_skill(&me(), skill, None).await.unwrap();
    let (_, room) = seated(&stage, agent(&["careful"], &[])).await;
    for (text, allowed) in [("hi", false), ("/careful", true)] {
        let run = stage.post(room, text).await.runs[0].id;
        let turn = stage.turn().await;
        let tools = &turn.request.place.agent.spec.tools;
        assert_eq!(
            (tools.deny.as_slice(), tools.allow.contains(&"Read".to_owned())),
            (&["Bash".to_owned()][..], allowed)
        );
        turn.completes();
        stage.ended(run).await;
    }
    stage.stop().await;
}

async fn a_skill_of_the_data_folder_can_be_called_too(database: TestDatabase) {
    let folder = database.folder().join("data/skills/review");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: review\ndescription: d\n---\nLook {{closely}}.").unwrap();
    let mut stage = Stage::new(database).await;
    let (_, room) = seated(&stage, agent(&[], &[])).await;
    let run = stage.post(room, "/review x=1 now").await.runs[0].id;
    let turn = stage.turn().await;
    let prompt = turn.request.prompt.clone();
    assert!(prompt.contains("Look {{closely}}.\n</skill>") && prompt.contains("x=1 now"), "{prompt}");
    assert!(prompt.contains(&folder.display().to_string()), "{prompt}");
    assert_eq!(skill_of(&turn, "review"), Some(folder));
    turn.completes();
    stage.ended(run).await;
    stage.stop().await;
}

async fn a_training_room_has_its_skill_and_says_how_to_propose(database: TestDatabase) {
    let mut stage = Stage::new(database).await;
    stage.engine.create_skill(&me(), greet(), None).await.unwrap();
    let ann = stage.agent_of(agent(&[], &[])).await;
    let room = stage.engine.open_training(&me(), &name("greet"), ann.id, None).await.unwrap().room_id;
    let run = stage.post(room, "hi").await.runs[0].id;
    let turn = stage.turn().await;
    let prompt = turn.request.place.agent.spec.system_prompt.clone().unwrap();
    assert!(prompt.contains("````skill") && prompt.contains("Say {{word}} {{times}} times."), "{prompt}");
    assert!(document(&skill_of(&turn, "greet").unwrap()).contains("{{word}}"), "a missing value stays a placeholder");
    turn.completes();
    stage.ended(run).await;
    let elsewhere = stage.room(&[&ann]).await;
    let run = stage.post(elsewhere, "hi").await.runs[0].id;
    let turn = stage.turn().await;
    assert_eq!((&turn.request.place.agent.spec.system_prompt, turn.request.place.skills.len()), (&None, 0));
    turn.completes();
    stage.ended(run).await;
    stage.stop().await;
}

async fn values_that_do_not_fit_any_more_fail_the_run(database: TestDatabase) {
    let stage = Stage::new(database).await;
    let made = stage.engine.create_skill(&me(), greet(), None).await.unwrap();
    let (_, room) = seated(&stage, agent(&["greet"], &[("word", "a")])).await;
    let mut changed = greet();
    changed.parameters.remove(0);
    stage.engine.change_skill(&me(), made, changed, Revision::default(), None).await.unwrap();
    let run = stage.post(room, "hi").await.runs[0].id;
    let ended = stage.ended(run).await;
    assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, "skill_parameters"));
    stage.stop().await;
}

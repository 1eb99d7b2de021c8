//! Where and with what an agent works.

use crate::scene::{Stage, me};
use domain::{agent::AgentSpec, name::Name, run::RunStatus};
use engine::{Error, commands::Execute};
use std::{fs, os::unix::fs::PermissionsExt as _};
use testkit::database::TestDatabase;

contract! {
    an_agent_finds_its_folders_skills_and_servers,
    what_is_not_there_is_refused_when_an_agent_is_made,
    what_has_gone_since_fails_the_run,
    a_folder_that_cannot_be_made_fails_the_run,
    providers_are_told_who_will_be_asked,
}

fn spec(name: &str, skills: &[&str], servers: &[&str]) -> AgentSpec {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    AgentSpec { skills: owned(skills), mcp_servers: owned(servers), ..AgentSpec::new(Name::parse(name).unwrap(), "p") }
}

/// With a skill `review`.
async fn stage(database: TestDatabase) -> Stage {
    let skill = database.folder().join("data/skills/review");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "# Review").unwrap();
    Stage::new(database).await
}

async fn an_agent_finds_its_folders_skills_and_servers(database: TestDatabase) {
    let mut stage = stage(database).await;
    let ann = stage.agent_of(spec("Ann", &["review"], &["files"])).await;
    let room = stage.room(&[&ann]).await;
    stage.post(room, "hello").await;
    let turn = stage.turn().await;
    let place = &turn.request.place;
    let data = stage.database.folder().join("data");
    assert_eq!(place.workplace, data.join("rooms").join(room.to_string()));
    assert_eq!(place.home, data.join("agents").join(ann.id.to_string()));
    for folder in [&place.workplace, &place.home] {
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
    assert_eq!((place.skills[0].name.as_str(), &place.skills[0].path), ("review", &data.join("skills/review")));
    assert_eq!((place.skills.len(), place.mcp_servers.len(), place.mcp_servers[0].name.as_str()), (1, 1, "files"));
    turn.completes();
    stage.stop().await;
}

async fn what_is_not_there_is_refused_when_an_agent_is_made(database: TestDatabase) {
    let stage = stage(database).await;
    stage.engine.check_agent(&me(), &spec("Ann", &["review"], &["files"])).await.unwrap();
    let impossible = AgentSpec { model: Some("impossible".into()), ..spec("Ann", &[], &[]) };
    for (spec, at, says) in [
        (spec("Ann", &["review", "revue"], &[]), "/skills", "no skill \"revue\"; it has: review"),
        (spec("Ann", &["../skills/review"], &[]), "/skills", "it has: review"),
        (spec("Ann", &[], &["mail"]), "/mcp_servers", "no MCP server \"mail\"; it has: files"),
        (impossible, "/provider", "a puppet has no such model"),
    ] {
        match stage.engine.check_agent(&me(), &spec).await {
            Err(Error::Refused { pointer, detail }) => assert!(pointer == at && detail.contains(says), "{detail}"),
            other => panic!("{other:?}"),
        }
    }
    stage.stop().await;
}

async fn what_has_gone_since_fails_the_run(database: TestDatabase) {
    let stage = stage(database).await;
    for (spec, code) in
        [(spec("Ann", &["gone"], &[]), "skill_missing"), (spec("Bob", &[], &["gone"]), "mcp_server_missing")]
    {
        let agent = stage.agent_of(spec).await;
        let room = stage.room(&[&agent]).await;
        let run = stage.post(room, "hello").await.runs[0].id;
        let ended = stage.ended(run).await;
        assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, code));
    }
    stage.stop().await;
}

async fn a_folder_that_cannot_be_made_fails_the_run(database: TestDatabase) {
    fs::write(database.folder().join("data"), "in the way").unwrap();
    let stage = Stage::new(database).await;
    let ann = stage.agent("Ann", "p").await;
    let room = stage.room(&[&ann]).await;
    let run = stage.post(room, "hello").await.runs[0].id;
    let error = stage.ended(run).await.error.unwrap();
    assert_eq!(error.code, "no_folder");
    assert!(!error.message.contains("data"), "where it is, is for the log: {}", error.message);
    stage.stop().await;
}

async fn providers_are_told_who_will_be_asked(database: TestDatabase) {
    let mut stage = stage(database).await;
    let (ann, bob) = (stage.agent("Ann", "p").await, stage.agent("Bob", "q").await);
    let room = stage.room(&[&ann]).await;
    stage.engine.seat(&me(), room, &[ann.id, bob.id]).await.unwrap();
    stage.engine.seat(&me(), room, &[ann.id, bob.id]).await.unwrap();
    let prepared = || -> Vec<_> {
        let prepared = stage.seen.prepared.lock().unwrap();
        prepared.iter().map(|place| (place.room_id, place.agent.id, place.workplace.is_dir())).collect()
    };
    assert_eq!(prepared(), [(room, ann.id, true), (room, bob.id, true)], "each once");
    let execute = Execute { message: "hello".into(), conversation: None, when_busy: None };
    stage.engine.execute(&me(), ann.id, execute, None).await.unwrap();
    assert_eq!(prepared().len(), 2, "who is asked at once need not be announced");
    stage.turn().await.completes();
    stage.stop().await;
}

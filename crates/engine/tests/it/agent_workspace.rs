//! The workspace of an agent: folders, skills and MCP servers.

use crate::harness::{EngineHarness, me};
use domain::{agent::AgentSpec, name::Name, run::RunStatus};
use engine::{
    EngineError,
    commands::{ExecuteRequest, RoomPatch},
};
use std::{fs, os::unix::fs::PermissionsExt as _};
use testkit::database::TestDatabase;

contract! {
    a_run_gets_its_folders_skills_and_servers,
    unknown_skills_and_servers_are_refused_on_agent_creation,
    a_deleted_skill_or_server_fails_the_run,
    a_folder_that_cannot_be_created_fails_the_run,
    providers_warm_up_agents_that_join_a_room,
}

fn spec(name: &str, skills: &[&str], servers: &[&str]) -> AgentSpec {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    AgentSpec { skills: owned(skills), mcp_servers: owned(servers), ..AgentSpec::new(Name::parse(name).unwrap(), "p") }
}

/// A harness with a skill `review`.
async fn harness_with_skill(database: TestDatabase) -> EngineHarness {
    let skill = database.folder().join("data/skills/review");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "# Review").unwrap();
    EngineHarness::new(database).await
}

async fn a_run_gets_its_folders_skills_and_servers(database: TestDatabase) {
    let mut harness = harness_with_skill(database).await;
    let ann = harness.agent_of(spec("Ann", &["review"], &["files"])).await;
    let room = harness.room(&[&ann]).await;
    harness.post(room, "hello").await;
    let turn = harness.turn().await;
    let place = &turn.request.workspace;
    let data = harness.database.folder().join("data");
    assert_eq!(place.folder, data.join("rooms").join(room.to_string()));
    assert_eq!(place.home, data.join("agents").join(ann.id.to_string()));
    for folder in [&place.folder, &place.home] {
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
    assert_eq!((place.skills[0].name.as_str(), &place.skills[0].path), ("review", &data.join("skills/review")));
    assert_eq!((place.skills.len(), place.mcp_servers.len(), place.mcp_servers[0].name.as_str()), (1, 1, "files"));
    turn.complete();
    harness.stop().await;
}

async fn unknown_skills_and_servers_are_refused_on_agent_creation(database: TestDatabase) {
    let harness = harness_with_skill(database).await;
    harness.engine.create_agent(&me(), spec("Ann", &["review"], &["files"]), None).await.unwrap();
    let impossible = AgentSpec { model: Some("impossible".into()), ..spec("Ann", &[], &[]) };
    for (spec, at, expected) in [
        (spec("Ann", &["review", "revue"], &[]), "/skills", "no skill \"revue\"; it has: review"),
        (spec("Ann", &["../skills/review"], &[]), "/skills", "it has: review"),
        (spec("Ann", &[], &["mail"]), "/mcp_servers", "no MCP server \"mail\"; it has: files"),
        (impossible, "/provider", "this provider has no such model"),
    ] {
        match harness.engine.create_agent(&me(), spec, None).await {
            Err(EngineError::Refused { pointer, detail }) => {
                assert!(pointer == at && detail.contains(expected), "{detail}")
            }
            other => panic!("{other:?}"),
        }
    }
    harness.stop().await;
}

async fn a_deleted_skill_or_server_fails_the_run(database: TestDatabase) {
    let harness = harness_with_skill(database).await;
    for (spec, code) in
        [(spec("Ann", &["gone"], &[]), "skill_missing"), (spec("Bob", &[], &["gone"]), "mcp_server_missing")]
    {
        let agent = harness.agent_of(spec).await;
        let room = harness.room(&[&agent]).await;
        let run = harness.post(room, "hello").await.runs[0].id;
        let ended = harness.ended(run).await;
        assert_eq!((ended.status, ended.error.unwrap().code.as_str()), (RunStatus::Failed, code));
    }
    harness.stop().await;
}

async fn a_folder_that_cannot_be_created_fails_the_run(database: TestDatabase) {
    fs::write(database.folder().join("data"), "in the way").unwrap();
    let harness = EngineHarness::new(database).await;
    let ann = harness.agent("Ann", "p").await;
    let room = harness.room(&[&ann]).await;
    let run = harness.post(room, "hello").await.runs[0].id;
    let error = harness.ended(run).await.error.unwrap();
    assert_eq!(error.code, "no_folder");
    assert!(!error.message.contains("data"), "the path is only logged: {}", error.message);
    harness.stop().await;
}

async fn providers_warm_up_agents_that_join_a_room(database: TestDatabase) {
    let mut harness = harness_with_skill(database).await;
    let (ann, bob) = (harness.agent("Ann", "p").await, harness.agent("Bob", "q").await);
    let room = harness.room(&[&ann]).await;
    for _ in 0..2 {
        let both = RoomPatch { agents: Some(vec![ann.id, bob.id]), ..RoomPatch::default() };
        harness.engine.update_room(&me(), room, both, None).await.unwrap();
    }
    let prepared = || -> Vec<_> {
        let prepared = harness.seen.prepared.lock().unwrap();
        prepared.iter().map(|place| (place.room_id, place.agent.id, place.folder.is_dir())).collect()
    };
    assert_eq!(prepared(), [(room, ann.id, true), (room, bob.id, true)], "each agent once");
    let execute = ExecuteRequest { message: "hello".into(), conversation: None, when_busy: None, caller: None };
    harness.engine.execute(&me(), ann.id, execute, None).await.unwrap();
    assert_eq!(prepared().len(), 2, "an agent that runs at once needs no warm-up");
    harness.turn().await.complete();
    harness.stop().await;
}

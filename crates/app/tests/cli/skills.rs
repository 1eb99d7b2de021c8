//! Skills from the database: the program finds the skills of its agent with parameters filled in, and a message can
//! invoke one. Skills of a project's own folder: the program finds them once they are trusted.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{RoomFollower, get, journal, post, post_and_wait, post_text},
};
use domain::{
    ids::{AgentId, RoomId},
    run::RunStatus,
};
use serde_json::json;
use std::{fs, path::PathBuf};

with_each_cli! {
    program_finds_the_skills_of_its_agent,
    invoked_skill_reaches_the_model,
    skills_of_two_rooms_do_not_meet,
    skills_of_a_project_reach_the_model_once_they_are_trusted,
}

async fn create_skill(fixture: &CliFixture) {
    let skill = json!({"name": "greet-people", "description": "Greets people by the word of the week.",
                       "body": "Greet with the word {{word}}, {{times}} times.\n",
                       "parameters": [{"name": "word", "type": "text", "required": true},
                                      {"name": "times", "type": "number", "default": 2}]});
    post(&fixture.api(), "/api/skills", &skill).await.expect_status(201);
}

/// All requests to the model, as text.
fn model_requests(fixture: &CliFixture) -> String {
    fixture.models().requests().iter().map(|request| request.body.to_string()).collect()
}

async fn program_finds_the_skills_of_its_agent(fixture: &CliFixture) {
    create_skill(fixture).await;
    let settings = json!({"skills": ["greet-people"], "skill_parameters": {"greet-people": {"word": "xylophone"}}});
    let agent = fixture.agent_with("greeter", settings).await;
    let room = fixture.api().create_room("A room", &[agent]).await.unwrap().id;
    let run = post_and_wait(&fixture.api(), room, "hello").await;
    let details = fixture.details(&run, &journal(&fixture.api(), room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let copy = copy_of_skill(fixture, agent, room);
    let text = fs::read_to_string(&copy).unwrap_or_else(|error| panic!("{}: {error}\n{details}", copy.display()));
    assert!(text.contains("Greet with the word xylophone, 2 times."), "{text}");
    assert!(
        model_requests(fixture).contains("Greets people by the word of the week."),
        "the model must be offered the skill\n{details}"
    );
}

fn copy_of_skill(fixture: &CliFixture, agent: AgentId, room: RoomId) -> PathBuf {
    match fixture.cli {
        Cli::ClaudeCode => fixture.home(room, agent).join(format!("skills/{room}/skills/greet-people/SKILL.md")),
        Cli::Codex | Cli::Gemini => fixture.workspace(room).join(".agents/skills/greet-people/SKILL.md"),
    }
}

/// The run of the first room is slow; that of the second has another value, and is done meanwhile.
async fn skills_of_two_rooms_do_not_meet(fixture: &CliFixture) {
    create_skill(fixture).await;
    let api = fixture.api();
    let settings = json!({"skills": ["greet-people"], "skill_parameters": {"greet-people": {"word": "xylophone"}}});
    let agent = fixture.agent_with("greeter", settings).await;
    let slow = api.create_room("slow", &[agent]).await.unwrap().id;
    let quick = api.create_room("quick", &[agent]).await.unwrap().id;
    let mut follower = RoomFollower::start(&api, slow).await;
    let run = post_text(&api, slow, "!count 1000 20").await;
    follower.first_delta(run).await;
    let other = post_and_wait(&api, quick, "/greet-people word=trombone hello").await;
    assert_eq!(other.status, RunStatus::Completed, "{}", fixture.details(&other, &journal(&api, quick).await));
    let read = |room| fs::read_to_string(copy_of_skill(fixture, agent, room)).unwrap();
    assert!(read(slow).contains("the word xylophone"), "{}", read(slow));
    assert!(read(quick).contains("the word trombone"), "{}", read(quick));
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Running, "the slow run must not have ended");
    api.cancel_run(run).await.unwrap();
}

async fn invoked_skill_reaches_the_model(fixture: &CliFixture) {
    create_skill(fixture).await;
    let room = fixture.room().await;
    let run = post_and_wait(&fixture.api(), room, "/greet-people word=\"good day\" times=3 to everybody here").await;
    let details = fixture.details(&run, &journal(&fixture.api(), room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let model_requests = model_requests(fixture);
    assert!(model_requests.contains("Greet with the word good day, 3 times."), "{details}");
    assert!(model_requests.contains("to everybody here"), "{details}");
}

async fn skills_of_a_project_reach_the_model_once_they_are_trusted(fixture: &CliFixture) {
    let api = fixture.api();
    let agent = fixture.agent_with("tuner", json!({})).await;
    for is_trusted in [false, true] {
        let room = api.create_room("A room", &[agent]).await.unwrap().id;
        let folder = fixture.workspace(room).join(".claude/skills/tune-pianos");
        fs::create_dir_all(&folder).unwrap();
        let text = "---\nname: tune-pianos\ndescription: Tunes pianos by ear.\n---\nListen first.\n";
        fs::write(folder.join("SKILL.md"), text).unwrap();
        let path = format!("/api/rooms/{room}/skill-trust");
        let found = get(&api, &path).await.expect_status(200);
        assert_eq!(found["skills"][0]["path"], ".claude/skills/tune-pianos");
        if is_trusted {
            post(&api, &path, &json!({"digest": found["digest"]})).await.expect_status(200);
        }
        let run = post_and_wait(&api, room, "hello").await;
        let details = fixture.details(&run, &journal(&api, room).await);
        assert_eq!(run.status, RunStatus::Completed, "{details}");
        let is_offered = model_requests(fixture).contains("Tunes pianos by ear.");
        assert_eq!(is_offered, is_trusted, "{details}");
        let now = get(&api, &path).await.expect_status(200);
        assert_eq!(now["digest"], found["digest"], "what Greenroom copies there is not the project's");
    }
}

//! Skills from the database: the program finds the skills of its agent with parameters filled in, and a message can
//! invoke one.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{journal, post, post_and_wait},
};
use domain::run::RunStatus;
use serde_json::json;
use std::fs;

with_each_cli! {
    program_finds_the_skills_of_its_agent,
    invoked_skill_reaches_the_model,
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
    let copy = match fixture.cli {
        Cli::ClaudeCode => fixture.home(agent).join("claude/skills/greet-people/SKILL.md"),
        Cli::Codex | Cli::Gemini => fixture.workspace(room).join(".agents/skills/greet-people/SKILL.md"),
    };
    let text = fs::read_to_string(&copy).unwrap_or_else(|error| panic!("{}: {error}\n{details}", copy.display()));
    assert!(text.contains("Greet with the word xylophone, 2 times."), "{text}");
    assert!(
        model_requests(fixture).contains("Greets people by the word of the week."),
        "the model must be offered the skill\n{details}"
    );
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

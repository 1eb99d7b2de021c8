//! Skills from the database: the program finds those of its agent, filled in, and a message can call one.

use crate::{
    scene::{answered, journal, post},
    stage::{Cli, Stage},
};
use domain::run::RunStatus;
use serde_json::json;
use std::fs;

with_each_cli! {
    a_skill_of_the_agent_is_found_by_the_program,
    a_skill_that_a_message_calls_reaches_the_model,
}

async fn make(stage: &Stage) {
    let skill = json!({"name": "greet-people", "description": "Greets people by the word of the week.",
                       "body": "Greet with the word {{word}}, {{times}} times.\n",
                       "parameters": [{"name": "word", "type": "text", "required": true},
                                      {"name": "times", "type": "number", "default": 2}]});
    post(&stage.api(), "/api/skills", &skill).await.is(201);
}

/// What the model was told, all of it.
fn told(stage: &Stage) -> String {
    stage.models().requests().iter().map(|request| request.body.to_string()).collect()
}

async fn a_skill_of_the_agent_is_found_by_the_program(stage: &Stage) {
    make(stage).await;
    let settings = json!({"skills": ["greet-people"], "skill_parameters": {"greet-people": {"word": "xylophone"}}});
    let agent = stage.agent_with("greeter", settings).await;
    let room = stage.api().create_room("A room", &[agent]).await.unwrap().id;
    let run = answered(&stage.api(), room, "hello").await;
    let story = stage.story(&run, &journal(&stage.api(), room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    let copy = match stage.cli {
        Cli::ClaudeCode => stage.home(agent).join("claude/skills/greet-people/SKILL.md"),
        Cli::Codex | Cli::Gemini => stage.workplace(room).join(".agents/skills/greet-people/SKILL.md"),
    };
    let text = fs::read_to_string(&copy).unwrap_or_else(|error| panic!("{}: {error}\n{story}", copy.display()));
    assert!(text.contains("Greet with the word xylophone, 2 times."), "{text}");
    assert!(told(stage).contains("Greets people by the word of the week."), "the model is offered it\n{story}");
}

async fn a_skill_that_a_message_calls_reaches_the_model(stage: &Stage) {
    make(stage).await;
    let room = stage.room().await;
    let run = answered(&stage.api(), room, "/greet-people word=\"good day\" times=3 to everybody here").await;
    let story = stage.story(&run, &journal(&stage.api(), room).await);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    let told = told(stage);
    assert!(told.contains("Greet with the word good day, 3 times."), "{story}");
    assert!(told.contains("to everybody here"), "{story}");
}

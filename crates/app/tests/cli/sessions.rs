//! Tomorrow the conversation goes on where it was, with or without the program's own memory of it.

use crate::{
    scene::{Audience, answered, ended, journal, message_of, runs_of, say, say_with},
    stage::{Cli, Stage, statuses},
};
use domain::run::RunStatus;
use serde_json::json;
use std::fs;

with_each_cli! {
    a_restarted_server_goes_on,
    a_session_that_is_gone_is_rebuilt_from_the_journal,
    what_an_interruption_cut_off_is_not_forgotten,
}

async fn a_restarted_server_goes_on(stage: &Stage) {
    let room = stage.room().await;
    answered(&stage.api(), room, "remember the apples").await;
    stage.restart().await;
    let api = stage.api();
    let run = answered(&api, room, "!recall").await;
    let (events, message) = (journal(&api, room).await, message_of(&api, &run).await);
    let story = stage.story(&run, &events);
    assert!(message.text.contains("remember the apples"), "{story}");
    // Gemini's own memory cannot be trusted within the minute that it was written in.
    let rebuilt = statuses(&events, &run).contains(&"session_rebuilt".to_owned());
    assert_eq!(rebuilt, stage.cli == Cli::Gemini, "{story}");
}

async fn a_session_that_is_gone_is_rebuilt_from_the_journal(stage: &Stage) {
    let room = stage.room().await;
    answered(&stage.api(), room, "remember the apples").await;
    stage.restart().await;
    fs::remove_dir_all(stage.home(stage.agent().await)).unwrap();
    let api = stage.api();
    let run = answered(&api, room, "!recall").await;
    let (events, message) = (journal(&api, room).await, message_of(&api, &run).await);
    let story = stage.story(&run, &events);
    assert_eq!(run.status, RunStatus::Completed, "{story}");
    assert!(message.text.contains("remember the apples"), "{story}");
    assert!(statuses(&events, &run).contains(&"session_rebuilt".to_owned()), "the user is told\n{story}");
}

async fn what_an_interruption_cut_off_is_not_forgotten(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let mut audience = Audience::of(&api, room).await;
    let first = say(&api, room, "!count 400 25").await;
    audience.first_word(first).await;
    let accepted = say_with(&api, room, json!({"text": "!recall", "when_busy": "interrupt"})).await.is(202);
    let second = ended(&api, runs_of(&accepted)[0]).await;
    let story = stage.story(&second, &journal(&api, room).await);
    assert_eq!(api.run(first).await.unwrap().status, RunStatus::Interrupted, "{story}");
    let message = message_of(&api, &second).await;
    assert!(message.text.contains("!count 400"), "it knows what it was asked before\n{story}");
}

//! Conversations resume after a restart, with or without the session file of the program.

use crate::{
    cli_fixture::{Cli, CliFixture, statuses},
    requests::{RoomFollower, journal, message_of, post_and_wait, post_body, post_text, runs_of, wait_for_end},
};
use domain::run::RunStatus;
use serde_json::json;
use std::fs;

with_each_cli! {
    conversation_resumes_after_a_server_restart,
    lost_session_is_rebuilt_from_the_journal,
    interrupted_prompt_is_remembered,
}

async fn conversation_resumes_after_a_server_restart(fixture: &CliFixture) {
    let room = fixture.room().await;
    post_and_wait(&fixture.api(), room, "remember the apples").await;
    fixture.restart().await;
    let api = fixture.api();
    let run = post_and_wait(&api, room, "!recall").await;
    let (events, message) = (journal(&api, room).await, message_of(&api, &run).await);
    let details = fixture.details(&run, &events);
    assert!(message.text.contains("remember the apples"), "{details}");
    // Gemini's session file is unreliable within the minute it was written.
    let rebuilt = statuses(&events, &run).contains(&"session_rebuilt".to_owned());
    assert_eq!(rebuilt, fixture.cli == Cli::Gemini, "{details}");
}

async fn lost_session_is_rebuilt_from_the_journal(fixture: &CliFixture) {
    let room = fixture.room().await;
    post_and_wait(&fixture.api(), room, "remember the apples").await;
    fixture.restart().await;
    fs::remove_dir_all(fixture.home(room, fixture.agent().await)).unwrap();
    let api = fixture.api();
    let run = post_and_wait(&api, room, "!recall").await;
    let (events, message) = (journal(&api, room).await, message_of(&api, &run).await);
    let details = fixture.details(&run, &events);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    assert!(message.text.contains("remember the apples"), "{details}");
    assert!(statuses(&events, &run).contains(&"session_rebuilt".to_owned()), "the room must get a status\n{details}");
}

async fn interrupted_prompt_is_remembered(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let mut follower = RoomFollower::start(&api, room).await;
    let first = post_text(&api, room, "!count 400 25").await;
    follower.first_delta(first).await;
    let accepted = post_body(&api, room, json!({"text": "!recall", "when_busy": "interrupt"})).await.expect_status(202);
    let second = wait_for_end(&api, runs_of(&accepted)[0]).await;
    let details = fixture.details(&second, &journal(&api, room).await);
    assert_eq!(api.run(first).await.unwrap().status, RunStatus::Interrupted, "{details}");
    let message = message_of(&api, &second).await;
    assert!(message.text.contains("!count 400"), "the session must know the interrupted prompt\n{details}");
}

//! A message for an answer in progress: taken into the running answer, and answered once.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{RoomFollower, journal, message_of, post_body, post_text, runs_of, wait_for_end},
};
use domain::run::RunStatus;
use serde_json::json;

async fn steered(fixture: &CliFixture, first: &str, until_tool: bool) {
    let api = fixture.api();
    let agent = fixture.agent_with("open", json!({"tools": {"allow": ["*"]}})).await;
    let room = api.create_room("steered", &[agent]).await.unwrap().id;
    let mut follower = RoomFollower::start(&api, room).await;
    let run = post_text(&api, room, first).await;
    if until_tool {
        fixture.wait_for_process("sleep 3", true).await;
    } else {
        follower.first_delta(run).await;
    }
    let accepted =
        post_body(&api, room, json!({"text": "say pineapple", "when_busy": "steer"})).await.expect_status(202);
    assert_eq!(runs_of(&accepted), [run], "the running answer takes the message");
    let run = wait_for_end(&api, run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Completed, "{details}");
    let asked: Vec<String> = fixture.models().requests().iter().map(|request| request.body.to_string()).collect();
    assert!(asked.iter().any(|body| body.contains("say pineapple")), "the model must see the message\n{details}");
    let answer = message_of(&api, &run).await.text;
    assert!(until_tool || answer.contains("pineapple"), "its own answer follows in the same run\n{details}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_takes_a_message_during_an_answer() {
    let fixture = CliFixture::start(Cli::ClaudeCode).await;
    steered(&fixture, "!count 60 50", false).await;
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_takes_a_message_during_a_tool_call() {
    let fixture = CliFixture::start(Cli::ClaudeCode).await;
    steered(&fixture, "!tool sleep 3; true", true).await;
    fixture.finish().await;
}

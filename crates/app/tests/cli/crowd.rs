//! Many conversations at once.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{RoomFollower, counted, message_of, post_text, wait_for_end},
};
use domain::{event::EventType, run::RunStatus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eleventh_claude_conversation_waits_for_a_slot() {
    let fixture = CliFixture::start(Cli::ClaudeCode).await;
    let api = fixture.api();
    let mut runs = Vec::new();
    for _ in 0..10 {
        let room = fixture.room().await;
        let mut follower = RoomFollower::start(&api, room).await;
        let run = post_text(&api, room, "!count 600 50").await;
        follower.first_delta(run).await;
        runs.push(run);
    }
    let room = fixture.room().await;
    let mut follower = RoomFollower::start(&api, room).await;
    let eleventh = post_text(&api, room, "!count 3").await;
    let status = follower.until_kind(EventType::Status, eleventh).await;
    assert!(status.data.contains("waiting_for_slot") && status.data.contains("10"), "{}", status.data);
    assert_eq!(fixture.program_processes().len(), 10, "the limit holds");
    api.cancel_run(runs.pop().unwrap()).await.unwrap();
    let eleventh = wait_for_end(&api, eleventh).await;
    assert_eq!(eleventh.status, RunStatus::Completed);
    assert_eq!(message_of(&api, &eleventh).await.text.trim(), counted(3));
    assert!(fixture.program_processes().len() <= 10, "the limit holds");
    for run in runs {
        api.cancel_run(run).await.unwrap();
    }
    fixture.finish().await;
}

//! Many conversations at once.

use crate::{
    scene::{Audience, counted, ended, message_of, say},
    stage::{Cli, Stage},
};
use domain::{event::EventType, run::RunStatus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_claude_conversations_hold_the_limit_and_the_eleventh_waits_and_says_so() {
    let stage = Stage::start(Cli::ClaudeCode).await;
    let api = stage.api();
    let mut runs = Vec::new();
    for _ in 0..10 {
        let room = stage.room().await;
        let mut audience = Audience::of(&api, room).await;
        let run = say(&api, room, "!count 600 50").await;
        audience.first_word(run).await;
        runs.push(run);
    }
    let room = stage.room().await;
    let mut audience = Audience::of(&api, room).await;
    let eleventh = say(&api, room, "!count 3").await;
    let status = audience.until_kind(EventType::Status, eleventh).await;
    assert!(status.data.contains("waiting_for_slot") && status.data.contains("10"), "{}", status.data);
    assert_eq!(stage.program_processes().len(), 10, "the limit holds");
    api.cancel_run(runs.pop().unwrap()).await.unwrap();
    let eleventh = ended(&api, eleventh).await;
    assert_eq!(eleventh.status, RunStatus::Completed);
    assert_eq!(message_of(&api, &eleventh).await.text.trim(), counted(3));
    assert!(stage.program_processes().len() <= 10, "the limit holds");
    for run in runs {
        api.cancel_run(run).await.unwrap();
    }
    stage.finish().await;
}

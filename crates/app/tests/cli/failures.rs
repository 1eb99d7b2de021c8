//! What goes wrong ends in one terminal event with a message a person understands, and the room goes on.

use crate::{
    scene::{Audience, answered, ended, journal, say},
    stage::{Cli, Stage},
};
use domain::run::RunStatus;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

with_each_cli! { an_error_of_the_api_is_told, a_program_that_is_killed_is_told_and_replaced }

async fn an_error_of_the_api_is_told(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let run = answered(&api, room, "!fail 400").await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{story}");
    let error = run.error.as_ref().unwrap();
    assert_eq!(error.code, "api_error", "{story}");
    assert!(!error.message.is_empty(), "{story}");
    let next = answered(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", stage.story(&next, &journal(&api, room).await));
}

async fn a_program_that_is_killed_is_told_and_replaced(stage: &Stage) {
    let (api, room) = (stage.api(), stage.room().await);
    let mut audience = Audience::of(&api, room).await;
    let run = say(&api, room, "!count 1000 20").await;
    audience.first_word(run).await;
    let processes = stage.program_processes();
    assert!(!processes.is_empty());
    for pid in processes {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    let run = ended(&api, run).await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{story}");
    assert_eq!(run.error.as_ref().unwrap().code, "program_crashed", "{story}");
    let next = answered(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", stage.story(&next, &journal(&api, room).await));
}

macro_rules! a_bad_key_is_final_at_once {
    ($($name:ident: $cli:ident),+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            bad_key(Cli::$cli).await;
        })+
    };
}

a_bad_key_is_final_at_once! {
    claude_code_with_a_bad_key: ClaudeCode, codex_with_a_bad_key: Codex, gemini_with_a_bad_key: Gemini
}

async fn bad_key(cli: Cli) {
    let stage = Stage::start_with(cli, "bad-key", &[]).await;
    let (api, room) = (stage.api(), stage.room().await);
    let began = Instant::now();
    let run = answered(&api, room, "hello").await;
    let story = stage.story(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{story}");
    assert_eq!(run.error.as_ref().unwrap().code, "authentication_failed", "{story}");
    assert!(began.elapsed() < Duration::from_secs(30), "not retried for minutes: {:?}\n{story}", began.elapsed());
    stage.finish().await;
}

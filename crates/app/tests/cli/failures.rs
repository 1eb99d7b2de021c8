//! Failures end in one terminal event with a readable message, and the room continues.

use crate::{
    cli_fixture::{Cli, CliFixture},
    requests::{RoomFollower, journal, post_and_wait, post_text, wait_for_end},
};
use domain::run::RunStatus;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

with_each_cli! { api_error_fails_the_run, killed_program_fails_the_run_and_is_replaced }

async fn api_error_fails_the_run(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let run = post_and_wait(&api, room, "!fail 400").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{details}");
    let error = run.error.as_ref().unwrap();
    assert_eq!(error.code, "api_error", "{details}");
    assert!(!error.message.is_empty(), "{details}");
    let next = post_and_wait(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", fixture.details(&next, &journal(&api, room).await));
}

async fn killed_program_fails_the_run_and_is_replaced(fixture: &CliFixture) {
    let (api, room) = (fixture.api(), fixture.room().await);
    let mut follower = RoomFollower::start(&api, room).await;
    let run = post_text(&api, room, "!count 1000 20").await;
    follower.first_delta(run).await;
    let processes = fixture.program_processes();
    assert!(!processes.is_empty());
    for pid in processes {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    let run = wait_for_end(&api, run).await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{details}");
    assert_eq!(run.error.as_ref().unwrap().code, "program_crashed", "{details}");
    let next = post_and_wait(&api, room, "hello again").await;
    assert_eq!(next.status, RunStatus::Completed, "{}", fixture.details(&next, &journal(&api, room).await));
}

macro_rules! bad_key_tests {
    ($($name:ident: $cli:ident),+) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            bad_key(Cli::$cli).await;
        })+
    };
}

bad_key_tests! {
    claude_code_with_a_bad_key: ClaudeCode, codex_with_a_bad_key: Codex, gemini_with_a_bad_key: Gemini
}

async fn bad_key(cli: Cli) {
    let fixture = CliFixture::start_with(cli, "bad-key", &[]).await;
    let (api, room) = (fixture.api(), fixture.room().await);
    let began = Instant::now();
    let run = post_and_wait(&api, room, "hello").await;
    let details = fixture.details(&run, &journal(&api, room).await);
    assert_eq!(run.status, RunStatus::Failed, "{details}");
    assert_eq!(run.error.as_ref().unwrap().code, "authentication_failed", "{details}");
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "must not be retried for minutes: {:?}\n{details}",
        began.elapsed()
    );
    fixture.finish().await;
}

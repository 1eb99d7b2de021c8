//! However a sandbox or a command ends, nothing of it is left.

use super::Session;
use crate::process_list::{self, TWO_SECONDS};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sandbox::{CommandExit, IsolationTier, OutputLimits, SandboxCommand as _, SandboxError};
use std::time::Duration;

#[tokio::test]
async fn dropping_a_command_kills_it() {
    let session = Session::open().await;
    let started = session.start(session.scene.shell(&format!("{0} & {0}", session.sleep(1)))).await;
    process_list::wait_for(&session.sleep_text(1), 2);
    drop(started);
    // The runtime of this test has one thread, which must be free to send the request.
    tokio::task::spawn_blocking({
        let text = session.sleep_text(1);
        move || process_list::assert_gone_within(&text, TWO_SECONDS)
    })
    .await
    .unwrap();
    assert_eq!(session.output("echo on").await, "on\n");
}

#[tokio::test]
async fn stopping_a_sandbox_ends_everything_in_it() {
    for tier in [IsolationTier::Native, IsolationTier::Landlock, IsolationTier::None] {
        let session = Session::open_in(tier).await;
        let mut started = session.start(session.scene.shell(&format!("setsid {0} & {0}", session.sleep(1)))).await;
        process_list::wait_for(&session.sleep_text(1), 2);
        session.sandbox.stop().await.unwrap();
        process_list::assert_gone_within(&session.sleep_text(1), Duration::ZERO);
        assert_eq!(started.wait().await, CommandExit::SandboxEnded);
        let refused = sandbox::capture(&session.sandbox, session.scene.shell("true"), OutputLimits::default()).await;
        assert!(matches!(refused, Err(SandboxError::Ended)), "{refused:?}");
        drop(session.sandbox);
        session.driver.wait_until_all_ended().await;
    }
}

#[tokio::test]
async fn dropping_a_sandbox_ends_everything_in_it() {
    let session = Session::open().await;
    let mut started = session.start(session.scene.shell(&session.sleep(1))).await;
    let text = session.sleep_text(1);
    process_list::wait_for(&text, 1);
    drop(session.sandbox);
    assert_eq!(started.wait().await, CommandExit::SandboxEnded);
    process_list::assert_gone_within(&text, Duration::ZERO);
}

/// The supervisor is outside: only the machine's administrator or a lack of memory can kill it.
#[tokio::test]
async fn the_sandbox_ends_with_its_supervisor() {
    for tier in [IsolationTier::Native, IsolationTier::Landlock, IsolationTier::None] {
        let session = Session::open_in(tier).await;
        let script = format!("(setsid {0} &) ; {0}", session.sleep(1));
        let mut started = session.start(session.scene.shell(&script)).await;
        process_list::wait_for(&session.sleep_text(1), 2);
        let command = started.command.process_id().unwrap();
        // Above the command are its shepherd, the broker and the supervisor.
        let supervisor = parent(command).and_then(parent).and_then(parent).unwrap();
        assert!(process_list::with_text(sandbox::HELPER_SUBCOMMAND).contains(&supervisor));
        kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
        assert_eq!(started.wait().await, CommandExit::SandboxEnded);
        process_list::assert_gone_within(&session.sleep_text(1), TWO_SECONDS);
    }
}

fn parent(id: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::test]
async fn a_cancellation_at_any_moment_leaves_nothing() {
    let session = Session::open().await;
    let script = format!("setsid {0} & (setsid {0} &) ; {0}", session.sleep(1));
    for microseconds in (0..30).map(|round| round * round * 40) {
        let command = sandbox::capture(&session.sandbox, session.scene.shell(&script), OutputLimits::default());
        let cancelled = tokio::time::timeout(Duration::from_micros(microseconds), command).await;
        assert!(cancelled.is_err(), "the command cannot end by itself");
    }
    let deadline = std::time::Instant::now() + TWO_SECONDS;
    while !session.sandbox.list().await.unwrap().is_empty() {
        assert!(std::time::Instant::now() < deadline, "{:?}", session.sandbox.list().await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    process_list::assert_gone_within(&session.sleep_text(1), Duration::ZERO);
}

//! A stop escalates step by step and returns a receipt.

use super::{AT_ONCE, DEADLINE, PATIENT, assert_dead, both, is_alive, line, program, script, start, within};
use domain::run::Receipt;
use std::{fs, time::Duration};
use workbench::process::{ProgramExit, StopTimeouts};

const SHORT: Duration = Duration::from_millis(100);

fn summary(receipt: &Receipt) -> (u32, Vec<&str>) {
    (receipt.processes, receipt.signals.iter().map(String::as_str).collect())
}

#[tokio::test]
async fn eof_stops_most_programs() {
    for supervisor in both() {
        let folder = tempfile::tempdir().unwrap();
        let child = start(&supervisor, &program("cat", &[], folder.path())).await;
        drop(child.stdin);
        let receipt = within("the stop", child.handle.stop(PATIENT)).await;
        assert_eq!(summary(&receipt), (1, vec!["eof"]));
    }
}

#[tokio::test]
async fn program_that_ignores_eof_gets_sigterm() {
    for supervisor in both() {
        let (_folder, command) = script("trap 'wait; exit 0' TERM; sleep 1000 & echo ready; wait");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        drop(child.stdin);
        let receipt =
            within("the stop", child.handle.stop(StopTimeouts { after_input_closed: SHORT, after_sigterm: DEADLINE }))
                .await;
        assert_eq!(summary(&receipt), (2, vec!["eof", "SIGTERM"]));
        assert!(receipt.millis >= 100);
    }
}

#[tokio::test]
async fn program_that_ignores_sigterm_is_killed() {
    for supervisor in both() {
        let (_folder, command) = script("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        let receipt =
            within("the stop", child.handle.stop(StopTimeouts { after_input_closed: SHORT, after_sigterm: SHORT }))
                .await;
        assert_eq!(summary(&receipt), (3, vec!["eof", "SIGTERM", "SIGKILL"]));
    }
}

#[tokio::test]
async fn leftovers_of_a_stopped_program_are_killed() {
    for supervisor in both() {
        let (_folder, command) = script("setsid sleep 1000 & setsid sleep 1000 & echo ready; read -r word; exit 0");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        drop(child.stdin);
        let receipt = within("the stop", child.handle.stop(PATIENT)).await;
        assert_eq!(summary(&receipt), (3, vec!["eof", "SIGKILL"]));
    }
}

/// The receipt is empty if the program had already ended.
#[tokio::test]
async fn ended_program_needs_no_signal() {
    for supervisor in both() {
        let (_folder, command) = script("exit 5");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(child.handle.wait().await, ProgramExit::Code(5));
        assert_eq!(child.handle.wait().await, ProgramExit::Code(5), "the second call must return the same");
        assert_eq!(summary(&within("the stop", child.handle.stop(PATIENT)).await), (0, vec![]));
    }
}

#[tokio::test]
async fn waiting_for_the_end_can_be_cancelled() {
    for supervisor in both() {
        let (_folder, command) = script("read -r word; exit 3");
        let mut child = start(&supervisor, &command).await;
        for _ in 0..50 {
            tokio::time::timeout(Duration::from_millis(1), child.handle.wait()).await.unwrap_err();
        }
        drop(child.stdin);
        assert_eq!(within("the end", child.handle.wait()).await, ProgramExit::Code(3));
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_strays_end_without_the_program() {
    for supervisor in both() {
        // One child of the program, and one orphan.
        let (folder, command) = script(
            "sleep 1000 & echo $! > kept
            setsid sh -c '(sleep 1000 & echo $! > left) &'
            while [ ! -s left ]; do sleep 0.01; done
            echo ready; wait",
        );
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        let id = |name: &str| -> i32 { fs::read_to_string(folder.path().join(name)).unwrap().trim().parse().unwrap() };
        let (kept, left) = (id("kept"), id("left"));
        // Its parent may take a moment to end.
        within("it to be found", async {
            while child.handle.end_orphans().count() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_dead("abandoned", &[left]).await;
        assert!(is_alive(kept) && is_alive(child.handle.process_id()));
        within("the stop", child.handle.stop(AT_ONCE)).await;
        assert!(!is_alive(kept));
    }
}

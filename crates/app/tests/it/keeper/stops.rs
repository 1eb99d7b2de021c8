//! A stop goes step by step, and says what it took.

use super::{AT_ONCE, DEADLINE, PATIENT, assert_dead, both, is_alive, line, program, script, start, within};
use domain::run::Receipt;
use std::{fs, time::Duration};
use workbench::process::{Ended, Patience};

const SHORT: Duration = Duration::from_millis(100);

fn took(receipt: &Receipt) -> (u32, Vec<&str>) {
    (receipt.processes, receipt.signals.iter().map(String::as_str).collect())
}

#[tokio::test]
async fn the_end_of_its_input_is_enough_for_most() {
    for supervisor in both() {
        let folder = tempfile::tempdir().unwrap();
        let child = start(&supervisor, &program("cat", &[], folder.path())).await;
        drop(child.stdin);
        let receipt = within("the stop", child.handle.stop(PATIENT)).await;
        assert_eq!(took(&receipt), (1, vec!["eof"]));
    }
}

#[tokio::test]
async fn one_that_does_not_read_is_asked_to_end() {
    for supervisor in both() {
        let (_folder, command) = script("trap 'wait; exit 0' TERM; sleep 1000 & echo ready; wait");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        drop(child.stdin);
        let receipt =
            within("the stop", child.handle.stop(Patience { input_closed: SHORT, terminated: DEADLINE })).await;
        assert_eq!(took(&receipt), (2, vec!["eof", "SIGTERM"]));
        assert!(receipt.millis >= 100);
    }
}

#[tokio::test]
async fn one_that_does_not_listen_is_killed() {
    for supervisor in both() {
        let (_folder, command) = script("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        let receipt = within("the stop", child.handle.stop(Patience { input_closed: SHORT, terminated: SHORT })).await;
        assert_eq!(took(&receipt), (3, vec!["eof", "SIGTERM", "SIGKILL"]));
    }
}

#[tokio::test]
async fn what_a_willing_program_leaves_behind_is_killed() {
    for supervisor in both() {
        let (_folder, command) = script("setsid sleep 1000 & setsid sleep 1000 & echo ready; read -r word; exit 0");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, "ready");
        drop(child.stdin);
        let receipt = within("the stop", child.handle.stop(PATIENT)).await;
        assert_eq!(took(&receipt), (3, vec!["eof", "SIGKILL"]));
    }
}

/// Nothing was stopped, so nothing is claimed.
#[tokio::test]
async fn a_program_that_had_ended_needs_no_signal() {
    for supervisor in both() {
        let (_folder, command) = script("exit 5");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(child.handle.ended().await, Ended::Code(5));
        assert_eq!(child.handle.ended().await, Ended::Code(5), "told again");
        assert_eq!(took(&within("the stop", child.handle.stop(PATIENT)).await), (0, vec![]));
    }
}

#[tokio::test]
async fn waiting_for_the_end_may_be_given_up() {
    for supervisor in both() {
        let (_folder, command) = script("read -r word; exit 3");
        let mut child = start(&supervisor, &command).await;
        for _ in 0..50 {
            tokio::time::timeout(Duration::from_millis(1), child.handle.ended()).await.unwrap_err();
        }
        drop(child.stdin);
        assert_eq!(within("the end", child.handle.ended()).await, Ended::Code(3));
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_what_was_abandoned_ends_alone() {
    for supervisor in both() {
        // One that the program looks after, and one that it has left.
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
        // Its parent may take a moment to be gone.
        within("it to be found", async {
            while child.handle.end_strays() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert_dead("abandoned", &[left]).await;
        assert!(is_alive(kept) && is_alive(child.handle.id()));
        within("the stop", child.handle.stop(AT_ONCE)).await;
        assert!(!is_alive(kept));
    }
}

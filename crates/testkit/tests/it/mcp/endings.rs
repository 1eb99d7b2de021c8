//! Servers that end, by themselves or by us, and come back.

use super::{DEADLINE, Scene, fake, good, is_alive, within};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use workbench::{
    mcp::{Failure, Notice, State},
    process::Limits,
};

#[tokio::test]
async fn a_crash_in_the_middle_of_a_call_is_told_and_the_next_call_finds_it_up_again() {
    let scene = Scene::new();
    let server = good();
    let first = scene.call(&server, "environment", json!({})).await.unwrap().structured.unwrap()["id"].clone();
    let begin = Instant::now();
    let failure = scene.call(&server, "crash", json!({})).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(20), "it is not waited for until the deadline");
    assert!(matches!(&failure, Failure::Crashed(why) if why.contains("exit code 9") && why.contains("out of cheese")));
    let status = scene.manager.status(&server);
    assert_eq!((status.state, status.failures, status.restarts), (State::Failed, 1, 0));

    let again = scene.call(&server, "environment", json!({})).await.unwrap();
    assert_ne!(again.structured.unwrap()["id"], first);
    let [Notice::Restarted { server: name, reason }] = &again.notices[..] else { panic!("{:?}", again.notices) };
    assert!(name == "fake" && reason.contains("exit code 9"), "{reason}");
    assert!(again.notices[0].to_string().contains("was started again"));
    let third = scene.call(&server, "echo", json!({})).await.unwrap();
    assert_eq!((third.notices.len(), scene.manager.status(&server).restarts), (0, 1));
    scene.close().await;
}

#[tokio::test]
async fn what_a_server_has_started_ends_with_it() {
    let scene = Scene::new();
    let server = good();
    let grandchild: i32 = scene.text(&server, "grandchild").await.parse().unwrap();
    assert!(is_alive(grandchild));
    scene.manager.stop(&server).await;
    assert!(!is_alive(grandchild), "it outlived its server");
    let grandchild: i32 = scene.text(&server, "grandchild").await.parse().unwrap();
    assert!(scene.call(&server, "crash", json!({})).await.is_err());
    timeout(DEADLINE, async {
        while is_alive(grandchild) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("it ends with a crash as well");
    scene.close().await;
}

#[tokio::test]
async fn one_that_crashes_over_and_over_is_given_a_rest() {
    let limits = Limits { failures: 3, window: Duration::from_secs(600), ..Limits::default() };
    let scene = Scene::with(|settings| settings.backoff = limits);
    let server = fake("exit", "");
    for _ in 0..3 {
        assert_eq!(scene.manager.tools(&server).await.unwrap_err().code(), "mcp_start_failed");
    }
    let failure = scene.manager.tools(&server).await.unwrap_err();
    assert!(matches!(failure, Failure::Resting { .. }), "{failure}");
    assert!(failure.to_string().contains("crashed 3 times") && failure.to_string().contains("no configuration"));
    let status = scene.manager.status(&server);
    assert!(status.state == State::Resting && status.retry_in_ms.is_some_and(|wait| wait > 0));

    // A good start does not forgive a server that dies with every call; a good call does.
    let crashing = good();
    for _ in 0..3 {
        scene.manager.tools(&crashing).await.unwrap();
        assert!(matches!(scene.call(&crashing, "crash", json!({})).await, Err(Failure::Crashed(_))));
    }
    assert!(matches!(scene.call(&crashing, "echo", json!({})).await, Err(Failure::Resting { .. })));
    scene.close().await;
}

#[tokio::test]
async fn one_that_does_not_answer_any_more_is_started_again() {
    let scene = Scene::new();
    let server = good();
    let first = scene.manager.tools(&server).await.map(|_| scene.manager.status(&server).process_id).unwrap();
    for _ in 0..3 {
        let failure = scene.call_with(&server, "hang", json!({}), within(100)).await.unwrap_err();
        assert!(matches!(failure, Failure::Timeout { .. }));
    }
    let back = scene.call(&server, "echo", json!({"text": "back"})).await.unwrap();
    assert_eq!(back.text(), "back");
    assert!(matches!(&back.notices[..], [Notice::Restarted { reason, .. }] if reason.contains("did not answer")));
    assert_ne!(scene.manager.status(&server).process_id, first);
    scene.close().await;
}

#[tokio::test]
async fn agents_with_the_same_config_share_one_process() {
    let scene = Scene::new();
    let (mine, mut yours) = (good(), good());
    yours.name = "by-another-name".into();
    let (one, other) = tokio::join!(scene.manager.tools(&mine), scene.manager.tools(&yours));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(scene.supervisor.living(), 1);
    assert_eq!(scene.manager.status(&mine).process_id, scene.manager.status(&yours).process_id);
    let mut elsewhere = good();
    elsewhere.config.folder = Some("/".into());
    scene.manager.tools(&elsewhere).await.unwrap();
    assert_eq!(scene.supervisor.living(), 2);
    scene.close().await;
}

#[tokio::test]
async fn one_that_nobody_uses_is_stopped_and_comes_back_without_a_word() {
    let scene = Scene::with(|settings| settings.idle = Duration::from_millis(200));
    let server = good();
    // Longer than the idle time, and in use all the while.
    let slow = scene.call(&server, "sleep", json!({"ms": 700})).await.unwrap();
    assert_eq!((slow.text().as_str(), scene.manager.status(&server).restarts), ("awake", 0));
    timeout(DEADLINE, scene.supervisor.all_gone()).await.expect("it is stopped");
    assert_eq!(scene.manager.status(&server).state, State::Stopped);
    let back = scene.call(&server, "echo", json!({"text": "back"})).await.unwrap();
    assert_eq!((back.text().as_str(), back.notices.len()), ("back", 0));
    scene.close().await;
}

#[tokio::test]
async fn closing_ends_even_what_does_not_want_to_end() {
    let scene = Scene::with(|settings| settings.close = Duration::from_secs(2));
    let deaf = fake("deaf", "");
    scene.manager.tools(&deaf).await.unwrap();
    scene.manager.tools(&good()).await.unwrap();
    assert_eq!(scene.supervisor.living(), 2);
    let begin = Instant::now();
    let manager = scene.manager.clone();
    scene.close().await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(matches!(manager.tools(&deaf).await, Err(Failure::Closing)));
}

/// rmcp's own transports panic here.
#[test]
fn after_the_runtime_has_ended_nothing_panics() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let manager = runtime.block_on(async {
        let scene = Scene::new();
        scene.manager.tools(&good()).await.unwrap();
        scene.manager.clone()
    });
    drop(runtime);
    drop(manager);
}

//! Servers that end, on their own or stopped by us, and restart.

use super::{DEADLINE, McpFixture, fake, good, is_alive, within};
use domain::mcp::NamedMcpServer;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use workbench::{
    mcp::{McpFailure, McpNotice, McpServerState},
    process::BackoffLimits,
};

#[tokio::test]
async fn crash_fails_the_call_and_the_next_call_restarts_the_server() {
    let fixture = McpFixture::new();
    let server = good();
    let first = fixture.call(&server, "environment", json!({})).await.unwrap().structured.unwrap()["id"].clone();
    let begin = Instant::now();
    let failure = fixture.call(&server, "crash", json!({})).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(20), "the call must not wait for the deadline");
    assert!(
        matches!(&failure, McpFailure::Crashed(why) if why.contains("exit code 9") && why.contains("out of cheese"))
    );
    let status = fixture.manager.status(&server);
    assert_eq!((status.state, status.failures, status.restarts), (McpServerState::Failed, 1, 0));

    let again = fixture.call(&server, "environment", json!({})).await.unwrap();
    assert_ne!(again.structured.unwrap()["id"], first);
    let [McpNotice::Restarted { server: name, reason }] = &again.notices[..] else { panic!("{:?}", again.notices) };
    assert!(name == "fake" && reason.contains("exit code 9"), "{reason}");
    assert!(again.notices[0].to_string().contains("was restarted"));
    let third = fixture.call(&server, "echo", json!({})).await.unwrap();
    assert_eq!((third.notices.len(), fixture.manager.status(&server).restarts), (0, 1));
    fixture.close().await;
}

#[tokio::test]
async fn grandchildren_end_with_the_server() {
    let fixture = McpFixture::new();
    let server = good();
    let grandchild: i32 = fixture.text(&server, "grandchild").await.parse().unwrap();
    assert!(is_alive(grandchild));
    fixture.manager.stop(&server).await;
    assert!(!is_alive(grandchild), "the grandchild outlived its server");
    let grandchild: i32 = fixture.text(&server, "grandchild").await.parse().unwrap();
    assert!(fixture.call(&server, "crash", json!({})).await.is_err());
    timeout(DEADLINE, async {
        while is_alive(grandchild) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the grandchild ends after a crash too");
    fixture.close().await;
}

#[tokio::test]
async fn repeated_crashes_trigger_backoff() {
    let limits = BackoffLimits { failures: 3, window: Duration::from_secs(600), ..BackoffLimits::default() };
    let fixture = McpFixture::with(|settings| settings.backoff = limits);
    let server = fake("exit", "");
    for _ in 0..3 {
        assert_eq!(fixture.manager.tools(&server).await.unwrap_err().code(), "mcp_start_failed");
    }
    let failure = fixture.manager.tools(&server).await.unwrap_err();
    assert!(matches!(failure, McpFailure::BackingOff { .. }), "{failure}");
    assert!(failure.to_string().contains("crashed 3 times") && failure.to_string().contains("no configuration"));
    let status = fixture.manager.status(&server);
    assert!(status.state == McpServerState::BackingOff && status.retry_in_ms.is_some_and(|wait| wait > 0));

    // A successful start does not reset the crash count; a successful call does.
    let crashing = good();
    for _ in 0..3 {
        fixture.manager.tools(&crashing).await.unwrap();
        assert!(matches!(fixture.call(&crashing, "crash", json!({})).await, Err(McpFailure::Crashed(_))));
    }
    assert!(matches!(fixture.call(&crashing, "echo", json!({})).await, Err(McpFailure::BackingOff { .. })));
    fixture.close().await;
}

#[tokio::test]
async fn unresponsive_server_is_restarted() {
    let fixture = McpFixture::new();
    let server = good();
    let first = fixture.manager.tools(&server).await.map(|_| fixture.manager.status(&server).process_id).unwrap();
    for _ in 0..3 {
        let failure = fixture.call_with(&server, "hang", json!({}), within(100)).await.unwrap_err();
        assert!(matches!(failure, McpFailure::Timeout { .. }));
    }
    let back = fixture.call(&server, "echo", json!({"text": "back"})).await.unwrap();
    assert_eq!(back.text(), "back");
    assert!(matches!(&back.notices[..], [McpNotice::Restarted { reason, .. }] if reason.contains("did not answer")));
    assert_ne!(fixture.manager.status(&server).process_id, first);
    fixture.close().await;
}

#[tokio::test]
async fn agents_with_the_same_config_share_one_process() {
    let fixture = McpFixture::new();
    let (mine, mut yours) = (good(), good());
    yours.name = "by-another-name".into();
    let (one, other) = tokio::join!(fixture.manager.tools(&mine), fixture.manager.tools(&yours));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(fixture.supervisor.running(), 1);
    assert_eq!(fixture.manager.status(&mine).process_id, fixture.manager.status(&yours).process_id);
    let mut elsewhere = good();
    elsewhere.config.folder = Some("/".into());
    fixture.manager.tools(&elsewhere).await.unwrap();
    assert_eq!(fixture.supervisor.running(), 2);
    fixture.close().await;
}

#[tokio::test]
async fn idle_server_is_stopped_and_restarted_silently() {
    let fixture = McpFixture::with(|settings| settings.idle_timeout = Duration::from_millis(200));
    let server = good();
    // Longer than the idle time, but in use the whole time.
    let slow = fixture.call(&server, "sleep", json!({"ms": 700})).await.unwrap();
    assert_eq!((slow.text().as_str(), fixture.manager.status(&server).restarts), ("awake", 0));
    timeout(DEADLINE, fixture.supervisor.wait_until_all_ended()).await.expect("the idle server is stopped");
    assert_eq!(fixture.manager.status(&server).state, McpServerState::Stopped);
    let back = fixture.call(&server, "echo", json!({"text": "back"})).await.unwrap();
    assert_eq!((back.text().as_str(), back.notices.len()), ("back", 0));
    fixture.close().await;
}

#[tokio::test]
async fn close_kills_servers_that_ignore_sigterm() {
    let fixture = McpFixture::with(|settings| settings.close_timeout = Duration::from_secs(2));
    let deaf = fake("deaf", "");
    fixture.manager.tools(&deaf).await.unwrap();
    fixture.manager.tools(&good()).await.unwrap();
    assert_eq!(fixture.supervisor.running(), 2);
    let begin = Instant::now();
    let manager = fixture.manager.clone();
    fixture.close().await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(matches!(manager.tools(&deaf).await, Err(McpFailure::Closing)));
}

/// rmcp's own transports panic here.
#[test]
fn drop_after_the_runtime_does_not_panic() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let manager = runtime.block_on(async {
        let fixture = McpFixture::new();
        fixture.manager.tools(&good()).await.unwrap();
        fixture.manager.clone()
    });
    drop(runtime);
    drop(manager);
}

/// Two workspaces with the same server once shared one connection, which either could stop.
#[tokio::test]
async fn l6_workspaces_do_not_share_a_connection() {
    let fixture = McpFixture::new();
    let server_of = |owner: &str| {
        let owner = domain::owner::Owner::new(domain::name::Name::parse(owner).unwrap());
        NamedMcpServer { owner: Some(owner), ..good() }
    };
    let (ada, bob) = (server_of("ada"), server_of("bob"));
    for server in [&ada, &bob] {
        fixture.call(server, "echo", json!({"text": "x"})).await.unwrap();
    }
    let process = |server: &NamedMcpServer| fixture.manager.status(server).process_id;
    let (hers, his) = (process(&ada).unwrap(), process(&bob).unwrap());
    assert_ne!(hers, his);
    fixture.manager.stop(&ada).await;
    assert_eq!(process(&bob), Some(his), "his server goes on");
    assert!(!is_alive(hers) && is_alive(his));
    fixture.close().await;
}

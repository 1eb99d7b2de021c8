//! From the start of a server to the end of its handshake.

use super::{DEADLINE, McpFixture, fake, good};
use domain::mcp::{McpServerConfig, McpTransport, NamedMcpServer};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use workbench::mcp::{McpFailure, McpServerState, ProtocolEra};

#[tokio::test]
async fn server_without_handshake_times_out_and_is_stopped() {
    let fixture = McpFixture::new();
    let mut server = fake("silent", "");
    server.config.startup_timeout = Some(Duration::from_millis(700));
    let failure = timeout(DEADLINE, fixture.manager.tools(&server)).await.unwrap().unwrap_err();
    assert_eq!(failure.code(), "mcp_timeout");
    assert!(failure.to_string().contains("0.7 s; stderr ends with: fake-mcp silent is up"), "{failure}");
    timeout(DEADLINE, fixture.supervisor.wait_until_all_ended()).await.expect("the process was stopped");
    assert_eq!(fixture.manager.status(&server).state, McpServerState::Failed);
    fixture.close().await;
}

#[tokio::test]
async fn non_protocol_output_is_counted_and_logged() {
    let fixture = McpFixture::new();
    let server = fake("noise", "");
    assert_eq!(fixture.text(&server, "noise").await, "with noise");
    let status = fixture.manager.status(&server);
    assert_eq!((status.noise_lines, status.state), (4, McpServerState::Ready));
    let logs = fixture.manager.logs(&server);
    assert!(logs.lines.iter().any(|line| line.source == "stdout" && line.text.contains("listening on stdio")));
    assert!(logs.stderr.contains("fake-mcp noise is up"), "{logs:?}");
    fixture.close().await;
}

#[tokio::test]
async fn unknown_versions_are_rejected() {
    let fixture = McpFixture::new();
    for version in ["2024-10-07", "2099-01-01", "latest"] {
        let failure = fixture.manager.tools(&fake("version", version)).await.unwrap_err();
        assert!(matches!(&failure, McpFailure::Version { version: said, .. } if said == version), "{failure:?}");
    }
    let listing = fixture.manager.tools(&fake("version", "2024-11-05")).await.unwrap();
    assert_eq!(listing.protocol_version, "2024-11-05");
    fixture.close().await;
}

#[tokio::test]
async fn both_handshakes_are_tried_and_the_working_one_is_kept() {
    let fixture = McpFixture::new();
    let modern = fake("modern", "");
    let listing = fixture.manager.tools(&modern).await.unwrap();
    assert_eq!(listing.protocol_version, "2026-07-28");
    assert_eq!(listing.server.as_ref().unwrap().version, "2");
    assert_eq!(fixture.text(&modern, "noise").await, "with noise");
    assert!(fixture.call(&modern, "crash", serde_json::json!({})).await.is_err());
    assert_eq!(fixture.text(&modern, "noise").await, "with noise");
    fixture.close().await;

    let fixture = McpFixture::with(|settings| settings.stdio_era = ProtocolEra::Modern);
    assert_eq!(fixture.manager.tools(&good()).await.unwrap().protocol_version, "2025-11-25");
    fixture.close().await;
}

#[tokio::test]
async fn server_that_ignores_unknown_methods_does_not_delay_the_handshake() {
    let fixture = McpFixture::new();
    let begin = Instant::now();
    assert_eq!(fixture.manager.tools(&fake("mute", "")).await.unwrap().protocol_version, "2025-11-25");
    assert!(begin.elapsed() < Duration::from_secs(8), "rmcp alone would take ten seconds");
    fixture.close().await;
}

#[tokio::test]
async fn start_failures_have_a_reason() {
    let fixture = McpFixture::new();
    let failure = fixture.manager.tools(&fake("exit", "")).await.unwrap_err();
    assert_eq!(failure.code(), "mcp_start_failed");
    assert!(failure.to_string().contains("exit code 3; stderr ends with: fatal: no configuration"), "{failure}");
    let gone = NamedMcpServer::new(
        "gone",
        McpTransport::Stdio { command: "no-such-program".into(), args: vec![], env: [].into() },
    );
    assert_eq!(fixture.manager.tools(&gone).await.unwrap_err().code(), "mcp_start_failed");
    let status = fixture.manager.status(&gone);
    assert!(status.last_error.unwrap().contains("no-such-program"));
    fixture.close().await;
}

#[tokio::test]
async fn unreachable_addresses() {
    let fixture = McpFixture::new();
    // A port that is very likely closed.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp?key=SECRET");
    for transport in
        [McpTransport::Http { url: url.clone(), headers: [].into() }, McpTransport::Sse { url, headers: [].into() }]
    {
        let failure = fixture.manager.tools(&NamedMcpServer::new("web", transport)).await.unwrap_err();
        assert_eq!(failure.code(), "mcp_unreachable", "{failure}");
        assert!(!failure.to_string().contains("SECRET"), "{failure}");
    }
    fixture.close().await;
}

#[tokio::test]
async fn test_uses_a_separate_process_and_leaves_nothing() {
    let fixture = McpFixture::new();
    let report = timeout(DEADLINE, fixture.manager.test(&fake("noise", ""))).await.unwrap();
    assert!(report.ok && report.error.is_none(), "{report:?}");
    assert_eq!((report.noise_lines, report.listing.unwrap().server.unwrap().name.as_str()), (3, "fake"));
    assert!(report.stderr.contains("is up"));
    let report = fixture.manager.test(&fake("exit", "")).await;
    assert_eq!((report.ok, report.error.unwrap().code), (false, "mcp_start_failed"));
    timeout(DEADLINE, fixture.supervisor.wait_until_all_ended()).await.unwrap();
    assert_eq!(fixture.manager.status(&fake("noise", "")).state, McpServerState::Stopped);
    fixture.close().await;
}

#[tokio::test]
async fn invariant_17_secrets_stay_children_get_only_configured_variables() {
    let fixture = McpFixture::new();
    let folder = tempfile::tempdir().unwrap();
    let McpTransport::Stdio { command, args, .. } = good().config.transport else { panic!() };
    let env = [("TOKEN".to_owned(), "t".to_owned())].into();
    let config = McpServerConfig {
        folder: Some(folder.path().to_owned()),
        ..McpServerConfig::new(McpTransport::Stdio { command, args, env })
    };
    let server = NamedMcpServer { name: "it".into(), config, owner: None };
    let result = fixture.call(&server, "environment", serde_json::json!({})).await.unwrap().structured.unwrap();
    let mut names: Vec<&str> = result["env"].as_object().unwrap().keys().map(String::as_str).collect();
    // The marker variable for finding orphans.
    names.retain(|name| !name.starts_with("GREENROOM"));
    assert_eq!(names, ["PATH", "TOKEN"]);
    assert_eq!(result["folder"], folder.path().canonicalize().unwrap().to_str().unwrap());
    fixture.close().await;
}

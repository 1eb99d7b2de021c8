//! From the start to the end of the greeting.

use super::{DEADLINE, Scene, fake, good};
use domain::mcp::{Server, ServerConfig, Transport};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use workbench::mcp::{Era, Failure, State};

#[tokio::test]
async fn a_server_that_does_not_greet_is_given_up_and_ended() {
    let scene = Scene::new();
    let mut server = fake("silent", "");
    server.config.startup_timeout = Some(Duration::from_millis(700));
    let failure = timeout(DEADLINE, scene.manager.tools(&server)).await.unwrap().unwrap_err();
    assert_eq!(failure.code(), "mcp_timeout");
    assert!(failure.to_string().contains("0.7 s; its last words: fake-mcp silent is up"), "{failure}");
    timeout(DEADLINE, scene.supervisor.all_gone()).await.expect("its process was ended");
    assert_eq!(scene.manager.status(&server).state, State::Failed);
    scene.close().await;
}

#[tokio::test]
async fn noise_on_the_output_is_counted_and_shown() {
    let scene = Scene::new();
    let server = fake("noise", "");
    assert_eq!(scene.text(&server, "noise").await, "with noise");
    let status = scene.manager.status(&server);
    assert_eq!((status.noise_lines, status.state), (4, State::Ready));
    let logs = scene.manager.logs(&server);
    assert!(logs.lines.iter().any(|line| line.source == "stdout" && line.text.contains("listening on stdio")));
    assert!(logs.stderr.contains("fake-mcp noise is up"), "{logs:?}");
    scene.close().await;
}

#[tokio::test]
async fn versions_that_nobody_knows_are_refused() {
    let scene = Scene::new();
    for version in ["2024-10-07", "2099-01-01", "latest"] {
        let failure = scene.manager.tools(&fake("version", version)).await.unwrap_err();
        assert!(matches!(&failure, Failure::Version { version: said, .. } if said == version), "{failure:?}");
    }
    let listing = scene.manager.tools(&fake("version", "2024-11-05")).await.unwrap();
    assert_eq!(listing.protocol_version, "2024-11-05");
    scene.close().await;
}

#[tokio::test]
async fn both_ways_of_greeting_are_tried_and_the_right_one_is_kept() {
    let scene = Scene::new();
    let modern = fake("modern", "");
    let listing = scene.manager.tools(&modern).await.unwrap();
    assert_eq!(listing.protocol_version, "2026-07-28");
    assert_eq!(listing.server.as_ref().unwrap().version, "2");
    assert_eq!(scene.text(&modern, "noise").await, "with noise");
    assert!(scene.call(&modern, "crash", serde_json::json!({})).await.is_err());
    assert_eq!(scene.text(&modern, "noise").await, "with noise");
    scene.close().await;

    let scene = Scene::with(|settings| settings.stdio_era = Era::Modern);
    assert_eq!(scene.manager.tools(&good()).await.unwrap().protocol_version, "2025-11-25");
    scene.close().await;
}

#[tokio::test]
async fn a_server_that_ignores_what_it_does_not_know_is_not_waited_for() {
    let scene = Scene::new();
    let begin = Instant::now();
    assert_eq!(scene.manager.tools(&fake("mute", "")).await.unwrap().protocol_version, "2025-11-25");
    assert!(begin.elapsed() < Duration::from_secs(8), "rmcp alone would take ten seconds");
    scene.close().await;
}

#[tokio::test]
async fn a_program_that_ends_or_is_not_there_says_why() {
    let scene = Scene::new();
    let failure = scene.manager.tools(&fake("exit", "")).await.unwrap_err();
    assert_eq!(failure.code(), "mcp_start_failed");
    assert!(failure.to_string().contains("exit code 3; its last words: fatal: no configuration"), "{failure}");
    let gone =
        Server::new("gone", Transport::Stdio { command: "no-such-program".into(), args: vec![], env: [].into() });
    assert_eq!(scene.manager.tools(&gone).await.unwrap_err().code(), "mcp_start_failed");
    let status = scene.manager.status(&gone);
    assert!(status.last_error.unwrap().contains("no-such-program"));
    scene.close().await;
}

#[tokio::test]
async fn addresses_where_nobody_is() {
    let scene = Scene::new();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp?key=SECRET");
    for transport in
        [Transport::Http { url: url.clone(), headers: [].into() }, Transport::Sse { url, headers: [].into() }]
    {
        let failure = scene.manager.tools(&Server::new("web", transport)).await.unwrap_err();
        assert_eq!(failure.code(), "mcp_unreachable", "{failure}");
        assert!(!failure.to_string().contains("SECRET"), "{failure}");
    }
    scene.close().await;
}

#[tokio::test]
async fn a_test_runs_apart_and_leaves_nothing() {
    let scene = Scene::new();
    let report = timeout(DEADLINE, scene.manager.test(&fake("noise", ""))).await.unwrap();
    assert!(report.ok && report.error.is_none(), "{report:?}");
    assert_eq!((report.noise_lines, report.listing.unwrap().server.unwrap().name.as_str()), (3, "fake"));
    assert!(report.stderr.contains("is up"));
    let report = scene.manager.test(&fake("exit", "")).await;
    assert_eq!((report.ok, report.error.unwrap().code), (false, "mcp_start_failed"));
    timeout(DEADLINE, scene.supervisor.all_gone()).await.unwrap();
    assert_eq!(scene.manager.status(&fake("noise", "")).state, State::Stopped);
    scene.close().await;
}

#[tokio::test]
async fn invariant_17_secrets_stay_children_get_what_their_config_names_and_no_more() {
    let scene = Scene::new();
    let folder = tempfile::tempdir().unwrap();
    let Transport::Stdio { command, args, .. } = good().config.transport else { panic!() };
    let env = [("TOKEN".to_owned(), "t".to_owned())].into();
    let config = ServerConfig {
        folder: Some(folder.path().to_owned()),
        ..ServerConfig::new(Transport::Stdio { command, args, env })
    };
    let server = Server { name: "it".into(), config };
    let result = scene.call(&server, "environment", serde_json::json!({})).await.unwrap().structured.unwrap();
    let mut names: Vec<&str> = result["env"].as_object().unwrap().keys().map(String::as_str).collect();
    // The mark by which a lost process is found.
    names.retain(|name| !name.starts_with("GREENROOM"));
    assert_eq!(names, ["PATH", "TOKEN"]);
    assert_eq!(result["folder"], folder.path().canonicalize().unwrap().to_str().unwrap());
    scene.close().await;
}

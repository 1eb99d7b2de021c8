//! The MCP conformance suite for servers, for both eras, run against the whole server with the required fixture.

use crate::{conformance::score, fixture::SERIAL};
use serde::Deserialize;
use std::{fs, path::Path, time::Duration};
use testkit::{
    client::ServerLaunch,
    programs::{McpPrograms, greenroom},
};
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(300);
const STOP: Duration = Duration::from_secs(30);

/// Makes the server serve the fixture. Only a build with the feature `test-hooks` has it.
const FIXTURE: &str = "GREENROOM_TEST_CONFORMANCE";

/// Not implemented and not scored: a protocol extension.
const TASKS: &str = "server-tasks-";

/// A tool ends its stream before its answer, and the client reconnects for the answer. The suite also accepts a server
/// whose streams never end.
const RESUMED: &str = "server-sse-disconnect-resume";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: Status,
    error_message: Option<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Success,
    Failure,
    /// A recommendation that is not met.
    Warning,
    Info,
    Skipped,
}

/// Runs all scenarios that a server must pass for this revision. `run` also counts unscored scenarios.
async fn examine(revision: &str, required: usize, run: usize) {
    let _serial = SERIAL.lock().await;
    let (servers, folder) = (McpPrograms::from_env(), tempfile::tempdir().unwrap());
    let mut launch = ServerLaunch::new(greenroom(), folder.path().join("data")).with(FIXTURE, "1");
    // The suite sends no credential.
    launch.arguments = vec!["--no-auth".into()];
    let server = launch.start().await.unwrap();
    let results = folder.path().join("results");
    let mut suite = Command::new(&servers.node);
    suite.arg(&servers.conformance).args(["server", "--requirements", revision, "-o"]).arg(&results);
    suite.args(["--url", &format!("{}/mcp", server.base_url())]);
    suite.current_dir(folder.path()).kill_on_drop(true);
    let output = timeout(DEADLINE, suite.output()).await.expect("the suite ends").unwrap();
    let output_text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));

    assert_eq!(score(&output_text), Some((required, required)), "{output_text}");
    assert!(output.status.success(), "{output_text}");
    let scenarios = read(&results);
    assert_eq!(scenarios.len(), run, "{output_text}");
    assert_eq!(complaints(&scenarios), Vec::<String>::new(), "{output_text}");
    assert!(server.terminate(STOP).await.unwrap().success());
}

/// Reads the checks of each scenario; there is one folder per scenario.
fn read(results: &Path) -> Vec<(String, Vec<Check>)> {
    let scenario = |entry: fs::DirEntry| {
        let checks = fs::read(entry.path().join("checks.json")).unwrap();
        (entry.file_name().into_string().unwrap(), serde_json::from_slice(&checks).unwrap())
    };
    fs::read_dir(results).unwrap().map(|entry| scenario(entry.unwrap())).collect()
}

/// Lists failures, and also what the suite accepts: warnings, skipped checks, scenarios without checks.
fn complaints(scenarios: &[(String, Vec<Check>)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (scenario, checks) in scenarios.iter().filter(|(scenario, _)| !scenario.starts_with(TASKS)) {
        let is_fine = |check: &Check| match check.status {
            Status::Success => true,
            Status::Info => check.id != RESUMED,
            Status::Failure | Status::Warning | Status::Skipped => false,
        };
        for check in checks.iter().filter(|check| !is_fine(check)) {
            complaints.push(format!(
                "{scenario}: {}: {}",
                check.id,
                check.error_message.as_deref().unwrap_or_default()
            ));
        }
        if checks.iter().all(|check| check.status != Status::Success) {
            complaints.push(format!("{scenario}: nothing was checked"));
        }
    }
    complaints
}

#[test]
fn warnings_are_complaints() {
    let checks = |status| serde_json::from_value(serde_json::json!([{"id": "a", "status": status}])).unwrap();
    let scenario = |name: &str, status| vec![(name.to_owned(), checks(status))];
    assert_eq!(complaints(&scenario("server-ping-1", "SUCCESS")).len(), 0);
    assert_eq!(complaints(&scenario("server-ping-1", "WARNING")).len(), 2);
    assert_eq!(complaints(&scenario("server-ping-1", "INFO")).len(), 1);
    assert_eq!(complaints(&scenario("server-tasks-lifecycle-1", "FAILURE")).len(), 0);
}

#[tokio::test]
async fn revision_2025_11_25() {
    examine("2025-11-25", 30, 33).await;
}

#[tokio::test]
async fn revision_2026_07_28() {
    examine("2026-07-28", 37, 50).await;
}

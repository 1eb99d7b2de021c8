//! The MCP conformance suite for clients, for both eras.

use crate::fixture::SERIAL;
use std::time::Duration;
use testkit::programs::McpPrograms;
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(900);

/// Runs all scenarios that a client must pass for this revision.
async fn examine(revision: &str, required: usize) {
    let _serial = SERIAL.lock().await;
    let (servers, folder) = (McpPrograms::from_env(), tempfile::tempdir().unwrap());
    let mut suite = Command::new(&servers.node);
    suite.arg(&servers.conformance).args(["client", "--requirements", revision, "--timeout", "120000"]);
    suite.args(["--command", env!("CARGO_BIN_EXE_mcp-conformance"), "-o"]).arg(folder.path());
    suite.current_dir(folder.path()).kill_on_drop(true);
    let output = timeout(DEADLINE, suite.output()).await.expect("the suite ends").unwrap();
    let output_text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(score(&output_text), Some((required, required)), "{output_text}");
    assert!(output.status.success(), "{output_text}");
}

/// Returns how many required scenarios passed and how many there are. Unscored scenarios are listed at the end of the
/// output.
pub fn score(output_text: &str) -> Option<(usize, usize)> {
    let begin = |mark: &str| output_text.lines().filter(|line| line.starts_with(mark)).count();
    let (passed, failed) = (begin("✓ "), begin("✗ "));
    let unscored = output_text.lines().find(|line| line.starts_with("Not scored for "))?;
    let numbers: Vec<usize> = unscored.split_once(": ")?.1.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [run, failing] = numbers[..] else { return None };
    Some((passed.checked_sub(run - failing)?, (passed + failed).checked_sub(run)?))
}

#[test]
fn score_excludes_unscored_scenarios() {
    let output_text = "✓ a: 1 passed, 0 failed\n✗ b: 0 passed, 1 failed\n✓ c: 1 passed, 0 failed\n✗ d: 1 passed, 1 failed\n\
                Not scored for 2025-11-25: 2 scenario(s) run, 1 failing. These do not affect conformance.\n  ✗ d (extension)\n";
    assert_eq!(score(output_text), Some((1, 2)));
}

#[tokio::test]
async fn revision_2025_11_25() {
    examine("2025-11-25", 18).await;
}

#[tokio::test]
async fn revision_2026_07_28() {
    examine("2026-07-28", 32).await;
}

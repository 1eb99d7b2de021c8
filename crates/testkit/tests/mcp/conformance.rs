//! The protocol's own examination of clients, for both eras.

use crate::scene::TURN;
use std::time::Duration;
use testkit::programs::McpServers;
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(900);

/// Every scenario that a client must pass for this revision.
async fn examine(revision: &str, required: usize) {
    let _turn = TURN.lock().await;
    let (servers, folder) = (McpServers::found(), tempfile::tempdir().unwrap());
    let mut suite = Command::new(&servers.node);
    suite.arg(&servers.conformance).args(["client", "--requirements", revision, "--timeout", "120000"]);
    suite.args(["--command", env!("CARGO_BIN_EXE_mcp-conformance"), "-o"]).arg(folder.path());
    suite.current_dir(folder.path()).kill_on_drop(true);
    let output = timeout(DEADLINE, suite.output()).await.expect("it ends").unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(score(&said), Some((required, required)), "{said}");
    assert!(output.status.success(), "{said}");
}

/// How many of the required scenarios passed, and how many there are. Those that do not count are named at the end.
pub fn score(said: &str) -> Option<(usize, usize)> {
    let begin = |mark: &str| said.lines().filter(|line| line.starts_with(mark)).count();
    let (passed, failed) = (begin("✓ "), begin("✗ "));
    let unscored = said.lines().find(|line| line.starts_with("Not scored for "))?;
    let numbers: Vec<usize> = unscored.split_once(": ")?.1.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [run, failing] = numbers[..] else { return None };
    Some((passed.checked_sub(run - failing)?, (passed + failed).checked_sub(run)?))
}

#[test]
fn the_score_is_of_what_counts() {
    let said = "✓ a: 1 passed, 0 failed\n✗ b: 0 passed, 1 failed\n✓ c: 1 passed, 0 failed\n✗ d: 1 passed, 1 failed\n\
                Not scored for 2025-11-25: 2 scenario(s) run, 1 failing. These do not affect conformance.\n  ✗ d (extension)\n";
    assert_eq!(score(said), Some((1, 2)));
}

#[tokio::test]
async fn revision_2025_11_25() {
    examine("2025-11-25", 18).await;
}

#[tokio::test]
async fn revision_2026_07_28() {
    examine("2026-07-28", 32).await;
}

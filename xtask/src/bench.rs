//! `cargo xtask bench`: builds the server and the load driver, then becomes the driver, which writes its tables into
//! `docs/benchmarks.md`.

use std::process::{Command, ExitCode};

use crate::clis::InstalledClis;
use crate::mcp_servers::InstalledMcpServers;
use crate::postgres::TestPostgres;
use crate::prerequisites::{self, C_COMPILER, GIT, NODE, POSTGRESQL, PYTHON};
use crate::progress::{TextOutput, minutes, timed};
use crate::repository::{BuildProfile, Repository, XtaskResult, become_program, cannot_run, spell};
use crate::steps::Steps;

/// Measured with the real CLIs, and only when asked for by name.
const WITH_CLIS: [&str; 2] = ["providers", "sandbox"];
/// Compared with servers on the official SDKs, and only when asked for by name.
const WITH_MCP_SERVERS: &str = "mcp";
/// Measured on a PostgreSQL that is started for it, and only when asked for by name.
const WITH_POSTGRES: &str = "nodes";
const PROFILE: BuildProfile = BuildProfile::Release;
const DOCUMENT: &str = "docs/benchmarks.md";
/// Another binary is of an unknown commit, and small numbers say little.
const UNRECORDED: &[&str] = &["--binary", "--quick", "--help", "-h"];

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "bench", TextOutput::Stderr)?;
    prerequisites::ensure(&[C_COMPILER, GIT], &steps)?;
    let asks_for = |name: &str| arguments.iter().any(|argument| argument == name);
    let clis = match WITH_CLIS.iter().any(|name| asks_for(name)) {
        true => Some(prerequisites::ensure(&[NODE], &steps).and_then(|()| InstalledClis::install(&steps))?),
        false => None,
    };
    let mcp_servers = match asks_for(WITH_MCP_SERVERS) {
        true => {
            Some(prerequisites::ensure(&[NODE, PYTHON], &steps).and_then(|()| InstalledMcpServers::install(&steps))?)
        }
        false => None,
    };
    if asks_for(WITH_POSTGRES) {
        prerequisites::ensure(&[POSTGRESQL], &steps)?;
    }
    // Before the build, which is of the tree as it is now.
    let commit = match is_recorded(arguments) {
        true => Some(commit(&repository)?),
        false => None,
    };
    let mut build = repository.build(PROFILE, &["greenroom", "testkit"], &["greenroom", "bench", "fake-mcp"]);
    let (built, took) = timed(|| steps.build("Building the server and the benchmark", &mut build));
    built?;
    steps.say(&format!("Built in {}. Log: {}", minutes(took), steps.log_name()));
    drop(steps);
    let mut bench = repository.program(&repository.binary(PROFILE, "bench"));
    bench.args(arguments);
    if !asks_for("--binary") {
        bench.arg("--binary").arg(repository.binary(PROFILE, "greenroom"));
    }
    if let Some(commit) = commit {
        bench.arg("--record").arg(repository.root().join(DOCUMENT)).arg("--commit").arg(commit);
    }
    if let Some(clis) = clis {
        clis.pass_to(&mut bench);
    }
    if let Some(mcp_servers) = mcp_servers {
        mcp_servers.pass_to(&mut bench);
    }
    if !asks_for(WITH_POSTGRES) {
        return Err(become_program(&mut bench));
    }
    // Not replaced by the driver: PostgreSQL ends with this process.
    let postgres = TestPostgres::start()?;
    let status = bench.env("GREENROOM_TEST_POSTGRES", postgres.url()).status();
    let status = status.map_err(|error| cannot_run(&bench, &error))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_recorded(arguments: &[String]) -> bool {
    !arguments.iter().any(|argument| UNRECORDED.contains(&argument.split('=').next().unwrap_or(argument)))
}

/// The short hash, with `-dirty` when anything that can change the binary is not committed.
fn commit(repository: &Repository) -> XtaskResult<String> {
    let hash = git(repository, &["rev-parse", "--short", "HEAD"])?;
    let changes = git(repository, &["status", "--porcelain", "--", ".", ":!docs"])?;
    Ok(if changes.is_empty() { hash } else { format!("{hash}-dirty") })
}

fn git(repository: &Repository, arguments: &[&str]) -> XtaskResult<String> {
    let mut git = Command::new("git");
    git.current_dir(repository.root()).args(arguments);
    let output = git.output().map_err(|error| cannot_run(&git, &error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("`{}` failed: {}", spell(&git), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::is_recorded;

    #[test]
    fn only_full_runs_of_our_own_build_are_recorded() {
        let is_recorded = |words: &[&str]| is_recorded(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert!(is_recorded(&[]) && is_recorded(&["path", "latency"]));
        for words in [&["path", "--quick"][..], &["--binary", "x"], &["--binary=x"], &["--help"]] {
            assert!(!is_recorded(words), "{words:?}");
        }
    }
}

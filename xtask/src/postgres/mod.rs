//! A throwaway PostgreSQL for tests: a new cluster in a temporary folder, removed when its owner ends.
//!
//! The owner may be killed at any moment, so it does not clean up itself. A second process, the guard, starts the server
//! and waits for the end of a pipe whose other end only the owner holds. However the owner ends, the pipe closes, and the
//! guard stops the server and removes the folder.

mod account;
mod cluster;
mod programs;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use crate::prerequisites::{self, POSTGRESQL};
use crate::progress::TextOutput;
use crate::repository::{Repository, XtaskResult, own_program};
use crate::steps::Steps;

pub use programs::find as find_programs;

pub const GUARD_COMMAND: &str = "postgres-guard";

pub struct TestPostgres {
    guard: Child,
    url: String,
}

impl TestPostgres {
    pub fn start() -> XtaskResult<Self> {
        let mut guard = Command::new(own_program()?)
            .arg(GUARD_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Control-C goes to the terminal's process group; the guard has to outlive it to clean up.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start the guard of PostgreSQL: {error}"))?;
        let mut line = String::new();
        let read = guard.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let started = Self { guard, url: line.trim().to_owned() };
        match read {
            Some(Ok(_)) if !started.url.is_empty() => Ok(started),
            _ => Err("PostgreSQL did not start; its guard printed the reason".to_owned()),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for TestPostgres {
    fn drop(&mut self) {
        // Waiting closes the pipe first, which is the signal to stop.
        if let Err(error) = self.guard.wait() {
            eprintln!("cannot wait for the guard of PostgreSQL: {error}");
        }
    }
}

/// `cargo xtask postgres`: to run a single test by hand, or to try something with psql.
pub fn command(_arguments: &[String]) -> XtaskResult<ExitCode> {
    let steps = Steps::open(&Repository::locate()?, "postgres", TextOutput::Stderr)?;
    prerequisites::ensure(&[POSTGRESQL], &steps)?;
    drop(steps);
    let postgres = TestPostgres::start()?;
    println!("{}", postgres.url());
    eprintln!("Set GREENROOM_TEST_POSTGRES to this URL. Press Enter to stop the server and remove its data.");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| format!("cannot read the input: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

pub fn guard_command(_arguments: &[String]) -> XtaskResult<ExitCode> {
    let cluster = cluster::PostgresCluster::start()?;
    let mut output = std::io::stdout();
    let announced = writeln!(output, "{}", cluster.url()).and_then(|()| output.flush());
    let waited = announced.and_then(|()| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    drop(cluster);
    // An owner that ended before it read the URL is not reported: nobody is left to read it.
    Ok(if waited.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

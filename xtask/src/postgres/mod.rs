//! A throwaway PostgreSQL for tests: a fresh cluster in a temporary folder, gone when its owner is
//! gone.
//!
//! The owner may be killed at any moment, so it does not clean up itself. A second process, the
//! guard, starts the server and waits for the end of a pipe whose other end only the owner holds.
//! However the owner ends, the pipe closes, and the guard stops the server and removes the folder:
//! the usual end and the violent one are one path.

mod account;
mod cluster;
mod programs;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use crate::prerequisites::{self, POSTGRESQL};
use crate::workspace::Outcome;

pub use programs::find as find_programs;

pub const GUARD_COMMAND: &str = "postgres-guard";

pub struct Postgres {
    guard: Child,
    url: String,
}

impl Postgres {
    pub fn start() -> Outcome<Self> {
        let mut guard = Command::new(own_program()?)
            .arg(GUARD_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Control-C goes to the whole group of the terminal; the guard has to outlive it to
            // clean up.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start the guard of PostgreSQL: {error}"))?;
        let mut line = String::new();
        let read = guard.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        let started = Self { guard, url: line.trim().to_owned() };
        match read {
            Some(Ok(_)) if !started.url.is_empty() => Ok(started),
            _ => Err("PostgreSQL did not start; the reason is above".to_owned()),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Waiting closes the pipe first, which is the signal to stop.
        if let Err(error) = self.guard.wait() {
            eprintln!("cannot wait for the guard of PostgreSQL: {error}");
        }
    }
}

/// `cargo xtask postgres`: for a developer who wants to run one test by hand, or look around with
/// psql.
pub fn command(_arguments: &[String]) -> Outcome<ExitCode> {
    prerequisites::ensure(&[POSTGRESQL])?;
    let postgres = Postgres::start()?;
    println!("{}", postgres.url());
    eprintln!("GREENROOM_TEST_POSTGRES takes this URL. Enter stops the server and removes its data.");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|error| format!("cannot read the input: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

pub fn guard_command(_arguments: &[String]) -> Outcome<ExitCode> {
    let cluster = cluster::Cluster::start()?;
    let mut output = std::io::stdout();
    let announced = writeln!(output, "{}", cluster.url()).and_then(|()| output.flush());
    let waited = announced.and_then(|()| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    drop(cluster);
    // An owner that died before it read the URL is no failure: nobody is left to hear of one.
    Ok(if waited.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// On Linux the running program itself, even when a build has replaced its file in the meantime.
fn own_program() -> Outcome<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() {
        return Ok(running.to_path_buf());
    }
    std::env::current_exe().map_err(|error| format!("cannot tell which program this is: {error}"))
}

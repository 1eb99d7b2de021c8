//! The binary: parses the command line, runs one command, turns its end into one line and an exit code. Or keeps one
//! program for a server that started it again for that.

use clap::Parser as _;
use greenroom::cli::{self, Cli, Exit};
use std::{process::ExitCode, time::Duration};
use workbench::process::keeper;

/// Gives back what a crowd of readers or sessions had needed; the system's keeps it (`docs/decisions/allocator.md`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What is still running in the background when a command is done has this long to end.
const LEFTOVERS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // Before anything else: a keeper is started for every program of every agent.
    if std::env::args_os().nth(1).is_some_and(|word| word == keeper::WORD) {
        return keeper::main();
    }
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::exit::report(&anyhow::Error::new(error).context("cannot start")).into(),
    };
    let outcome = runtime.block_on(cli::dispatch(cli));
    runtime.shutdown_timeout(LEFTOVERS);
    let exit: Exit = outcome.unwrap_or_else(|error| cli::exit::report(&error));
    exit.into()
}

//! The binary: parses the command line, runs one command, and turns the result into one line and an exit code. A server
//! also starts it as the keeper of one program.

use clap::Parser as _;
use greenroom::cli::{self, Cli, Exit};
use std::{process::ExitCode, time::Duration};
use workbench::process::keeper;

/// Returns freed memory to the system, which the default allocator does not (`docs/decisions/allocator.md`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How long background tasks may take to end after a command has finished.
const LEFTOVERS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // First, and fast: a keeper is started for every program of every agent.
    if std::env::args_os().nth(1).is_some_and(|word| word == keeper::SUBCOMMAND) {
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

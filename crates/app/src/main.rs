//! The binary: parses the command line, runs one command, and turns the result into one line and an exit code. A server
//! also starts it as the keeper of one program, and as the helper of a sandbox.

use greenroom::cli::{self, Exit};
use std::{process::ExitCode, time::Duration};
use workbench::process::keeper;

/// Returns freed memory to the system, which the default allocator does not (`docs/decisions/allocator.md`).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The commit and its date, such as `b32665401f 2026-11-17`. Set by `cargo xtask serve` and `cargo xtask dist`; read here
/// and not in a build script, so that another commit recompiles this file and nothing else.
const BUILT_FROM: Option<&str> = option_env!("GREENROOM_BUILT_FROM");

/// How long background tasks may take to end after a command has finished.
const LEFTOVERS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // First, and fast: a keeper is started for every program of every agent. The helper of a sandbox must have one thread.
    match std::env::args_os().nth(1) {
        Some(word) if word == keeper::SUBCOMMAND => return keeper::main(),
        Some(word) if word == sandbox::HELPER_SUBCOMMAND => return sandbox::helper_main(),
        _ => {}
    }
    greenroom::data_folder::make_new_files_private();
    let cli = cli::version::parse(BUILT_FROM);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::exit::report(&anyhow::Error::new(error).context("cannot start")).into(),
    };
    let outcome = runtime.block_on(cli::dispatch(cli));
    runtime.shutdown_timeout(LEFTOVERS);
    let exit: Exit = outcome.unwrap_or_else(|error| cli::exit::report(&error));
    exit.into()
}

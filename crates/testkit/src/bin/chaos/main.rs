//! The crash harness: runs the real binary with real readers and writers, kills it repeatedly with SIGKILL while many
//! rooms stream, then checks that nothing acknowledged or delivered was lost. See `docs/chaos.md`.
//!
//! Start at [`session`], which starts and kills the server. [`readers`], [`writers`] and [`answerers`] keep the
//! [`ledger`]s, [`checks`] compares them with the journal. The harness uses public endpoints only, except for tables that
//! no endpoint shows; [`expected`] computes answers independently.

mod answerers;
mod checks;
mod expected;
mod ledger;
mod orphans;
mod power_cut;
mod random;
mod readers;
mod report;
mod session;
mod trigger;
mod writers;

use anyhow::Context as _;
use clap::Parser;
use session::ChaosSession;
use std::{path::PathBuf, process::ExitCode};

/// Kills a Greenroom server at random moments and checks that nothing it promised is lost.
#[derive(Clone, Debug, Parser)]
#[command(name = "chaos")]
pub struct ChaosArguments {
    /// How often the server is killed.
    #[arg(long, default_value_t = 5)]
    cycles: usize,
    /// Rooms that stream at the same time.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rooms: u64,
    /// Repeats the same random plan; the exact time of a kill still depends on the machine.
    #[arg(long)]
    seed: Option<u64>,
    /// At each kill, also discard writes that the server had not synced.
    #[arg(long)]
    power_cut: bool,
    /// Enables this bug in a binary built with `test-hooks`; the checks must detect it. Implies --power-cut.
    #[arg(long, value_name = "NAME")]
    planted: Option<String>,
    /// The server binary to run.
    #[arg(long, required_unless_present = "shim_probe")]
    binary: Option<PathBuf>,
    /// Work in this folder and keep all files.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[arg(long, hide = true)]
    shim_probe: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = ChaosArguments::parse();
    if let Some(folder) = &arguments.shim_probe {
        return match power_cut::probe(folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::FAILURE
            }
        };
    }
    match run(&arguments).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("FAIL the harness could not continue: {error:#}");
            report::closing_line(0, 1);
            ExitCode::FAILURE
        }
    }
}

/// Returns how many checks failed.
async fn run(arguments: &ChaosArguments) -> anyhow::Result<usize> {
    let binary = arguments.binary.clone().context("--binary is missing")?;
    let binary = binary.canonicalize().with_context(|| format!("{} does not exist", binary.display()))?;
    // Next to the binary, on the project's disk: the system's temporary folder is often in memory.
    let parent = binary.parent().context("the binary has no parent folder")?;
    let mut folder = tempfile::Builder::new().prefix("chaos-").tempdir_in(parent)?;
    let path = match &arguments.keep {
        Some(keep) => {
            std::fs::create_dir_all(keep)?;
            keep.canonicalize()?
        }
        None => folder.path().to_owned(),
    };
    let seed = arguments.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    println!("chaos: seed {seed}, {} cycles, {} rooms", arguments.cycles, arguments.rooms);

    let outcome = ChaosSession::run(arguments, binary, &path, seed).await;
    let failed = match &outcome {
        Ok(verdict) => verdict.print(),
        Err(_) => 1,
    };
    if failed > 0 && arguments.keep.is_none() {
        folder.disable_cleanup(true);
        println!("all files are kept in {}", path.display());
    }
    outcome?;
    Ok(failed)
}

//! The crash harness: runs the real binary with real readers and writers, kills it with SIGKILL again and again while many
//! rooms stream, and checks afterwards that every promise was kept. See `docs/chaos.md`.
//!
//! Start at [`session`]: it starts and kills. [`readers`] and [`writers`] keep the [`ledger`]s, [`checks`] judges them. It
//! knows the server only by its doors; [`expected`] says by itself what an answer should be.

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
use session::Session;
use std::{path::PathBuf, process::ExitCode};

/// Kills a Greenroom server at random moments and checks that nothing it promised is lost.
#[derive(Clone, Debug, Parser)]
#[command(name = "chaos")]
pub struct Arguments {
    /// How often the server is killed.
    #[arg(long, default_value_t = 5)]
    cycles: usize,
    /// Rooms that stream at the same time.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rooms: u64,
    /// Draws the same plan again; the moment of a kill still depends on the machine.
    #[arg(long)]
    seed: Option<u64>,
    /// At each kill, also forget what the server had not synced.
    #[arg(long)]
    power_cut: bool,
    /// The binary is built with `planted-bugs`; this one is switched on and has to be noticed. Implies --power-cut.
    #[arg(long, value_name = "NAME")]
    planted: Option<String>,
    /// The server to run.
    #[arg(long, required_unless_present = "shim_probe")]
    binary: Option<PathBuf>,
    /// Work in this folder and leave everything there.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[arg(long, hide = true)]
    shim_probe: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
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
            println!("FAIL the harness could not go on: {error:#}");
            report::closing_line(0, 1);
            ExitCode::FAILURE
        }
    }
}

/// Returns how many checks failed.
async fn run(arguments: &Arguments) -> anyhow::Result<usize> {
    let binary = arguments.binary.clone().context("--binary is missing")?;
    let binary = binary.canonicalize().with_context(|| format!("there is no {}", binary.display()))?;
    // Beside the binary: the project's own disk, while the system's folder for temporary files is often memory.
    let beside = binary.parent().context("the binary lies in no folder")?;
    let mut folder = tempfile::Builder::new().prefix("chaos-").tempdir_in(beside)?;
    let path = match &arguments.keep {
        Some(keep) => {
            std::fs::create_dir_all(keep)?;
            keep.canonicalize()?
        }
        None => folder.path().to_owned(),
    };
    let seed = arguments.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    println!("chaos: seed {seed}, {} cycles, {} rooms", arguments.cycles, arguments.rooms);

    let outcome = Session::run(arguments, binary, &path, seed).await;
    let failed = match &outcome {
        Ok(verdict) => verdict.print(),
        Err(_) => 1,
    };
    if failed > 0 && arguments.keep.is_none() {
        folder.disable_cleanup(true);
        println!("everything is kept in {}", path.display());
    }
    outcome?;
    Ok(failed)
}

//! The benchmark: one run, one table of ratios. See `docs/benchmarks.md`.
//!
//! [`scenarios`] says what is measured, round by round, Greenroom and baselines in turn. [`stack`] starts either, [`load`]
//! lets rooms stream to readers, [`baseline`] holds the servers that Greenroom is compared with, [`relay`] lets a
//! program be asked past it. It knows Greenroom only by its doors and its process.

mod baseline;
mod exchange;
mod load;
mod relay;
mod scale;
mod scenarios;
mod stack;
mod statistics;
mod stream;
mod table;
mod tokens;
mod usage;

use anyhow::Context as _;
use baseline::Kind;
use clap::Parser;
use scale::Scale;
use scenarios::Scenario;
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Measures a Greenroom server against baselines on the same machine, in the same run.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    /// The server to measure.
    #[arg(long, required_unless_present_any = ["serve_bare", "serve_insert"])]
    binary: Option<PathBuf>,
    /// Small numbers and one round: shows that it works, says little about speed.
    #[arg(long)]
    quick: bool,
    /// Measure only these.
    only: Vec<Scenario>,
    #[arg(long, hide = true, value_name = "DIR")]
    serve_bare: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "DIR")]
    serve_insert: Option<PathBuf>,
}

/// What every scenario needs.
pub struct Bench {
    pub binary: PathBuf,
    pub folder: PathBuf,
    pub scale: Scale,
    /// How many files, and so connections, a process may have open.
    pub files: u64,
}

impl Bench {
    /// A folder that nothing was written to yet.
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", uuid::Uuid::new_v4().simple()))
    }
}

fn main() -> ExitCode {
    match relay::started_in() {
        Some(folder) => relay::run(&folder).unwrap_or_else(|error| failed(&error)),
        None => measure(),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("bench: {error:#}");
    ExitCode::FAILURE
}

#[tokio::main]
async fn measure() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match (&arguments.serve_bare, &arguments.serve_insert) {
        (Some(folder), _) => baseline::serve(Kind::Bare, folder).await.map(|()| true),
        (_, Some(folder)) => baseline::serve(Kind::Insert, folder).await.map(|()| true),
        _ => run(&arguments).await,
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error),
    }
}

/// Returns whether everything could be measured. An aim that is missed is a result, not a failure.
async fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    let binary = arguments.binary.as_deref().unwrap_or(Path::new("greenroom"));
    let binary = binary.canonicalize().with_context(|| format!("there is no {}", binary.display()))?;
    // Beside the binary: the project's own disk, while the system's folder for temporary files is often memory.
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(binary.parent().context("no folder")?)?;
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let files = usage::allow_many_files()?;
    let bench = Bench { binary, folder: folder.path().to_owned(), scale, files };
    let (rows, failures) = scenarios::measure(&bench, &arguments.only).await;
    table::print(&rows);
    for failure in &failures {
        println!("not measured: {failure}");
    }
    Ok(failures.is_empty())
}

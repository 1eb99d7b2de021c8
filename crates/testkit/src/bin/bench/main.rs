//! The benchmark: one run, one table of ratios per part. See `docs/benchmarks.md`.
//!
//! [`scenarios`] defines the measurements, which alternate between Greenroom and the baselines in every round.
//! [`stack`] starts either, [`load`] streams rooms to readers, [`baseline`] holds the servers that Greenroom is
//! compared with, [`relay`] gives direct access to a program behind Greenroom, [`record`] writes the result into the
//! document, [`guard`] takes the figures for `cargo xtask guard`. The benchmark uses only Greenroom's public endpoints
//! and its process.

mod baseline;
mod connection;
mod guard;
mod load;
mod record;
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
use baseline::BaselineKind;
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
struct BenchArguments {
    /// The server binary to measure.
    #[arg(long, required_unless_present_any = ["serve_bare", "serve_insert"])]
    binary: Option<PathBuf>,
    /// Use small numbers and one round: checks that the benchmark works, not how fast the server is.
    #[arg(long)]
    quick: bool,
    /// Measure only these parts.
    only: Vec<Scenario>,
    /// Write the tables into this document.
    #[arg(long, hide = true, value_name = "FILE", conflicts_with = "quick", requires = "commit")]
    record: Option<PathBuf>,
    /// What the binary was built from, for the document.
    #[arg(long, hide = true)]
    commit: Option<String>,
    /// Print the figures for `cargo xtask guard` instead of measuring.
    #[arg(long, hide = true)]
    guard: bool,
    #[arg(long, hide = true, value_name = "DIR")]
    serve_bare: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "DIR")]
    serve_insert: Option<PathBuf>,
}

/// Settings shared by all scenarios.
pub struct Bench {
    pub binary: PathBuf,
    pub folder: PathBuf,
    pub scale: Scale,
    /// The limit of open files, and thus connections, per process.
    pub files: u64,
}

impl Bench {
    /// Returns the path of a new, unused folder.
    pub fn new_folder(&self, name: &str) -> PathBuf {
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
    let arguments = BenchArguments::parse();
    let outcome = match (&arguments.serve_bare, &arguments.serve_insert) {
        (Some(folder), _) => baseline::serve(BaselineKind::Bare, folder).await.map(|()| true),
        (_, Some(folder)) => baseline::serve(BaselineKind::Insert, folder).await.map(|()| true),
        _ => run(&arguments).await,
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(&error),
    }
}

/// Returns whether everything could be measured. A missed target is a result, not a failure.
async fn run(arguments: &BenchArguments) -> anyhow::Result<bool> {
    let binary = arguments.binary.as_deref().unwrap_or(Path::new("greenroom"));
    let binary = binary.canonicalize().with_context(|| format!("{} does not exist", binary.display()))?;
    // Next to the binary, on the project's disk: the system's temporary folder is often in memory.
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(binary.parent().context("no folder")?)?;
    let scale = if arguments.quick { Scale::QUICK } else { Scale::FULL };
    let files = usage::allow_many_files()?;
    let bench = Bench { binary, folder: folder.path().to_owned(), scale, files };
    if arguments.guard {
        return guard::measure(&bench).await.map(|()| true);
    }
    let parts = scenarios::measure(&bench, &arguments.only).await;
    println!("\nMedian of the rounds (minimum–maximum). A ratio is Greenroom divided by the baseline, round by round.");
    for part in &parts {
        println!("\n{}\n\n{}", part.name, table::to_markdown(&part.rows));
    }
    println!();
    for failure in parts.iter().flat_map(|part| &part.failures) {
        println!("not measured: {failure}");
    }
    if let (Some(document), Some(commit)) = (&arguments.record, &arguments.commit) {
        record::write(document, commit, &parts)?;
        println!("written to {}", document.display());
    }
    Ok(parts.iter().all(|part| part.failures.is_empty()))
}

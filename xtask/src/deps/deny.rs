//! cargo-deny: its version, its installation into the user's cache, and how it is run without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clis::{cache, fresh, publish, remove, sweep};
use crate::repository::{Repository, XtaskResult, cannot_run, spell};
use crate::steps::Steps;

/// The only place to change the version.
const VERSION: &str = "0.20.2";
/// The one target in deny.toml.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Where deny.toml looks for databases.
const DATABASES_VARIABLE: &str = "GREENROOM_ADVISORY_DBS";
/// The folder in which cargo-deny expects the database of https://github.com/RustSec/advisory-db: a name and a hash of
/// that address.
const DATABASE_FOLDER: &str = "advisory-db-3157b0e258782691";

pub fn check(repository: &Repository, steps: &Steps, advisories: Option<&str>) -> XtaskResult<()> {
    let program = install(repository, steps)?;
    // Most is here after a build. cargo-deny itself is not allowed to download the rest.
    steps.run("Downloading dependencies", repository.cargo().args(["fetch", "--locked", "--target", TARGET]))?;
    let mut deny = repository.program(&program);
    // With warnings as errors, an exception that is not needed any more is found too.
    deny.args(["--offline", "check", "--deny", "warnings", "licenses", "bans", "sources"]);
    match advisories {
        Some(source) => {
            let databases = repository.logs().join("advisory-dbs");
            let date = copy_database(source, &databases.join(DATABASE_FOLDER), steps)?;
            steps.say(&format!("deps: the advisories are of {date}"));
            deny.arg("advisories").env(DATABASES_VARIABLE, &databases);
        }
        None => steps.say("deps: advisories are not checked: no database was named; see deny/README.md"),
    }
    steps.run("Checking licences, duplicates and sources", &mut deny)
}

/// Into a folder of its own per version, unless it is there.
fn install(repository: &Repository, steps: &Steps) -> XtaskResult<PathBuf> {
    let (cache, name) = (cache()?, format!("cargo-deny-{VERSION}"));
    let folder = cache.join(&name);
    let program = folder.join("bin/cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    sweep(&cache)?;
    let fresh = fresh(&cache, &name);
    let installed = steps
        .run(&format!("Installing cargo-deny {VERSION}"), &mut installation(repository, &fresh))
        .and_then(|()| publish(&fresh, &folder));
    if fresh.exists() {
        remove(&fresh)?;
    }
    installed.map(|()| program)
}

/// Without optimization: it takes a third of the time, and a check of this workspace is no slower to speak of.
fn installation(repository: &Repository, folder: &Path) -> Command {
    let mut cargo = repository.cargo();
    // In a temporary folder instead: nothing of this build is used again.
    cargo.env_remove("CARGO_TARGET_DIR");
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_DEV_INCREMENTAL", "false");
    cargo.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--root"]).arg(folder);
    cargo
}

/// Returns the day and the commit of the copy.
fn copy_database(source: &str, folder: &Path, steps: &Steps) -> XtaskResult<String> {
    if folder.exists() {
        remove(folder)?;
    }
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--depth", "1", source]).arg(folder);
    steps.run("Copying the advisory database", &mut clone)?;
    if !folder.join("crates").is_dir() {
        return Err(format!("{source} is no advisory database: it has no folder `crates`"));
    }
    let mut log = Command::new("git");
    log.arg("-C").arg(folder).args(["log", "-1", "--format=%cs (%h)"]);
    let output = log.output().map_err(|error| cannot_run(&log, &error))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("`{}` ended with {}", spell(&log), output.status)),
    }
}

//! `cargo xtask chaos`: builds the server and the chaos driver, then becomes the driver, which kills the server and
//! checks that nothing is lost. With `--planted` the server has a known bug, which the driver has to notice.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::prerequisites::{self, C_COMPILER};
use crate::progress::TextOutput;
use crate::repository::{BuildProfile, Repository, TEST_HOOKS, XtaskResult, become_program};
use crate::steps::Steps;

/// Always built together: cargo chooses the features of shared dependencies by the selection of packages, and another
/// selection would build them once more.
const PACKAGES: &[&str] = &["greenroom", "testkit"];

/// What `cargo xtask test` runs.
pub const SHORT_RUNS: &[&[&str]] = &[
    &["--cycles", "4"],
    &["--cycles", "3", "--power-cut"],
    &["--planted", "emit-before-commit", "--cycles", "6"],
    &["--planted", "synchronous-off", "--power-cut", "--cycles", "6"],
];

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "chaos", TextOutput::Stderr)?;
    prerequisites::ensure(&[C_COMPILER], &steps)?;
    let profile = BuildProfile::Release;
    steps.build("Building the server and chaos", &mut repository.build(profile, PACKAGES, &["greenroom", "chaos"]))?;
    let binary = match arguments.iter().any(|argument| argument == "--planted") {
        true => build_with_hooks(&repository, &steps)?,
        false => repository.binary(profile, "greenroom"),
    };
    drop(steps);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Err(become_program(&mut driver(&repository, profile, &arguments, &binary)))
}

/// In a folder of its own, so that nobody serves it by mistake.
fn build_with_hooks(repository: &Repository, steps: &Steps) -> XtaskResult<PathBuf> {
    let profile = BuildProfile::Release;
    let mut build = repository.build(profile, PACKAGES, &["greenroom"]);
    build.arg("--features").arg(format!("greenroom/{TEST_HOOKS}"));
    steps.build("Building the server with planted bugs", &mut repository.build_into(TEST_HOOKS, build))?;
    Ok(repository.binary_in(TEST_HOOKS, profile, "greenroom"))
}

/// The driver, ready to start. A binary among the arguments wins.
pub fn driver(repository: &Repository, profile: BuildProfile, arguments: &[&str], binary: &Path) -> Command {
    let mut driver = repository.program(&repository.binary(profile, "chaos"));
    driver.args(arguments);
    if !arguments.contains(&"--binary") {
        driver.arg("--binary").arg(binary);
    }
    driver
}

//! `cargo xtask chaos`: builds the server and the chaos driver, and lets the driver kill the one
//! while it checks the promises of the other. With `--planted` the server is one with a known bug,
//! which the driver has to notice.

use std::process::{Command, ExitCode};

use crate::prerequisites::{self, C_COMPILER};
use crate::workspace::{Outcome, Profile, Workspace, become_program};

/// Built together each time: cargo chooses the features of shared dependencies per selection of
/// packages, and another selection would build them all once more.
pub const PACKAGES: &[&str] = &["greenroom", "testkit"];

/// What `cargo xtask test` runs.
pub const SHORT_RUNS: &[&[&str]] = &[
    &["--cycles", "4"],
    &["--cycles", "3", "--power-cut"],
    &["--planted", "emit-before-commit", "--cycles", "6"],
    &["--planted", "synchronous-off", "--power-cut", "--cycles", "6"],
];

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    Err(become_program(&mut prepare(&workspace, Profile::Release, arguments)?))
}

/// Builds what the run needs and returns the driver, ready to start.
pub fn prepare(workspace: &Workspace, profile: Profile, arguments: &[String]) -> Outcome<Command> {
    workspace.build(profile, PACKAGES, &["greenroom", "chaos"])?;
    let mut driver = workspace.program(&workspace.binary(profile, "chaos"));
    driver.args(arguments);
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if !has("--binary") {
        let binary = match has("--planted") {
            true => workspace.build_apart(profile, PACKAGES, "planted-bugs")?,
            false => workspace.binary(profile, "greenroom"),
        };
        driver.arg("--binary").arg(binary);
    }
    Ok(driver)
}

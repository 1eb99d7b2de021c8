//! `cargo xtask bench`: builds the server and the load driver, then becomes the driver.

use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER};
use crate::workspace::{Outcome, Profile, Workspace, become_program};

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    workspace.build(Profile::Release, &["greenroom", "testkit"], &["greenroom", "bench"])?;
    let mut bench = workspace.program(&workspace.binary(Profile::Release, "bench"));
    bench.args(arguments);
    if !arguments.iter().any(|argument| argument == "--binary") {
        bench.arg("--binary").arg(workspace.binary(Profile::Release, "greenroom"));
    }
    Err(become_program(&mut bench))
}

//! `cargo xtask bench`: builds the server and the load driver, then becomes the driver.

use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER};
use crate::workspace::{Outcome, Workspace, become_program};

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    workspace.build_release(&["greenroom", "testkit"], &["greenroom", "bench"])?;
    let mut bench = workspace.program(&workspace.release_binary("bench"));
    bench.args(arguments);
    if !arguments.iter().any(|argument| argument == "--binary") {
        bench
            .arg("--binary")
            .arg(workspace.release_binary("greenroom"));
    }
    Err(become_program(&mut bench))
}

//! `cargo xtask bench`: builds the server and the load driver, then becomes the driver.

use std::process::ExitCode;

use crate::clis::Clis;
use crate::prerequisites::{self, C_COMPILER, NODE};
use crate::workspace::{Outcome, Profile, Workspace, become_program};

/// What is measured with the real CLIs, and only when it is asked for by name.
const WITH_CLIS: &str = "providers";

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    let clis = match arguments.iter().any(|argument| argument == WITH_CLIS) {
        true => Some(prerequisites::ensure(&[NODE]).and_then(|()| Clis::install())?),
        false => None,
    };
    workspace.build(Profile::Release, &["greenroom", "testkit"], &["greenroom", "bench", "fake-mcp"])?;
    let mut bench = workspace.program(&workspace.binary(Profile::Release, "bench"));
    bench.args(arguments);
    if !arguments.iter().any(|argument| argument == "--binary") {
        bench.arg("--binary").arg(workspace.binary(Profile::Release, "greenroom"));
    }
    if let Some(clis) = clis {
        clis.hand_to(&mut bench);
    }
    Err(become_program(&mut bench))
}

//! `cargo xtask serve`: from a fresh checkout to a running server in one command.

use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER};
use crate::workspace::{Outcome, Profile, Workspace, become_program};

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    workspace.build(Profile::Release, &["greenroom"], &["greenroom"])?;
    let arguments = match arguments.split_first() {
        Some((separator, rest)) if separator == "--" => rest,
        _ => arguments,
    };
    let mut server = workspace.program(&workspace.binary(Profile::Release, "greenroom"));
    Err(become_program(server.arg("serve").args(arguments)))
}

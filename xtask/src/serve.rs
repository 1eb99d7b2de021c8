//! `cargo xtask serve`: from a fresh checkout to a running server in one command.

use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER};
use crate::workspace::{Outcome, Workspace, become_program};

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    workspace.build_release(&["greenroom"], &["greenroom"])?;
    let arguments = match arguments.split_first() {
        Some((separator, rest)) if separator == "--" => rest,
        _ => arguments,
    };
    let mut server = workspace.program(&workspace.release_binary("greenroom"));
    Err(become_program(server.arg("serve").args(arguments)))
}

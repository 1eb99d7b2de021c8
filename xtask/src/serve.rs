//! `cargo xtask serve`: from a fresh checkout to a running server in one command.

use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER};
use crate::web;
use crate::workspace::{Outcome, Profile, Workspace, become_program, find_in_path};

pub fn command(arguments: &[String]) -> Outcome<ExitCode> {
    let workspace = Workspace::locate()?;
    prerequisites::ensure(&[C_COMPILER])?;
    // Without Node.js there is a server all the same, whose page says how to get the app.
    if find_in_path("npm").is_some()
        && let Err(message) = web::build(&workspace)
    {
        eprintln!("the web app was not built: {message}");
    }
    workspace.build(Profile::Release, &["greenroom"], &["greenroom"])?;
    let arguments = match arguments.split_first() {
        Some((separator, rest)) if separator == "--" => rest,
        _ => arguments,
    };
    let mut server = workspace.program(&workspace.binary(Profile::Release, "greenroom"));
    Err(become_program(server.arg("serve").args(arguments)))
}

//! `greenroom completions`: prints a shell completion script.

use super::{Cli, Exit};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell to complete in.
    shell: Shell,
}

pub fn run(arguments: &CompletionsArgs) -> anyhow::Result<Exit> {
    // Into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "greenroom", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Exit::Success)
}

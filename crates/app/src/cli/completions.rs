//! `greenroom completions`: the script that lets a shell complete our words.

use super::{Cli, Exit};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::io::{self, Write as _};

#[derive(Args, Debug)]
pub struct Arguments {
    /// The shell to complete in.
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    // Into memory first: the generator panics when its reader has gone.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "greenroom", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Exit::Success)
}

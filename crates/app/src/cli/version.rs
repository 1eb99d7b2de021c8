//! `greenroom --version`: the version, and the commit that the binary was built from.
//!
//! Only the binary knows its commit and passes it in.

use super::Cli;
use clap::{Command, CommandFactory as _, FromArgMatches as _, builder::Resettable};
use std::{env, ffi::OsString, sync::OnceLock};

static VERSION: OnceLock<String> = OnceLock::new();

/// The version and the commit of this binary, such as `0.1.0 (b32665401f 2026-11-17)`.
pub fn current() -> &'static str {
    VERSION.get().map_or(env!("CARGO_PKG_VERSION"), String::as_str)
}

/// Parses the command line. Prints the version and exits if that is all it asks for, or an error if it is invalid.
pub fn parse(built_from: Option<&str>) -> Cli {
    let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), built_from.unwrap_or("development build"));
    VERSION.get_or_init(|| version);
    let command = Cli::command().version(current());
    let arguments: Vec<OsString> = env::args_os().collect();
    let matches = command.clone().try_get_matches_from(&arguments).unwrap_or_else(|error| {
        // The usage in an error shows options that a variable sets as if they were required.
        without_variables(command).try_get_matches_from(arguments).err().unwrap_or(error).exit()
    });
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The same command line, which reads nothing from the environment.
fn without_variables(command: Command) -> Command {
    command.mut_args(|argument| argument.env(Resettable::Reset)).mut_subcommands(without_variables)
}

//! `greenroom --version`: the version, and the commit that the binary was built from.
//!
//! Only the binary knows its commit and passes it in.

use super::Cli;
use clap::{CommandFactory as _, FromArgMatches as _};

/// Parses the command line. Prints the version and exits if that is all it asks for, or an error if it is invalid.
pub fn parse(built_from: Option<&str>) -> Cli {
    let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), built_from.unwrap_or("development build"));
    // clap keeps it until the process ends.
    let matches = Cli::command().version(&*version.leak()).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

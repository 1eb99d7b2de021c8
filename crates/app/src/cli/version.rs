//! `greenroom --version`: the version, and the commit that the binary was built from.
//!
//! Only the binary knows its commit and passes it in.

use super::Cli;
use clap::{CommandFactory as _, FromArgMatches as _};
use std::sync::OnceLock;

static VERSION: OnceLock<String> = OnceLock::new();

/// The version and the commit of this binary, such as `0.1.0 (b32665401f 2026-11-17)`.
pub fn current() -> &'static str {
    VERSION.get().map_or(env!("CARGO_PKG_VERSION"), String::as_str)
}

/// Parses the command line. Prints the version and exits if that is all it asks for, or an error if it is invalid.
pub fn parse(built_from: Option<&str>) -> Cli {
    let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), built_from.unwrap_or("development build"));
    VERSION.get_or_init(|| version);
    let matches = Cli::command().version(current()).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

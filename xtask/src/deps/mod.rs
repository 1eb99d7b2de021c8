//! `cargo xtask deps`: what the workspace depends on.
//!
//! `unused.rs` looks for dependencies that no source names; `deny.rs` runs cargo-deny with the rules in `deny.toml`:
//! licences, duplicates, sources and, with a copy of the RustSec database, advisories. Must not know which crates those
//! are: what is allowed is in `deny.toml`.

mod deny;
mod unused;

use std::process::ExitCode;

use crate::prerequisites::{self, C_COMPILER, GIT};
use crate::progress::TextOutput;
use crate::repository::{Repository, XtaskResult};
use crate::steps::Steps;

const ADVISORIES: &str = "--advisories";

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let advisories = advisories(arguments)?;
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "deps", TextOutput::Stdout)?;
    prerequisites::ensure(&[C_COMPILER, GIT], &steps)?;
    let unused = unused::find(&repository, &steps)?;
    let verdict = if unused.is_empty() { "ok" } else { "FAILED" };
    steps.say(&format!("deps: every dependency is used ... {verdict}"));
    unused.iter().for_each(|finding| steps.say(finding));
    deny::check(&repository, &steps, advisories)?;
    Ok(if unused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The address or folder of a copy of the advisory database.
fn advisories(arguments: &[String]) -> XtaskResult<Option<&str>> {
    match arguments {
        [] => Ok(None),
        [flag, source] if flag == ADVISORIES => Ok(Some(source)),
        other => Err(format!("expected nothing or `{ADVISORIES} <git repository>`, not `{}`", other.join(" "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_can_be_named() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
            advisories(&words).map(|source| source.map(str::to_owned))
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["--advisories", "/copy"]), Ok(Some("/copy".to_owned())));
        assert!(read(&["--advisories"]).is_err() && read(&["/copy"]).is_err());
    }
}

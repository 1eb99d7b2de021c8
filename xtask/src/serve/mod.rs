//! `cargo xtask serve`: from a new clone to a running server in one command. With `--dev`, a server for development.
//!
//! Must not know how the server works. Start at [`command`]; `dev.rs` runs the development servers, `sources.rs` notices
//! changes.

mod dev;
mod sources;

use std::process::ExitCode;

use crate::dist::ReleaseSource;
use crate::prerequisites::{self, C_COMPILER};
use crate::progress::{TextOutput, minutes, timed};
use crate::repository::{BuildProfile, Repository, XtaskResult, become_program, find_in_path};
use crate::steps::Steps;
use crate::web;

pub use dev::{GUARD_COMMAND, guard_command};

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let (is_dev, arguments) = split(arguments);
    if is_dev {
        return dev::command(&arguments);
    }
    let repository = Repository::locate()?;
    let steps = Steps::open(&repository, "serve", TextOutput::Stderr)?;
    prerequisites::ensure(&[C_COMPILER], &steps)?;
    let (built, took) = timed(|| {
        // Without Node.js the server still works; its page says how to get the app.
        if find_in_path("npm").is_some()
            && let Err(message) = web::build(&repository, &steps)
        {
            steps.say(&format!("The web app was not built: {message}"));
        }
        let mut build = repository.build(BuildProfile::Release, &["greenroom"], &["greenroom"]);
        ReleaseSource::read(repository.root())?.name_commit(&mut build);
        steps.build("Building the server", &mut build)
    });
    built?;
    steps.say(&format!("Built in {}. Log: {}", minutes(took), steps.log_name()));
    drop(steps);
    let mut server = repository.program(&repository.binary(BuildProfile::Release, "greenroom"));
    Err(become_program(server.arg("serve").args(arguments)))
}

/// Whether `--dev` comes before any `--`, and the server's own arguments.
fn split(arguments: &[String]) -> (bool, Vec<String>) {
    let separator = arguments.iter().position(|argument| argument == "--");
    let (own, rest) = arguments.split_at(separator.unwrap_or(arguments.len()));
    let is_dev = own.iter().any(|argument| argument == "--dev");
    let passed = own.iter().filter(|argument| *argument != "--dev").chain(rest.iter().skip(1));
    (is_dev, passed.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::split;

    fn split_words(words: &[&str]) -> (bool, Vec<String>) {
        split(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_passed_with_and_without_a_separator() {
        let expected = vec!["--listen".to_owned(), "127.0.0.1:1".to_owned()];
        assert_eq!(split_words(&["--listen", "127.0.0.1:1"]), (false, expected.clone()));
        assert_eq!(split_words(&["--", "--listen", "127.0.0.1:1"]), (false, expected.clone()));
        assert_eq!(split_words(&["--dev", "--", "--listen", "127.0.0.1:1"]), (true, expected));
        assert_eq!(split_words(&["--", "--dev"]), (false, vec!["--dev".to_owned()]), "not ours after the separator");
        assert_eq!(split_words(&[]), (false, vec![]));
    }
}

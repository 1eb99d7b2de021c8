//! A CLI that is none: it plays a recorded one, or a broken one, so that the whole path from a message to an answer is
//! driven without any real CLI.
//!
//! ```text
//! replay … --replay FILE [--pace F]       plays the transcript's output and checks its own input against it
//! replay … --fault NAME [--speaks WHOM]   behaves until the first prompt, then does what the fault's name says
//! ```
//!
//! The server starts it as if it were `claude`, `codex` or an ACP agent, so all other arguments are taken and ignored, but
//! for `--version` and for the session that Claude's flags name. [`player`] plays transcripts, [`faults`] has the broken
//! ones. An input that the transcript does not have ends it with exit code 97 and a line on stderr that says why.

mod arguments;
mod faults;
mod input;
mod kind;
mod player;
mod substitution;
mod transcript;

use arguments::{Arguments, Play};
use std::{io, process::ExitCode};

/// Its input was not what the transcript has.
const MISMATCH: u8 = 97;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("replay: {problem}");
            return ExitCode::from(USAGE);
        }
    };
    let ended = match arguments.play {
        Play::Version(speaks) => {
            println!("{}", speaks.version());
            return ExitCode::SUCCESS;
        }
        Play::Transcript { file, pace } => player::play(&file, pace, arguments.session),
        Play::Fault { fault, speaks, is_deaf } => faults::play(fault, speaks, is_deaf),
    };
    match ended {
        Ok(code) => code,
        // Whoever listened is gone, as happens to any CLI whose host was killed.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replay: {error}");
            ExitCode::from(USAGE)
        }
    }
}

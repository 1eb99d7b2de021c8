//! A fake CLI: it replays a recorded CLI or plays a faulty one, so that the whole path from a message to an answer is
//! tested without a real CLI.
//!
//! ```text
//! replay … --replay FILE [--pace F]       plays the transcript's output and checks its input against it
//! replay … --fault NAME [--speaks WHOM]   follows the protocol until the first prompt, then shows the fault
//! ```
//!
//! The server starts it like `claude`, `codex` or an ACP agent, so it ignores all other arguments except `--version`
//! and Claude's session flags. [`player`] plays transcripts, [`faults`] has the faulty CLIs. Input that does not match
//! the transcript ends the process with exit code 97 and a reason on stderr.

mod arguments;
mod faults;
mod input;
mod kind;
mod player;
mod substitution;
mod transcript;

use arguments::{ReplayArguments, ReplayMode};
use std::{io, process::ExitCode};

/// The exit code for input that does not match the transcript.
const MISMATCH: u8 = 97;
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match ReplayArguments::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("replay: {problem}");
            return ExitCode::from(USAGE);
        }
    };
    let ended = match arguments.mode {
        ReplayMode::Version(protocol) => {
            println!("{}", protocol.version());
            return ExitCode::SUCCESS;
        }
        ReplayMode::Transcript { file, pace } => player::play(&file, pace, arguments.session),
        ReplayMode::Fault { fault, protocol, ignores_sigterm } => faults::play(fault, protocol, ignores_sigterm),
    };
    match ended {
        Ok(code) => code,
        // The host has disconnected, as after a kill.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("replay: {error}");
            ExitCode::from(USAGE)
        }
    }
}

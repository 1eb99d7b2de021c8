//! Parses the arguments of this program from a command line meant for a CLI.

use crate::faults::{CliProtocol, Fault};
use std::{ffi::OsString, path::PathBuf};

/// Added when the program restarts itself with SIGTERM ignored.
pub const IGNORE_SIGTERM: &str = "--deaf";

#[derive(Debug, PartialEq)]
pub struct ReplayArguments {
    pub mode: ReplayMode,
    /// The session that the host starts or resumes, from Claude's flags.
    pub session: Option<String>,
}

#[derive(Debug, PartialEq)]
pub enum ReplayMode {
    Version(CliProtocol),
    Transcript { file: PathBuf, pace: Option<f64> },
    Fault { fault: Fault, protocol: CliProtocol, ignores_sigterm: bool },
}

impl ReplayArguments {
    pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
        let has = |flag: &str| words.iter().any(|word| word == flag);
        // The last one wins: our arguments come after those of the CLI.
        let value = |flag: &str| {
            let at = words.iter().rposition(|word| word == flag)?;
            words.get(at + 1).cloned()
        };
        let protocol = match value("--speaks") {
            Some(name) => CliProtocol::named(&name)?,
            None => CliProtocol::Claude,
        };
        let play = if has("--version") {
            ReplayMode::Version(protocol)
        } else if let Some(name) = value("--fault") {
            ReplayMode::Fault { fault: Fault::named(&name)?, protocol, ignores_sigterm: has(IGNORE_SIGTERM) }
        } else if let Some(file) = value("--replay") {
            ReplayMode::Transcript { file: file.into(), pace: value("--pace").map(|text| factor(&text)).transpose()? }
        } else {
            return Err("pass --replay FILE [--pace F], or --fault NAME [--speaks claude|codex|acp|acp-stdio]".into());
        };
        let session = value("--session-id").or_else(|| value("--resume")).filter(|_| !has("--fork-session"));
        Ok(Self { mode: play, session })
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor >= 0.0);
    factor.ok_or_else(|| format!("--pace takes a factor such as 1 or 0.1, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::{ReplayArguments, ReplayMode};
    use crate::faults::{CliProtocol, Fault};

    fn parse(line: &str) -> Result<ReplayArguments, String> {
        ReplayArguments::parse(line.split(' ').map(Into::into))
    }

    #[test]
    fn own_arguments_are_found_among_those_of_the_cli() {
        let found = parse("-p --model x --session-id s --replay a.jsonl --verbose --pace 0.5").unwrap();
        let mode = ReplayMode::Transcript { file: "a.jsonl".into(), pace: Some(0.5) };
        assert_eq!(found, ReplayArguments { mode, session: Some("s".into()) });
        assert_eq!(parse("--resume s --fork-session --replay a").unwrap().session, None);
        let mode = ReplayMode::Fault { fault: Fault::Burst, protocol: CliProtocol::Codex, ignores_sigterm: false };
        assert_eq!(parse("app-server -c x --fault burst --speaks codex").unwrap().mode, mode);
        assert_eq!(parse("--version --replay a").unwrap().mode, ReplayMode::Version(CliProtocol::Claude));
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        for line in
            ["-p", "--fault flood", "--fault exit --speaks latin", "--replay a --pace fast", "--replay a --pace -1"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}

//! What this program takes from a command line that was meant for another one.

use crate::faults::{Fault, Speaks};
use std::{ffi::OsString, path::PathBuf};

/// Added when it starts itself again with SIGTERM ignored.
pub const DEAF: &str = "--deaf";

#[derive(Debug, PartialEq)]
pub struct Arguments {
    pub play: Play,
    /// The session that the host chose or goes on with, by Claude's flags.
    pub session: Option<String>,
}

#[derive(Debug, PartialEq)]
pub enum Play {
    Version(Speaks),
    Transcript { file: PathBuf, pace: Option<f64> },
    Fault { fault: Fault, speaks: Speaks, is_deaf: bool },
}

impl Arguments {
    pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let words: Vec<String> = arguments.map(|word| word.to_string_lossy().into_owned()).collect();
        let has = |flag: &str| words.iter().any(|word| word == flag);
        // The last one counts: ours come after those of the CLI that is played.
        let value = |flag: &str| {
            let at = words.iter().rposition(|word| word == flag)?;
            words.get(at + 1).cloned()
        };
        let speaks = match value("--speaks") {
            Some(name) => Speaks::named(&name)?,
            None => Speaks::Claude,
        };
        let play = if has("--version") {
            Play::Version(speaks)
        } else if let Some(name) = value("--fault") {
            Play::Fault { fault: Fault::named(&name)?, speaks, is_deaf: has(DEAF) }
        } else if let Some(file) = value("--replay") {
            Play::Transcript { file: file.into(), pace: value("--pace").map(|text| factor(&text)).transpose()? }
        } else {
            return Err(
                "say what to play: --replay FILE [--pace F], or --fault NAME [--speaks claude|codex|acp|acp-stdio]"
                    .into(),
            );
        };
        let session = value("--session-id").or_else(|| value("--resume")).filter(|_| !has("--fork-session"));
        Ok(Self { play, session })
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor >= 0.0);
    factor.ok_or_else(|| format!("--pace takes a factor such as 1 or 0.1, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Play};
    use crate::faults::{Fault, Speaks};

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split(' ').map(Into::into))
    }

    #[test]
    fn its_own_arguments_are_found_among_those_of_the_cli() {
        let found = parse("-p --model x --session-id s --replay a.jsonl --verbose --pace 0.5").unwrap();
        let play = Play::Transcript { file: "a.jsonl".into(), pace: Some(0.5) };
        assert_eq!(found, Arguments { play, session: Some("s".into()) });
        assert_eq!(parse("--resume s --fork-session --replay a").unwrap().session, None);
        let play = Play::Fault { fault: Fault::Burst, speaks: Speaks::Codex, is_deaf: false };
        assert_eq!(parse("app-server -c x --fault burst --speaks codex").unwrap().play, play);
        assert_eq!(parse("--version --replay a").unwrap().play, Play::Version(Speaks::Claude));
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        for line in
            ["-p", "--fault flood", "--fault exit --speaks latin", "--replay a --pace fast", "--replay a --pace -1"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}

//! Plays a transcript: says what was recorded, by the recorded clock, and wants to hear what was recorded.

use crate::{
    MISMATCH,
    input::{Heard, Input},
    kind::Kind,
    substitution::Substitution,
    transcript::{self, Entry, What},
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// Between two lines when no pace is asked for: enough for the host to see them one by one.
const SMALL_GAP: Duration = Duration::from_millis(1);
/// What a host may say before its turn.
const MAX_EARLY: usize = 1000;
const QUOTED_CHARS: usize = 200;

/// Why the play is over before its end.
enum Stop {
    /// The host has closed its end, which is no failure: it has heard enough.
    InputEnded,
    Mismatch(String),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub fn play(file: &Path, pace: Option<f64>, session: Option<String>) -> io::Result<ExitCode> {
    let entries = transcript::read(file)?;
    let exit = entries.iter().find_map(|entry| if let What::Exit(code) = entry.what { Some(code) } else { None });
    let ends_by_itself = exit.is_some_and(|code| code != 0) && !ends_with_an_answer(&entries);
    let mut player = Player {
        input: Input::open(),
        substitution: Substitution::default(),
        rest: entries.into(),
        early: VecDeque::new(),
        due: Instant::now(),
        recorded: 0.0,
        pace,
    };
    if let (Some(actual), Some(recorded)) = (session, player.recorded_session()) {
        player.substitution.text(&recorded, &actual);
    }
    let code = exit.map_or(ExitCode::SUCCESS, ExitCode::from);
    let stopped = match player.run() {
        Ok(()) if ends_by_itself => return Ok(code),
        Ok(()) => player.until_the_end(),
        Err(stop) => stop,
    };
    match stopped {
        Stop::InputEnded if player.rest.is_empty() => Ok(code),
        Stop::InputEnded => Ok(ExitCode::SUCCESS),
        Stop::Io(error) => Err(error),
        Stop::Mismatch(problem) => {
            eprintln!("replay: {}: {problem}", file.display());
            Ok(ExitCode::from(MISMATCH))
        }
    }
}

/// Claude's exit code tells of its last answer, once its input has ended. An end without an answer is a failure to start.
fn ends_with_an_answer(entries: &[Entry]) -> bool {
    let results = entries.iter().rev().filter_map(|entry| match &entry.what {
        What::Out(line) => serde_json::from_str::<Value>(line).ok().filter(|line| line["type"] == "result"),
        _ => None,
    });
    results.map(|result| !result["terminal_reason"].is_null()).next().unwrap_or(false)
}

struct Player {
    input: Input,
    substitution: Substitution,
    rest: VecDeque<Entry>,
    /// Heard before its turn.
    early: VecDeque<Value>,
    /// When the last line was to be said. Deadlines add up, so that lateness does not.
    due: Instant,
    /// The same moment by the recorded clock, in milliseconds.
    recorded: f64,
    pace: Option<f64>,
}

impl Player {
    fn run(&mut self) -> Result<(), Stop> {
        while let Some(entry) = self.rest.pop_front() {
            match &entry.what {
                What::In(recorded) => {
                    let heard = self.expect(recorded, entry.number)?;
                    self.substitution.learn(recorded, &heard);
                    self.due = Instant::now();
                    self.recorded = entry.at;
                }
                What::Out(line) => {
                    self.wait(entry.at)?;
                    say(&self.substitution.apply(line))?;
                }
                What::Err(line) => {
                    self.wait(entry.at)?;
                    eprintln!("{line}");
                }
                What::Exit(_) | What::Note => {}
            }
        }
        Ok(())
    }

    /// Waits for the moment of a line, and takes what the host says meanwhile.
    fn wait(&mut self, at: f64) -> Result<(), Stop> {
        let gap = Duration::from_secs_f64((at - self.recorded).max(0.0) / 1000.0);
        self.due += match self.pace {
            Some(factor) => gap.mul_f64(factor),
            None => gap.min(SMALL_GAP),
        };
        self.recorded = at;
        loop {
            match self.input.until(self.due) {
                Heard::Line(line) => self.take(line)?,
                Heard::Noise(line) => return Err(noise(&line)),
                Heard::Silence => return Ok(()),
                // What was asked is still answered, as the CLIs do.
                Heard::End => {
                    std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
                    return Ok(());
                }
            }
        }
    }

    /// The host's counterpart of a recorded line.
    fn expect(&mut self, recorded: &Value, number: usize) -> Result<Value, Stop> {
        let expected = Kind::of(recorded);
        loop {
            let actual = match self.early.pop_front() {
                Some(line) => line,
                None => match self.input.next() {
                    Heard::Line(line) => line,
                    Heard::Noise(line) => return Err(noise(&line)),
                    Heard::Silence | Heard::End => return Err(Stop::InputEnded),
                },
            };
            let kind = Kind::of(&actual);
            if expected.accepts(&kind) {
                return Ok(actual);
            }
            if !self.is_extra(&kind) {
                let problem =
                    format!("line {number}: expected {expected}, heard {kind}: {}", short(&actual.to_string()));
                return Err(Stop::Mismatch(problem));
            }
            answer_extra(&actual)?;
        }
    }

    fn take(&mut self, line: Value) -> Result<(), Stop> {
        let kind = Kind::of(&line);
        if self.is_extra(&kind) {
            return Ok(answer_extra(&line)?);
        }
        if self.early.len() == MAX_EARLY {
            return Err(Stop::Mismatch(format!("more than {MAX_EARLY} lines came before their turn")));
        }
        self.early.push_back(line);
        Ok(())
    }

    /// Whether the recorded host never says it, from here on, and any host may.
    fn is_extra(&self, kind: &Kind) -> bool {
        let is_recorded = |entry: &Entry| matches!(&entry.what, What::In(line) if Kind::of(line).accepts(kind));
        kind.may_be_extra() && !self.rest.iter().any(is_recorded)
    }

    /// All is said; only extras are answered.
    fn until_the_end(&mut self) -> Stop {
        loop {
            let heard = match self.early.pop_front() {
                Some(line) => Heard::Line(line),
                None => self.input.next(),
            };
            let line = match heard {
                Heard::Line(line) => line,
                Heard::Noise(line) => return noise(&line),
                Heard::Silence | Heard::End => return Stop::InputEnded,
            };
            let kind = Kind::of(&line);
            if !kind.may_be_extra() {
                let problem = format!("nothing more was recorded, heard {kind}: {}", short(&line.to_string()));
                return Stop::Mismatch(problem);
            }
            if let Err(error) = answer_extra(&line) {
                return Stop::Io(error);
            }
        }
    }

    /// The id of Claude's session; it is in each of its lines.
    fn recorded_session(&self) -> Option<String> {
        self.rest.iter().find_map(|entry| match &entry.what {
            What::Out(line) => serde_json::from_str::<Value>(line).ok()?["session_id"].as_str().map(str::to_owned),
            _ => None,
        })
    }
}

/// What was not recorded is granted: an empty success.
fn answer_extra(line: &Value) -> io::Result<()> {
    if line["type"] == "control_request" {
        let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {}});
        return say(&json!({"type": "control_response", "response": response}).to_string());
    }
    if line.get("method").is_some() && line.get("id").is_some() {
        return say(&json!({"jsonrpc": "2.0", "id": line["id"], "result": {}}).to_string());
    }
    Ok(())
}

fn noise(line: &str) -> Stop {
    Stop::Mismatch(format!("heard a line that is no JSON: {}", short(line)))
}

fn short(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}

fn say(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

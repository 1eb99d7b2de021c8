//! Plays a transcript: writes the recorded output at the recorded times and expects the recorded input.

use crate::{
    MISMATCH,
    input::{HostInput, StdinLines},
    kind::HostLineKind,
    substitution::IdSubstitution,
    transcript::{self, RecordedContent, RecordedEntry},
};
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// The gap between two lines without `--pace`, so that the host sees them one by one.
const SMALL_GAP: Duration = Duration::from_millis(1);
/// The maximum number of early lines from the host.
const MAX_EARLY: usize = 1000;
const QUOTED_CHARS: usize = 200;

/// Why playing stopped.
enum PlayEnd {
    /// The host closed the input, which is not a failure.
    InputEnded,
    Mismatch(String),
    Io(io::Error),
}

impl From<io::Error> for PlayEnd {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub fn play(file: &Path, pace: Option<f64>, session: Option<String>) -> io::Result<ExitCode> {
    let entries = transcript::read(file)?;
    let exit = entries
        .iter()
        .find_map(|entry| if let RecordedContent::Exit(code) = entry.content { Some(code) } else { None });
    let ends_by_itself = exit.is_some_and(|code| code != 0) && !ends_with_answer(&entries);
    let mut player = Player {
        input: StdinLines::open(),
        substitution: IdSubstitution::default(),
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
        Ok(()) => player.answer_extras_until_end(),
        Err(stop) => stop,
    };
    match stopped {
        PlayEnd::InputEnded if player.rest.is_empty() => Ok(code),
        PlayEnd::InputEnded => Ok(ExitCode::SUCCESS),
        PlayEnd::Io(error) => Err(error),
        PlayEnd::Mismatch(problem) => {
            eprintln!("replay: {}: {problem}", file.display());
            Ok(ExitCode::from(MISMATCH))
        }
    }
}

/// Claude's exit code reports its last answer once the input has ended. An end without an answer is a failed start.
fn ends_with_answer(entries: &[RecordedEntry]) -> bool {
    let results = entries.iter().rev().filter_map(|entry| match &entry.content {
        RecordedContent::Out(line) => serde_json::from_str::<Value>(line).ok().filter(|line| line["type"] == "result"),
        _ => None,
    });
    results.map(|result| !result["terminal_reason"].is_null()).next().unwrap_or(false)
}

struct Player {
    input: StdinLines,
    substitution: IdSubstitution,
    rest: VecDeque<RecordedEntry>,
    /// Lines received before they were expected.
    early: VecDeque<Value>,
    /// The deadline of the last line. Deadlines are cumulative, so delays do not add up.
    due: Instant,
    /// The same time on the recorded clock, in milliseconds.
    recorded: f64,
    pace: Option<f64>,
}

impl Player {
    fn run(&mut self) -> Result<(), PlayEnd> {
        while let Some(entry) = self.rest.pop_front() {
            match &entry.content {
                RecordedContent::In(recorded) => {
                    let input = self.expect(recorded, entry.number)?;
                    self.substitution.learn(recorded, &input);
                    self.due = Instant::now();
                    self.recorded = entry.at;
                }
                RecordedContent::Out(line) => {
                    self.wait(entry.at)?;
                    write_line(&self.substitution.apply(line))?;
                }
                RecordedContent::Err(line) => {
                    self.wait(entry.at)?;
                    eprintln!("{line}");
                }
                RecordedContent::Exit(_) | RecordedContent::Note => {}
            }
        }
        Ok(())
    }

    /// Waits for the time of a line and handles input that arrives in the meantime.
    fn wait(&mut self, at: f64) -> Result<(), PlayEnd> {
        let gap = Duration::from_secs_f64((at - self.recorded).max(0.0) / 1000.0);
        self.due += match self.pace {
            Some(factor) => gap.mul_f64(factor),
            None => gap.min(SMALL_GAP),
        };
        self.recorded = at;
        loop {
            match self.input.next_before(self.due) {
                HostInput::Line(line) => self.take(line)?,
                HostInput::NotJson(line) => return Err(not_json(&line)),
                HostInput::Timeout => return Ok(()),
                // Pending requests are still answered, as the real CLIs do.
                HostInput::End => {
                    std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
                    return Ok(());
                }
            }
        }
    }

    /// Waits for the host's line that matches a recorded one.
    fn expect(&mut self, recorded: &Value, number: usize) -> Result<Value, PlayEnd> {
        let expected = HostLineKind::of(recorded);
        loop {
            let actual = match self.early.pop_front() {
                Some(line) => line,
                None => match self.input.next() {
                    HostInput::Line(line) => line,
                    HostInput::NotJson(line) => return Err(not_json(&line)),
                    HostInput::Timeout | HostInput::End => return Err(PlayEnd::InputEnded),
                },
            };
            let kind = HostLineKind::of(&actual);
            if expected.accepts(&kind) {
                return Ok(actual);
            }
            if !self.is_extra(&kind) {
                let problem = format!("line {number}: expected {expected}, got {kind}: {}", short(&actual.to_string()));
                return Err(PlayEnd::Mismatch(problem));
            }
            answer_extra(&actual)?;
        }
    }

    fn take(&mut self, line: Value) -> Result<(), PlayEnd> {
        let kind = HostLineKind::of(&line);
        if self.is_extra(&kind) {
            return Ok(answer_extra(&line)?);
        }
        if self.early.len() == MAX_EARLY {
            return Err(PlayEnd::Mismatch(format!("more than {MAX_EARLY} lines arrived early")));
        }
        self.early.push_back(line);
        Ok(())
    }

    /// Whether the rest of the transcript does not contain this line and a host may send it anyway.
    fn is_extra(&self, kind: &HostLineKind) -> bool {
        let is_recorded = |entry: &RecordedEntry| matches!(&entry.content, RecordedContent::In(line) if HostLineKind::of(line).accepts(kind));
        kind.may_be_extra() && !self.rest.iter().any(is_recorded)
    }

    /// Answers only extra lines after the end of the transcript.
    fn answer_extras_until_end(&mut self) -> PlayEnd {
        loop {
            let input = match self.early.pop_front() {
                Some(line) => HostInput::Line(line),
                None => self.input.next(),
            };
            let line = match input {
                HostInput::Line(line) => line,
                HostInput::NotJson(line) => return not_json(&line),
                HostInput::Timeout | HostInput::End => return PlayEnd::InputEnded,
            };
            let kind = HostLineKind::of(&line);
            if !kind.may_be_extra() {
                let problem = format!("nothing more was recorded, got {kind}: {}", short(&line.to_string()));
                return PlayEnd::Mismatch(problem);
            }
            if let Err(error) = answer_extra(&line) {
                return PlayEnd::Io(error);
            }
        }
    }

    /// The id of Claude's session, which is in each of its lines.
    fn recorded_session(&self) -> Option<String> {
        self.rest.iter().find_map(|entry| match &entry.content {
            RecordedContent::Out(line) => {
                serde_json::from_str::<Value>(line).ok()?["session_id"].as_str().map(str::to_owned)
            }
            _ => None,
        })
    }
}

/// Answers an unrecorded request with an empty success.
fn answer_extra(line: &Value) -> io::Result<()> {
    if line["type"] == "control_request" {
        let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {}});
        return write_line(&json!({"type": "control_response", "response": response}).to_string());
    }
    if line.get("method").is_some() && line.get("id").is_some() {
        return write_line(&json!({"jsonrpc": "2.0", "id": line["id"], "result": {}}).to_string());
    }
    Ok(())
}

fn not_json(line: &str) -> PlayEnd {
    PlayEnd::Mismatch(format!("got a line that is not JSON: {}", short(line)))
}

fn short(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}

fn write_line(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

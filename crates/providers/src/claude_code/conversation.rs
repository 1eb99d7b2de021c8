//! One live conversation: lines out, lines in, and answers to what needs nobody's decision. It knows pipes, not
//! processes, so that tests can play the program.

use super::{
    asks::{self, Question, Reaction, ReplyTo},
    control::Ask,
    failure::Finished,
    parse::{Parsed, Parser},
    wire,
};
use crate::{Reported, TurnEvent};
use domain::{agent::ToolPolicy, event::Decision, run::RunError, time::Timestamp};
use serde_json::Value;
use std::{
    future::{Future, pending, poll_fn},
    io,
    pin::pin,
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    time::{Instant, sleep_until, timeout_at},
};
use workbench::process::{LineError, Lines};

/// How long the program may take until it answers its first request.
const START: Duration = Duration::from_secs(60);
/// How long a spare is listened to for what it wants to know of the host tools.
const HANDSHAKE: Duration = Duration::from_secs(1);
/// A program that asks and asks and does not read the answers is not listened to until it does.
const MAX_UNREAD_BYTES: usize = 16 * 1024 * 1024;
/// A stray line is skipped; so many in a row are a program of another kind.
const MAX_GARBAGE: u32 = 20;

pub(super) struct Conversation {
    lines: Lines,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    outbox: Outbox,
    pub parser: Parser,
    /// Of the agent, as it is now.
    pub policy: ToolPolicy,
    requests: u64,
    starting: Option<(String, Instant)>,
    has_seen_tools: bool,
    garbage: u32,
}

/// What the holder of the conversation has to know.
#[derive(Debug)]
pub(super) enum Heard {
    Event(Reported),
    Began,
    Message { uuid: String, taken: bool },
    Question { question: Question, raw: String },
    Withdrawn { id: String },
    CallCancelled { call: Value },
    Answered { id: String, answer: Result<Value, String> },
    Hopeless(RunError),
    Finished(Finished),
}

/// Why nothing more can come of a conversation.
#[derive(Debug)]
pub(super) enum Broken {
    /// The output ended, perhaps in the middle of a line.
    Ended(Option<String>),
    BadOutput(String),
    /// It did not answer its first request in time.
    Silent,
    /// It answered its first request with a no.
    Refused(String),
}

impl Conversation {
    /// Begins to talk: the first request is on its way, its answer need not be waited for.
    pub fn new(lines: Lines, input: impl AsyncWrite + Send + Unpin + 'static, system_prompt: Option<&str>) -> Self {
        let mut new = Self {
            lines,
            input: Box::new(input),
            outbox: Outbox::default(),
            parser: Parser::default(),
            policy: ToolPolicy::default(),
            requests: 0,
            starting: None,
            has_seen_tools: false,
            garbage: 0,
        };
        let id = new.request(&wire::initialize(system_prompt));
        new.starting = Some((id, Instant::now() + START));
        new
    }

    pub fn say(&mut self, line: &str) {
        self.outbox.push(line);
    }

    /// Returns the id that the answer will bear.
    pub fn request(&mut self, request: &Value) -> String {
        self.requests += 1;
        let id = format!("greenroom-{}", self.requests);
        self.say(&wire::request(&id, request));
        id
    }

    pub fn answer(&mut self, to: ReplyTo, decision: Decision, input: Option<Value>) {
        self.say(&asks::answer(to, decision, input));
    }

    /// Writes what is to be written and, if it may `listen`, reads what comes; whichever is first. Cancel safe.
    pub async fn next(&mut self, listen: bool) -> Result<Vec<Heard>, Broken> {
        let deadline = self.starting.as_ref().map(|(_, deadline)| *deadline);
        let line = tokio::select! {
            biased;
            written = self.input.write(self.outbox.rest()), if !self.outbox.is_empty() => {
                self.outbox.written(written);
                return Ok(Vec::new());
            }
            line = self.lines.next(), if listen && self.outbox.rest().len() < MAX_UNREAD_BYTES => line,
            () = until(deadline) => return Err(Broken::Silent),
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => return Err(Broken::Ended(None)),
            Err(LineError::Unfinished(start)) => return Err(Broken::Ended(Some(start))),
            Err(error @ (LineError::TooLong | LineError::Io(_))) => return Err(Broken::BadOutput(error.to_string())),
        };
        if line.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut heard = Vec::new();
        for parsed in self.parser.line(&line) {
            if parsed == Parsed::Garbage {
                self.garbage += 1;
                tracing::debug!(in_a_row = self.garbage, "a line of Claude Code's output is not JSON");
                if self.garbage >= MAX_GARBAGE {
                    let start: String = line.chars().take(200).collect();
                    let problem = format!("{MAX_GARBAGE} lines in a row are not JSON; the last one begins {start:?}");
                    return Err(Broken::BadOutput(problem));
                }
                return Ok(heard);
            }
            heard.extend(self.digest(parsed)?);
        }
        self.garbage = 0;
        Ok(heard)
    }

    /// Answers what needs nobody's decision.
    fn digest(&mut self, parsed: Parsed) -> Result<Option<Heard>, Broken> {
        Ok(Some(match parsed {
            Parsed::Event(event) => Heard::Event(event),
            Parsed::Began => Heard::Began,
            Parsed::Message { uuid, taken } => Heard::Message { uuid, taken },
            Parsed::Withdrawn { id } => Heard::Withdrawn { id },
            Parsed::Hopeless(error) => Heard::Hopeless(error),
            Parsed::Finished(finished) => Heard::Finished(finished),
            Parsed::Garbage => return Ok(None),
            Parsed::Answered { id, answer } => {
                if self.starting.as_ref().is_none_or(|(first, _)| *first != id) {
                    return Ok(Some(Heard::Answered { id, answer }));
                }
                self.starting = None;
                return answer.map(|_| None).map_err(Broken::Refused);
            }
            Parsed::Asked { id, ask, raw } => {
                if let Ask::Mcp { message, .. } = &ask {
                    self.has_seen_tools |= message["method"] == "tools/list";
                }
                match asks::react(id, ask, &self.policy, Timestamp::now()) {
                    Reaction::Say(line) => {
                        self.say(&line);
                        return Ok(None);
                    }
                    Reaction::SayAndTell(line, message) => {
                        self.say(&line);
                        let event = TurnEvent::Status { status: "elicitation_declined".into(), message };
                        Heard::Event(Reported { event, raw: Some(raw) })
                    }
                    Reaction::CallCancelled { call, say } => {
                        self.say(&say);
                        Heard::CallCancelled { call }
                    }
                    Reaction::Ask(question) => Heard::Question { question, raw },
                }
            }
        }))
    }

    /// Outside of a turn nobody can be asked, and nothing that is said belongs to anybody.
    fn overhear(&mut self, heard: Vec<Heard>) {
        for heard in heard {
            if let Heard::Question { question, .. } = heard {
                self.answer(question.to, Decision::Expired, None);
            }
        }
    }

    /// Waits until it is ready for a first prompt.
    pub async fn ready(&mut self) -> Result<(), Broken> {
        while self.starting.is_some() {
            let heard = self.next(true).await?;
            self.overhear(heard);
        }
        let enough = Instant::now() + HANDSHAKE;
        while !self.has_seen_tools || !self.outbox.is_empty() {
            match timeout_at(enough, self.next(true)).await {
                Ok(heard) => {
                    let heard = heard?;
                    self.overhear(heard);
                }
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Takes in what was said since the last turn; fails when the program has ended meanwhile.
    pub async fn catch_up(&mut self) -> Result<(), Broken> {
        while let Some(heard) = at_once(self.next(true)).await {
            let heard = heard?;
            self.overhear(heard);
        }
        Ok(())
    }

    /// Asks and waits for the answer; for use between turns.
    pub async fn inquire(&mut self, request: &Value, patience: Duration) -> Result<Result<Value, String>, Broken> {
        let asked = self.request(request);
        let deadline = Instant::now() + patience;
        loop {
            let Ok(heard) = timeout_at(deadline, self.next(true)).await else {
                return Ok(Err("it does not answer".into()));
            };
            let mut rest = Vec::new();
            for heard in heard? {
                match heard {
                    Heard::Answered { id, answer } if id == asked => return Ok(answer),
                    other => rest.push(other),
                }
            }
            self.overhear(rest);
        }
    }
}

/// What is ready now. A timeout of zero would wait for the timer's next tick, a whole millisecond.
async fn at_once<T>(awaited: impl Future<Output = T>) -> Option<T> {
    let mut awaited = pin!(awaited);
    poll_fn(|context| match awaited.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}

/// What is still to be written. Never waited for: the program may be busy writing itself.
#[derive(Default)]
struct Outbox {
    bytes: Vec<u8>,
    written: usize,
    /// The program does not read any more. Why is told by the end of its output.
    closed: bool,
}

impl Outbox {
    fn push(&mut self, line: &str) {
        if !self.closed {
            self.bytes.extend_from_slice(line.as_bytes());
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    fn written(&mut self, written: io::Result<usize>) {
        match written {
            Ok(count @ 1..) => self.written += count,
            Ok(0) | Err(_) => {
                self.closed = true;
                self.written = self.bytes.len();
            }
        }
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        }
    }
}

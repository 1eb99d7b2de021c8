//! One live conversation: writes and reads lines, and answers requests that need no decision. It works on pipes, not
//! processes, so that tests can replace the program.

use super::{
    control::ControlRequest,
    failure::Finished,
    parse::{ClaudeMessageState, ClaudeOutput, ClaudeParser},
    requests::{self, ClaudeApprovalRequest, ClaudeHostToolCall, ControlReaction, HostToolReply, PermissionReply},
    wire,
};
use crate::{
    ProviderEvent, TurnEvent,
    host_tools::{HostToolDefinition, HostToolOutcome},
};
use domain::{agent::ToolPolicy, event::Decision, run::RunError};
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
use workbench::process::{LineError, OutputLines};

/// How long the program may take to answer its first request.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait until a spare process has listed the host tools.
const TOOL_LIST_TIMEOUT: Duration = Duration::from_secs(1);
/// Above this, the program's output is not read until it has read its input.
const MAX_UNWRITTEN_BYTES: usize = 16 * 1024 * 1024;
/// Single stray lines are skipped; this many in a row mean that this is not Claude Code.
const MAX_INVALID_LINES: u32 = 20;

pub(super) struct ClaudeConversation {
    lines: OutputLines,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    unwritten: WriteBuffer,
    pub parser: ClaudeParser,
    /// The agent's current tool policy.
    pub policy: ToolPolicy,
    /// The host tools that the program is offered.
    host_tools: Vec<HostToolDefinition>,
    requests: u64,
    starting: Option<(String, Instant)>,
    has_listed_tools: bool,
    invalid_lines: u32,
}

/// An event that the owner of the conversation must handle.
#[derive(Debug)]
pub(super) enum ClaudeEvent {
    Event(ProviderEvent),
    Began,
    Message { uuid: String, state: ClaudeMessageState },
    ApprovalRequested { request: ClaudeApprovalRequest, raw: String },
    HostToolCalled { call: ClaudeHostToolCall, raw: String },
    RequestCancelled { id: String },
    CallCancelled { call: Value },
    Response { id: String, answer: Result<Value, String> },
    Hopeless(RunError),
    Finished(Finished),
}

/// Why a conversation cannot continue.
#[derive(Debug)]
pub(super) enum ClaudeConversationError {
    /// The output ended, perhaps in the middle of a line.
    Ended(Option<String>),
    BadOutput(String),
    /// The program did not answer its first request in time.
    StartTimeout,
    /// The program rejected its first request.
    StartRefused(String),
}

impl ClaudeConversation {
    /// Starts the conversation and queues the first request. Its response need not be awaited.
    pub fn new(
        lines: OutputLines,
        input: impl AsyncWrite + Send + Unpin + 'static,
        system_prompt: Option<&str>,
        host_tools: Vec<HostToolDefinition>,
    ) -> Self {
        let mut new = Self {
            lines,
            input: Box::new(input),
            unwritten: WriteBuffer::default(),
            parser: ClaudeParser::default(),
            policy: ToolPolicy::default(),
            host_tools,
            requests: 0,
            starting: None,
            has_listed_tools: false,
            invalid_lines: 0,
        };
        let id = new.send_request(&wire::initialize(system_prompt));
        new.starting = Some((id, Instant::now() + START_TIMEOUT));
        new
    }

    pub fn send(&mut self, line: &str) {
        self.unwritten.push(line);
    }

    /// Whether everything that was sent has been written.
    pub fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Returns the id of the request; the response has the same id.
    pub fn send_request(&mut self, request: &Value) -> String {
        self.requests += 1;
        let id = format!("greenroom-{}", self.requests);
        self.send(&wire::request(&id, request));
        id
    }

    pub fn send_answer(&mut self, to: PermissionReply, decision: Decision, input: Option<Value>) {
        self.send(&requests::answer_line(to, decision, input));
    }

    pub fn send_outcome(&mut self, to: &HostToolReply, outcome: &HostToolOutcome) {
        self.send(&requests::host_tool_line(to, outcome));
    }

    /// Writes pending output or, if `listen` is set, reads the next line; whichever is ready first. Cancel safe.
    pub async fn next(&mut self, listen: bool) -> Result<Vec<ClaudeEvent>, ClaudeConversationError> {
        let deadline = self.starting.as_ref().map(|(_, deadline)| *deadline);
        let line = tokio::select! {
            biased;
            written = self.input.write(self.unwritten.unwritten()), if !self.unwritten.is_empty() => {
                self.unwritten.advance(written);
                return Ok(Vec::new());
            }
            line = self.lines.next(), if listen && self.unwritten.unwritten().len() < MAX_UNWRITTEN_BYTES => line,
            () = until(deadline) => return Err(ClaudeConversationError::StartTimeout),
        };
        let line = match line {
            Ok(Some(line)) => line,
            Ok(None) => return Err(ClaudeConversationError::Ended(None)),
            Err(LineError::Unfinished(start)) => return Err(ClaudeConversationError::Ended(Some(start))),
            Err(error @ (LineError::TooLong | LineError::Io(_))) => {
                return Err(ClaudeConversationError::BadOutput(error.to_string()));
            }
        };
        if line.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut events = Vec::new();
        let mut keeps_raw = self.parser.keeps_raw;
        for mut parsed in self.parser.parse_line(&line) {
            if let ClaudeOutput::Event(event) = &mut parsed
                && std::mem::take(&mut keeps_raw)
            {
                event.raw.get_or_insert_with(|| line.clone());
            }
            if parsed == ClaudeOutput::Garbage {
                self.invalid_lines += 1;
                tracing::debug!(in_a_row = self.invalid_lines, "a line of Claude Code's output is not JSON");
                if self.invalid_lines >= MAX_INVALID_LINES {
                    let start: String = line.chars().take(200).collect();
                    let problem =
                        format!("{MAX_INVALID_LINES} lines in a row are not JSON; the last one begins {start:?}");
                    return Err(ClaudeConversationError::BadOutput(problem));
                }
                return Ok(events);
            }
            events.extend(self.handle(parsed)?);
        }
        self.invalid_lines = 0;
        Ok(events)
    }

    /// Answers requests that need no decision; returns everything else as an event.
    fn handle(&mut self, parsed: ClaudeOutput) -> Result<Option<ClaudeEvent>, ClaudeConversationError> {
        Ok(Some(match parsed {
            ClaudeOutput::Event(event) => ClaudeEvent::Event(event),
            ClaudeOutput::Began => ClaudeEvent::Began,
            ClaudeOutput::Message { uuid, state } => ClaudeEvent::Message { uuid, state },
            ClaudeOutput::RequestCancelled { id } => ClaudeEvent::RequestCancelled { id },
            ClaudeOutput::Hopeless(error) => ClaudeEvent::Hopeless(error),
            ClaudeOutput::Finished(finished) => ClaudeEvent::Finished(finished),
            ClaudeOutput::Garbage => return Ok(None),
            ClaudeOutput::Response { id, answer } => {
                if self.starting.as_ref().is_none_or(|(first, _)| *first != id) {
                    return Ok(Some(ClaudeEvent::Response { id, answer }));
                }
                self.starting = None;
                return answer.map(|_| None).map_err(ClaudeConversationError::StartRefused);
            }
            ClaudeOutput::Request { id, request: ask, raw } => {
                if let ControlRequest::Mcp { message, .. } = &ask {
                    self.has_listed_tools |= message["method"] == "tools/list";
                }
                match requests::react(id, ask, &self.policy, &self.host_tools) {
                    ControlReaction::Reply(line) => {
                        self.send(&line);
                        return Ok(None);
                    }
                    ControlReaction::ReplyAndReport(line, message) => {
                        self.send(&line);
                        let event = TurnEvent::Status { status: "elicitation_declined".into(), message };
                        ClaudeEvent::Event(ProviderEvent { event, raw: Some(raw) })
                    }
                    ControlReaction::CallCancelled { call, reply: say } => {
                        self.send(&say);
                        ClaudeEvent::CallCancelled { call }
                    }
                    ControlReaction::RequestApproval(question) => {
                        ClaudeEvent::ApprovalRequested { request: question, raw }
                    }
                    ControlReaction::CallHostTool(call) => ClaudeEvent::HostToolCalled { call, raw },
                }
            }
        }))
    }

    /// Handles events outside of a turn: approval requests expire, host tools fail, and everything else is dropped.
    fn expire_requests(&mut self, events: Vec<ClaudeEvent>) {
        for event in events {
            match event {
                ClaudeEvent::ApprovalRequested { request, .. } => {
                    self.send_answer(request.reply_to, Decision::Expired, None);
                }
                ClaudeEvent::HostToolCalled { call, .. } => {
                    let outcome = HostToolOutcome::error("The tool was not called: no turn is running.");
                    self.send_outcome(&call.reply_to, &outcome);
                }
                _ => {}
            }
        }
    }

    /// Waits until the program is ready for its first prompt.
    pub async fn wait_until_ready(&mut self) -> Result<(), ClaudeConversationError> {
        while self.starting.is_some() {
            let events = self.next(true).await?;
            self.expire_requests(events);
        }
        let enough = Instant::now() + TOOL_LIST_TIMEOUT;
        while !self.has_listed_tools || !self.unwritten.is_empty() {
            match timeout_at(enough, self.next(true)).await {
                Ok(events) => {
                    let events = events?;
                    self.expire_requests(events);
                }
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Handles the output since the last turn. Fails if the program has exited.
    pub async fn drain(&mut self) -> Result<(), ClaudeConversationError> {
        while let Some(events) = poll_once(self.next(true)).await {
            let events = events?;
            self.expire_requests(events);
        }
        Ok(())
    }

    /// Sends a request and waits for the response; for use between turns.
    pub async fn request_and_wait(
        &mut self,
        request: &Value,
        timeout: Duration,
    ) -> Result<Result<Value, String>, ClaudeConversationError> {
        let asked = self.send_request(request);
        let deadline = Instant::now() + timeout;
        loop {
            let Ok(events) = timeout_at(deadline, self.next(true)).await else {
                return Ok(Err("no answer in time".into()));
            };
            let mut rest = Vec::new();
            for event in events? {
                match event {
                    ClaudeEvent::Response { id, answer } if id == asked => return Ok(answer),
                    other => rest.push(other),
                }
            }
            self.expire_requests(rest);
        }
    }
}

/// Polls a future once. A timeout of zero would wait for the timer's next tick, a whole millisecond.
async fn poll_once<T>(awaited: impl Future<Output = T>) -> Option<T> {
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

/// Output that is not written yet. Callers never wait for it, because the program may be blocked on its own output.
#[derive(Default)]
struct WriteBuffer {
    bytes: Vec<u8>,
    written: usize,
    /// The program no longer reads its input. The end of its output tells why.
    closed: bool,
}

impl WriteBuffer {
    fn push(&mut self, line: &str) {
        if !self.closed {
            self.bytes.extend_from_slice(line.as_bytes());
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    fn advance(&mut self, written: io::Result<usize>) {
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

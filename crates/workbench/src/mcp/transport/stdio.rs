//! Transport to a program by lines on stdin and stdout. The program runs in its own kill domain, so its descendants end
//! with it.

use super::EndReason;
use crate::{
    mcp::{
        health::McpServerHealth,
        lines::{BoundedLine, BoundedLineReader},
        server_message,
    },
    outside::OutsideSource,
    process::{LaunchedProcess, ProcessHandle, ProgramExit, StderrTail, StopTimeouts},
};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorCode, ErrorData, ServerJsonRpcMessage},
    transport::Transport,
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::{Mutex, Notify},
    time::{Instant, sleep_until, timeout},
};

/// A program that does not read its input for this long is considered hung.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for the exit of the program after the end of its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_EXCERPT_CHARS: usize = 300;

pub struct StdioTransport {
    lines: BoundedLineReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// Shared with pending sends; `None` when closed.
    input: Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>,
    /// Notified when a write fails. The reason is reported by `receive`, not by `send`.
    unwritable: Arc<Notify>,
    /// When to stop waiting for output.
    read_deadline: Option<Instant>,
    handle: Option<Box<dyn ProcessHandle>>,
    stderr: StderrTail,
    process_id: i32,
    health: Arc<McpServerHealth>,
    ending: EndReason,
    stop_timeouts: StopTimeouts,
}

impl StdioTransport {
    /// `close` is the timeout for the whole stop.
    pub fn new(program: LaunchedProcess, health: Arc<McpServerHealth>, ending: EndReason, close: Duration) -> Self {
        let LaunchedProcess { stdin, stdout, handle } = program;
        Self {
            lines: BoundedLineReader::new(Box::new(stdout.into_reader())),
            input: Arc::new(Mutex::new(Some(stdin))),
            unwritable: Arc::default(),
            read_deadline: None,
            stderr: handle.stderr().clone(),
            process_id: handle.process_id(),
            handle: Some(handle),
            health,
            ending,
            stop_timeouts: StopTimeouts { after_input_closed: close / 2, after_sigterm: close / 4 },
        }
    }

    pub fn stderr(&self) -> StderrTail {
        self.stderr.clone()
    }

    pub fn process_id(&self) -> i32 {
        self.process_id
    }

    async fn record_end(&mut self, read: io::Result<()>) {
        let ended = match &mut self.handle {
            Some(handle) => timeout(EXIT_TIMEOUT, handle.wait()).await.ok(),
            None => None,
        };
        let how = match (read, ended) {
            (Err(error), _) => format!("its output could not be read: {error}"),
            (Ok(()), None) => "it closed its output".to_owned(),
            (Ok(()), Some(ProgramExit::Code(code))) => format!("it ended with exit code {code}"),
            (Ok(()), Some(ProgramExit::Signal(signal))) => format!("it was killed by signal {signal}"),
            (Ok(()), Some(ProgramExit::Unknown)) => "it ended".to_owned(),
        };
        let reason = match stderr_excerpt(&self.stderr) {
            Some(excerpt) => format!("{how}; stderr ends with: {excerpt}"),
            None => how,
        };
        self.health.record_error(&reason);
        self.ending.set(reason);
    }
}

/// Returns the end of stderr on one line, or `None` if it is empty.
pub fn stderr_excerpt(stderr: &StderrTail) -> Option<String> {
    let tail = stderr.text();
    let text: Vec<&str> = tail.split_whitespace().collect();
    let text = text.join(" ");
    let skipped = text.chars().count().saturating_sub(MAX_EXCERPT_CHARS);
    let text: String = text.chars().skip(skipped).collect();
    (!text.is_empty()).then(|| if skipped > 0 { format!("…{text}") } else { text })
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (input, unwritable) = (Arc::clone(&self.input), Arc::clone(&self.unwritable));
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let Some(pipe) = input.as_mut() else { return Ok(()) };
            let written = timeout(WRITE_TIMEOUT, async {
                pipe.write_all(&line).await?;
                pipe.flush().await
            });
            if !matches!(written.await, Ok(Ok(()))) {
                // Part of the line may have been written, so the server could not parse anything after it.
                *input = None;
                unwritable.notify_one();
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line,
                () = self.unwritable.notified() => {
                    self.read_deadline.get_or_insert(Instant::now() + EXIT_TIMEOUT);
                    continue;
                }
                () = deadline_passed(self.read_deadline) => Ok(None),
            };
            match line {
                Ok(Some(BoundedLine::Text(line))) if line.trim().is_empty() => {}
                Ok(Some(BoundedLine::Text(line))) => match server_message::parse(&line) {
                    Some(message) => return Some(message),
                    None => self.health.record_noise(&line),
                },
                Ok(Some(BoundedLine::TooLong { bytes, start, end })) => {
                    let what = OutsideSource::McpProgramLine.too_long_error(bytes);
                    self.health.record_error(&what);
                    if let Some(id) = server_message::request_id_of(&start, &end) {
                        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, what, None);
                        return Some(ServerJsonRpcMessage::error(error, Some(id)));
                    }
                }
                Ok(None) => {
                    self.record_end(Ok(())).await;
                    return None;
                }
                Err(error) => {
                    self.record_end(Err(error)).await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.ending.set("it was stopped");
        // A blocked send may hold the input; it is released when the program ends.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
        if let Some(handle) = self.handle.take() {
            handle.stop(self.stop_timeouts).await;
        }
        Ok(())
    }
}

async fn deadline_passed(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

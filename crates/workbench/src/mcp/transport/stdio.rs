//! A program that speaks in lines. It runs in a kill domain of its own, so that what it starts ends with it.

use super::Ending;
use crate::{
    mcp::{
        health::Health,
        lines::{Line, LineReader, MAX_LINE_BYTES},
        wire,
    },
    process::{Child, Ended, Handle, Patience, Stderr},
};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ErrorCode, ErrorData, ServerJsonRpcMessage},
    transport::Transport,
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWriteExt as _},
    process::ChildStdin,
    sync::{Mutex, Notify},
    time::{Instant, sleep_until, timeout},
};

/// A program that does not read what it is sent for so long will not read the rest either.
const WRITE: Duration = Duration::from_secs(60);
/// The end of the output and the end of the program come as two pieces of news.
const END: Duration = Duration::from_secs(1);
const LAST_WORDS_CHARS: usize = 300;

pub struct Stdio {
    lines: LineReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// Shared with the messages under way; `None` when it is closed.
    input: Arc<Mutex<Option<ChildStdin>>>,
    /// Rung when it does not take its input any more. Why is heard on its output, so nobody else is told.
    unwritable: Arc<Notify>,
    /// When its output is not waited for any longer.
    until: Option<Instant>,
    handle: Option<Handle>,
    stderr: Stderr,
    process_id: i32,
    health: Arc<Health>,
    ending: Ending,
    patience: Patience,
}

impl Stdio {
    /// `close` is for the whole of its end.
    pub fn new(child: Child, health: Arc<Health>, ending: Ending, close: Duration) -> Self {
        let Child { stdin, stdout, handle } = child;
        Self {
            lines: LineReader::new(Box::new(stdout.into_reader())),
            input: Arc::new(Mutex::new(Some(stdin))),
            unwritable: Arc::default(),
            until: None,
            stderr: handle.stderr().clone(),
            process_id: handle.id(),
            handle: Some(handle),
            health,
            ending,
            patience: Patience { input_closed: close / 2, terminated: close / 4 },
        }
    }

    pub fn stderr(&self) -> Stderr {
        self.stderr.clone()
    }

    pub fn process_id(&self) -> i32 {
        self.process_id
    }

    async fn note_end(&mut self, read: io::Result<()>) {
        let ended = match &mut self.handle {
            Some(handle) => timeout(END, handle.ended()).await.ok(),
            None => None,
        };
        let how = match (read, ended) {
            (Err(error), _) => format!("its output cannot be read: {error}"),
            (Ok(()), None) => "it closed its output".to_owned(),
            (Ok(()), Some(Ended::Code(code))) => format!("it ended with exit code {code}"),
            (Ok(()), Some(Ended::Signal(signal))) => format!("it was ended by signal {signal}"),
            (Ok(()), Some(Ended::Unknown)) => "it ended".to_owned(),
        };
        let reason = match last_words(&self.stderr) {
            Some(words) => format!("{how}; its last words: {words}"),
            None => how,
        };
        self.health.error(&reason);
        self.ending.set(reason);
    }
}

/// The end of what it wrote to its standard error, on one line.
pub fn last_words(stderr: &Stderr) -> Option<String> {
    let tail = stderr.tail();
    let words: Vec<&str> = tail.split_whitespace().collect();
    let words = words.join(" ");
    let skipped = words.chars().count().saturating_sub(LAST_WORDS_CHARS);
    let words: String = words.chars().skip(skipped).collect();
    (!words.is_empty()).then(|| if skipped > 0 { format!("…{words}") } else { words })
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (input, unwritable) = (Arc::clone(&self.input), Arc::clone(&self.unwritable));
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let Some(pipe) = input.as_mut() else { return Ok(()) };
            let written = timeout(WRITE, async {
                pipe.write_all(&line).await?;
                pipe.flush().await
            });
            if !matches!(written.await, Ok(Ok(()))) {
                // Half a line may have gone out; nothing that follows would be understood.
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
                    self.until.get_or_insert(Instant::now() + END);
                    continue;
                }
                () = over(self.until) => Ok(None),
            };
            match line {
                Ok(Some(Line::Text(line))) if line.trim().is_empty() => {}
                Ok(Some(Line::Text(line))) => match wire::read(&line) {
                    Some(message) => return Some(message),
                    None => self.health.noise(&line),
                },
                Ok(Some(Line::TooLong { bytes, start, end })) => {
                    let what = too_long(bytes);
                    self.health.error(&what);
                    if let Some(id) = wire::owner_of(&start, &end) {
                        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, what, None);
                        return Some(ServerJsonRpcMessage::error(error, Some(id)));
                    }
                }
                Ok(None) => {
                    self.note_end(Ok(())).await;
                    return None;
                }
                Err(error) => {
                    self.note_end(Err(error)).await;
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.ending.set("it was stopped");
        // A message that nobody reads may hold the input; the end of the program sets it free.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
        if let Some(handle) = self.handle.take() {
            handle.stop(self.patience).await;
        }
        Ok(())
    }
}

async fn over(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

pub fn too_long(bytes: usize) -> String {
    const MB: usize = 1024 * 1024;
    format!(
        "the server sent a message of {} MB; more than {} MB are not taken",
        bytes.div_ceil(MB),
        MAX_LINE_BYTES / MB
    )
}

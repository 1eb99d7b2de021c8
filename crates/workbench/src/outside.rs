//! What others send is read with a bound, where it enters: answers of MCP servers and model APIs, and the output of
//! programs. [`OutsideSource`] is the list of them; a test sends each more than its bound.

use std::{fmt, ops::Deref};

const KB: usize = 1024;
const MB: usize = 1024 * KB;

/// Bytes that somebody else chooses, and how many of them are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutsideSource {
    /// The body of an answer to a message over streamable HTTP.
    McpHttpAnswer,
    /// One event of an event stream over streamable HTTP.
    McpHttpEvent,
    /// The body of an HTTP error of an MCP server.
    McpHttpError,
    /// One event of the older HTTP+SSE transport.
    McpSseEvent,
    /// One line of a stdio MCP server.
    McpProgramLine,
    /// One line of an agent's program.
    ProgramLine,
    /// The standard error of any program. The end is kept.
    ProgramStderr,
    /// One event of a model's answer.
    ModelEvent,
    /// The body of an HTTP error of a model API. The beginning is read.
    ModelError,
    /// The list of the models of a model API.
    ModelList,
}

impl OutsideSource {
    pub const ALL: [Self; 10] = [
        Self::McpHttpAnswer,
        Self::McpHttpEvent,
        Self::McpHttpError,
        Self::McpSseEvent,
        Self::McpProgramLine,
        Self::ProgramLine,
        Self::ProgramStderr,
        Self::ModelEvent,
        Self::ModelError,
        Self::ModelList,
    ];

    pub const fn max_bytes(self) -> usize {
        match self {
            // Tool results come as one message; a longer one means that the sender is broken.
            Self::McpHttpAnswer | Self::McpHttpEvent | Self::McpSseEvent | Self::McpProgramLine | Self::ProgramLine => {
                16 * MB
            }
            // Far more than any event of a vendor.
            Self::ModelEvent => 8 * MB,
            // Routers list hundreds of models, each with a description.
            Self::ModelList => 4 * MB,
            Self::McpHttpError | Self::ModelError => 64 * KB,
            Self::ProgramStderr => 16 * KB,
        }
    }

    /// The text of the error for a message that is longer than the bound. `bytes` is a lower limit of its length.
    pub fn too_long_error(self, bytes: usize) -> String {
        format!("the server sent a message of {} MB; the limit is {} MB", bytes.div_ceil(MB), self.max_bytes() / MB)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("{}", .0.too_long_error(.0.max_bytes() + 1))]
    TooLong(OutsideSource),
    #[error(transparent)]
    Http(#[from] reqwest::Error),
}

/// Reads a whole body. One that is too long is an error; the rest of it is not read.
pub async fn read_body(mut response: reqwest::Response, source: OutsideSource) -> Result<Vec<u8>, BodyError> {
    let max = source.max_bytes();
    if response.content_length().is_some_and(|length| length > max as u64) {
        return Err(BodyError::TooLong(source));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max {
            return Err(BodyError::TooLong(source));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Reads the beginning of a body, as much as the bound allows, until an error.
pub async fn read_body_start(mut response: reqwest::Response, source: OutsideSource) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(source.max_bytes() - body.len())]);
        if body.len() == source.max_bytes() {
            break;
        }
    }
    body
}

/// Counts the bytes of each event of an event stream that another parser collects. Comments do not count.
#[derive(Debug)]
pub struct EventSizeLimit {
    max: usize,
    event: usize,
    line: usize,
    is_comment: bool,
    after_return: bool,
}

impl EventSizeLimit {
    pub fn new(max: usize) -> Self {
        Self { max, event: 0, line: 0, is_comment: false, after_return: false }
    }

    /// Returns whether the event is still within its bound after these bytes.
    pub fn allows(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    self.end_line();
                }
                _ => {
                    self.after_return = false;
                    self.is_comment = if self.line == 0 { *byte == b':' } else { self.is_comment };
                    self.line += 1;
                }
            }
            if self.event + self.line > self.max {
                return false;
            }
        }
        true
    }

    fn end_line(&mut self) {
        match std::mem::take(&mut self.line) {
            0 => self.event = 0,
            _ if self.is_comment => {}
            line => self.event += line + 1,
        }
    }
}

/// The text of an error that may quote somebody else: cut where it is made, so that nobody repeats a whole answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ErrorText(String);

impl ErrorText {
    pub const MAX_CHARS: usize = 500;
}

impl From<&str> for ErrorText {
    fn from(text: &str) -> Self {
        Self(match text.char_indices().nth(Self::MAX_CHARS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        })
    }
}

impl From<String> for ErrorText {
    fn from(text: String) -> Self {
        if text.len() <= Self::MAX_CHARS { Self(text) } else { text.as_str().into() }
    }
}

impl Deref for ErrorText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorText, EventSizeLimit};

    #[test]
    fn h4_an_error_text_is_cut_where_it_is_made() {
        assert_eq!(&*ErrorText::from("short"), "short");
        let cut = ErrorText::from("ä".repeat(10_000));
        assert_eq!(cut.chars().count(), ErrorText::MAX_CHARS + 1);
        assert!(cut.ends_with('…'));
    }

    #[test]
    fn h4_an_event_is_counted_across_chunks_and_comments_are_not() {
        let mut limit = EventSizeLimit::new(10);
        for chunk in ["data: a\r", "\n\r\n", ": one\n", ": two\n", ": three\n", "data: b\n\n", "data: 2"] {
            assert!(limit.allows(chunk.as_bytes()), "{chunk:?}");
        }
        assert!(!limit.allows(b"3456789"));
        let mut limit = EventSizeLimit::new(10);
        assert!(limit.allows(b"data: a\n") && !limit.allows(b"data: b\n"), "the lines of one event count together");
    }
}

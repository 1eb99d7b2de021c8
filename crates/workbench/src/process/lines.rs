//! Reads a program's output line by line, with a limit on the length of a line.

use crate::outside::OutsideSource;
use std::io;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

pub const MAX_LINE_BYTES: usize = OutsideSource::ProgramLine.max_bytes();

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("the program sent a line longer than {} MB", MAX_LINE_BYTES / 1024 / 1024)]
    TooLong,
    #[error("the program ended in the middle of a line: {0}")]
    Unfinished(String),
    #[error("could not read the program's output: {0}")]
    Io(#[from] io::Error),
}

pub struct OutputLines {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// The part of the next line that was read. Kept here, so that `next` is cancel safe.
    partial: Vec<u8>,
}

impl OutputLines {
    pub fn new(output: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, Box::new(output)), partial: Vec::new() }
    }

    /// Returns the raw output, for callers that split lines themselves. A partly read line is lost.
    pub fn into_reader(self) -> impl AsyncRead + Send + Unpin + 'static {
        self.reader
    }

    /// Returns the next line without its line end, or `None` at the end. Invalid UTF-8 is replaced. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<String>, LineError> {
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                return match std::mem::take(&mut self.partial) {
                    rest if rest.trim_ascii().is_empty() => Ok(None),
                    rest => Err(LineError::Unfinished(start_of(&rest))),
                };
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let (taken, used) = end.map_or((buffer, buffer.len()), |at| (&buffer[..at], at + 1));
            if self.partial.len() + taken.len() > MAX_LINE_BYTES {
                return Err(LineError::TooLong);
            }
            self.partial.extend_from_slice(taken);
            self.reader.consume(used);
            if end.is_some() {
                let mut line = std::mem::take(&mut self.partial);
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(Some(match String::from_utf8(line) {
                    Ok(line) => line,
                    Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
                }));
            }
        }
    }
}

fn start_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{LineError, MAX_LINE_BYTES, OutputLines};
    use std::io::Cursor;

    #[tokio::test]
    async fn lines_are_returned_without_line_ends() {
        let mut lines = OutputLines::new(Cursor::new(b"one\r\ntwo\n\nthree\n".to_vec()));
        for expected in ["one", "two", "", "three"] {
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_unfinished_last_line_is_an_error_that_quotes_it() {
        let mut lines = OutputLines::new(Cursor::new(b"{\"type\":".to_vec()));
        assert!(matches!(lines.next().await, Err(LineError::Unfinished(start)) if start == "{\"type\":"));
    }

    #[tokio::test]
    async fn invariant_14_limits_an_endless_line_is_rejected() {
        let mut lines = OutputLines::new(Cursor::new(vec![b'x'; MAX_LINE_BYTES + 1]));
        assert!(matches!(lines.next().await, Err(LineError::TooLong)));
    }

    #[tokio::test]
    async fn invalid_utf8_is_replaced() {
        let mut lines = OutputLines::new(Cursor::new(b"a\xffb\n".to_vec()));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("a\u{fffd}b"));
    }
}

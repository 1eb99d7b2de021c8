//! Lines of a program's output, with an end to how long one may be.

use std::io;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Tool results come as one line; beyond this it is a program gone wrong.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("the program sent a line of more than {} MB", MAX_LINE_BYTES / 1024 / 1024)]
    TooLong,
    #[error("the program ended in the middle of a line: {0}")]
    Unfinished(String),
    #[error("the program's output cannot be read: {0}")]
    Io(#[from] io::Error),
}

pub struct Lines {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    /// What of the next line has come. Kept here, so that a caller may stop waiting in the middle of one.
    partial: Vec<u8>,
}

impl Lines {
    pub fn new(output: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, Box::new(output)), partial: Vec::new() }
    }

    /// The output itself, for those who have rules of their own for lines. Whatever of a line was read stays behind.
    pub fn into_reader(self) -> impl AsyncRead + Send + Unpin + 'static {
        self.reader
    }

    /// The next line without its end; `None` when there are no more. Broken UTF-8 is replaced. Cancel safe.
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
    use super::{LineError, Lines, MAX_LINE_BYTES};
    use std::io::Cursor;

    #[tokio::test]
    async fn lines_come_without_their_ends() {
        let mut lines = Lines::new(Cursor::new(b"one\r\ntwo\n\nthree\n".to_vec()));
        for expected in ["one", "two", "", "three"] {
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn half_a_line_at_the_end_is_an_error_that_shows_it() {
        let mut lines = Lines::new(Cursor::new(b"{\"type\":".to_vec()));
        assert!(matches!(lines.next().await, Err(LineError::Unfinished(start)) if start == "{\"type\":"));
    }

    #[tokio::test]
    async fn invariant_14_limits_a_line_without_end_is_refused() {
        let mut lines = Lines::new(Cursor::new(vec![b'x'; MAX_LINE_BYTES + 1]));
        assert!(matches!(lines.next().await, Err(LineError::TooLong)));
    }

    #[tokio::test]
    async fn broken_text_is_replaced_not_lost() {
        let mut lines = Lines::new(Cursor::new(b"a\xffb\n".to_vec()));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("a\u{fffd}b"));
    }
}

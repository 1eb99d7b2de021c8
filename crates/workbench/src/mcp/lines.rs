//! Reads a server's output line by line. A line that is too long is skipped, so that other calls continue; its start
//! and end are kept to find out which request it answers.

use crate::outside::OutsideSource;
use std::io;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// How much is kept of the start and the end of a line that is too long.
const EDGE_BYTES: usize = 512;

#[derive(Debug, PartialEq, Eq)]
pub enum BoundedLine {
    Text(String),
    TooLong { bytes: usize, start: String, end: String },
}

pub struct BoundedLineReader<R> {
    reader: BufReader<R>,
    partial: Vec<u8>,
    /// How many bytes were dropped between the start and the end in `partial`.
    dropped: usize,
    max: usize,
}

impl<R: AsyncRead + Unpin> BoundedLineReader<R> {
    pub fn new(output: R) -> Self {
        Self::with_limit(output, OutsideSource::McpProgramLine.max_bytes())
    }

    fn with_limit(output: R, max: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, output), partial: Vec::new(), dropped: 0, max }
    }

    /// Returns `None` at the end; an unfinished last line is dropped. Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<BoundedLine>> {
        loop {
            let buffer = self.reader.fill_buf().await?;
            if buffer.is_empty() {
                return Ok(None);
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let (taken, used) = end.map_or((buffer, buffer.len()), |at| (&buffer[..at], at + 1));
            self.partial.extend_from_slice(taken);
            self.reader.consume(used);
            if self.dropped > 0 || self.partial.len() > self.max {
                self.shorten();
            }
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn shorten(&mut self) {
        if let Some(over) = self.partial.len().checked_sub(2 * EDGE_BYTES) {
            self.partial.drain(EDGE_BYTES..EDGE_BYTES + over);
            self.partial.shrink_to(64 * 1024);
            self.dropped += over;
        }
    }

    fn take(&mut self) -> BoundedLine {
        let line = std::mem::take(&mut self.partial);
        match std::mem::take(&mut self.dropped) {
            0 => BoundedLine::Text(match String::from_utf8(line) {
                Ok(line) => line,
                Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
            }),
            dropped => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (start, end) = line.split_at(EDGE_BYTES.min(line.len()));
                BoundedLine::TooLong {
                    bytes: line.len() + dropped,
                    start: text(start),
                    end: text(end.trim_ascii_end()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BoundedLine, BoundedLineReader, EDGE_BYTES};
    use std::io::Cursor;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let long = format!("{}{}{}", "a".repeat(EDGE_BYTES), "b".repeat(300_000), "c".repeat(EDGE_BYTES));
        let text = format!("one\n{long}\ntwo\r\nhalf");
        let mut lines = BoundedLineReader::with_limit(Cursor::new(text), 100_000);
        assert_eq!(lines.next().await.unwrap(), Some(BoundedLine::Text("one".into())));
        let expected =
            BoundedLine::TooLong { bytes: long.len(), start: "a".repeat(EDGE_BYTES), end: "c".repeat(EDGE_BYTES) };
        assert_eq!(lines.next().await.unwrap(), Some(expected));
        assert_eq!(lines.next().await.unwrap(), Some(BoundedLine::Text("two\r".into())));
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn invariant_14_limits_a_line_is_kept_up_to_its_limit() {
        let mut lines =
            BoundedLineReader::with_limit(Cursor::new(format!("{}\n{}\n", "x".repeat(2000), "y".repeat(2001))), 2000);
        assert!(matches!(lines.next().await.unwrap(), Some(BoundedLine::Text(text)) if text.len() == 2000));
        assert!(matches!(lines.next().await.unwrap(), Some(BoundedLine::TooLong { bytes: 2001, .. })));
    }
}

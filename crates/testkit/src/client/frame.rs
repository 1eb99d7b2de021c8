//! Bytes in, SSE frames out. Pure and incremental: a frame may be split anywhere, even inside a character.

use super::TestClientError;

/// Limits memory if the server sends an endless line.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedFrame {
    pub id: Option<String>,
    pub event: Option<String>,
    pub data: String,
}

#[derive(Debug, Default)]
pub struct ReceivedFrameParser {
    pending: Vec<u8>,
    /// How far `pending` was searched for a line end.
    searched: usize,
    frame: ReceivedFrame,
    has_fields: bool,
    has_data: bool,
    after_carriage_return: bool,
    started: bool,
}

impl ReceivedFrameParser {
    /// Takes the next bytes of the body and appends the frames they complete.
    pub fn push(&mut self, bytes: &[u8], frames: &mut Vec<ReceivedFrame>) -> Result<(), TestClientError> {
        self.pending.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = self.pending[self.searched..].iter().position(|&b| b == b'\n' || b == b'\r') {
            let end = self.searched + length;
            let is_second_half = self.after_carriage_return && self.pending[end] == b'\n' && end == begin;
            self.after_carriage_return = self.pending[end] == b'\r';
            self.searched = end + 1;
            if !is_second_half {
                let line = std::mem::take(&mut self.pending);
                let result = self.line(&line[begin..end], frames);
                self.pending = line;
                result?;
            }
            begin = end + 1;
        }
        self.pending.drain(..begin);
        self.searched = self.pending.len();
        if self.pending.len() + self.frame.data.len() > MAX_FRAME_BYTES {
            return Err(TestClientError::unexpected(format!("an SSE frame of more than {MAX_FRAME_BYTES} bytes")));
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8], frames: &mut Vec<ReceivedFrame>) -> Result<(), TestClientError> {
        let line =
            std::str::from_utf8(line).map_err(|error| TestClientError::unexpected(format!("an SSE line: {error}")))?;
        let line = if self.started { line } else { line.strip_prefix('\u{feff}').unwrap_or(line) };
        self.started = true;
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            if self.has_fields {
                frames.push(frame);
            }
            self.has_fields = false;
            self.has_data = false;
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.frame.id = Some(value.to_owned()),
            "event" => self.frame.event = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.frame.data.push('\n');
                }
                self.has_data = true;
                self.frame.data.push_str(value);
            }
            _ => return Ok(()),
        }
        self.has_fields = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ReceivedFrame, ReceivedFrameParser};

    fn frames(chunks: &[&[u8]]) -> Vec<ReceivedFrame> {
        let mut parser = ReceivedFrameParser::default();
        let mut out = Vec::new();
        for chunk in chunks {
            parser.push(chunk, &mut out).unwrap();
        }
        out
    }

    fn frame(id: Option<&str>, event: Option<&str>, data: &str) -> ReceivedFrame {
        ReceivedFrame { id: id.map(Into::into), event: event.map(Into::into), data: data.into() }
    }

    #[test]
    fn frames_are_parsed_at_any_split() {
        let text = "\u{feff}: hello\n\nid: e-1\nevent: a\ndata: {\"x\":\"é\"}\n\nevent:b\r\ndata:one\r\ndata: two\r\n\r\ndata\r\rretry: 5\n\ndata: cut";
        let expected =
            [frame(Some("e-1"), Some("a"), "{\"x\":\"é\"}"), frame(None, Some("b"), "one\ntwo"), frame(None, None, "")];
        assert_eq!(frames(&[text.as_bytes()]), expected);
        for size in 1..7 {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(frames(&chunks), expected, "{size} bytes at a time");
        }
    }

    #[test]
    fn unfinished_frames_are_not_returned() {
        assert_eq!(frames(&[b"id: 1\ndata: x\n"]), []);
    }
}

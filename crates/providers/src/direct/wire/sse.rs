//! Server-sent events: bytes in, frames out. Bytes may be split anywhere; a frame has a bound.

/// No vendor's frame is near this long.
const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frame {
    pub event: String,
    pub data: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an event of the stream is longer than {MAX_FRAME_BYTES} bytes")]
pub struct TooLong;

#[derive(Debug, Default)]
pub struct Frames {
    /// The line so far.
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    has_begun: bool,
}

impl Frames {
    pub fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLong> {
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\r' | b'\n' => self.line_ends(frames),
                byte => self.line.push(byte),
            }
            if self.line.len() + self.frame.data.len() > MAX_FRAME_BYTES {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    fn line_ends(&mut self, frames: &mut Vec<Frame>) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.has_begun { &line } else { line.strip_prefix('\u{feff}').unwrap_or(&line) };
        self.has_begun = true;
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            if std::mem::take(&mut self.has_data) {
                frames.push(frame);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.frame.event = value.to_owned(),
            "data" => {
                if self.has_data {
                    self.frame.data.push('\n');
                }
                self.has_data = true;
                self.frame.data.push_str(value);
            }
            // Comments, ids and delays are of no use here.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Frames, MAX_FRAME_BYTES, TooLong};

    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Frame> {
        let (mut parser, mut frames) = (Frames::default(), Vec::new());
        for piece in pieces {
            parser.push(piece, &mut frames).unwrap();
        }
        frames
    }

    const STREAM: &str = "\u{feff}: hello\r\nevent: a\r\ndata: {\"t\":\"grün\"}\r\nid: 7\r\n\r\ndata:one\ndata: two\n\n\
                          event: no data\n\ndata\n\nretry: 5\rdata: three\r\rdata: unfinished";

    #[test]
    fn every_split_gives_the_same() {
        let bytes = STREAM.as_bytes();
        let whole = read([bytes]);
        let data: Vec<&str> = whole.iter().map(|frame| frame.data.as_str()).collect();
        assert_eq!(data, ["{\"t\":\"grün\"}", "one\ntwo", "", "three"]);
        assert_eq!((whole[0].event.as_str(), whole[1].event.as_str()), ("a", ""));
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                assert_eq!(read([&bytes[..first], &bytes[first..second], &bytes[second..]]), whole, "{first} {second}");
            }
        }
        assert_eq!(read(bytes.chunks(1)), whole);
    }

    #[test]
    fn a_frame_without_end_is_given_up() {
        let (mut parser, mut frames) = (Frames::default(), Vec::new());
        let block = [b'x'; 1 << 16];
        let mut told = Ok(());
        for _ in 0..=MAX_FRAME_BYTES / block.len() {
            told = told.and_then(|()| parser.push(&block, &mut frames));
        }
        assert_eq!((told, frames.len()), (Err(TooLong), 0));
    }
}

//! Counts the tokens in a stream of SSE frames, and makes sure that none is missing or doubled.
//!
//! Tokens, not frames: the server joins neighbouring deltas into one event, a baseline does not. Both count `1 2 3 …`.

use anyhow::ensure;

const DELTA: &str = "\"delta\":\"";

#[derive(Debug, Default)]
pub struct Tokens {
    /// The last number that was said.
    pub count: u32,
    pending: Vec<u8>,
}

impl Tokens {
    pub fn take(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        };
        let (whole, begun) = bytes.split_at(end);
        if self.pending.is_empty() {
            self.lines(std::str::from_utf8(whole)?)?;
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(whole);
            self.lines(std::str::from_utf8(&pending)?)?;
            pending.clear();
            self.pending = pending;
        }
        self.pending.extend_from_slice(begun.strip_prefix(b"\n").unwrap_or(begun));
        Ok(())
    }

    fn lines(&mut self, text: &str) -> anyhow::Result<()> {
        let mut rest = text;
        while let Some(position) = rest.find(DELTA) {
            rest = &rest[position + DELTA.len()..];
            let (words, after) = rest.split_once('"').unwrap_or((rest, ""));
            for word in words.split_ascii_whitespace() {
                let number: u32 = word.parse()?;
                ensure!(number == self.count + 1, "{number} came after {}", self.count);
                self.count = number;
            }
            rest = after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn counts_words_however_they_are_cut() {
        let text = "id: 1\ndata: {\"delta\":\"1\"}\n\n: hi\nid: 2\ndata: {\"data\":{\"delta\":\" 2 3\"},\"x\":\"4\"}\n\ndata: {\"delta\":\" 4\"}\n\n";
        for size in 1..text.len() {
            let mut tokens = Tokens::default();
            for part in text.as_bytes().chunks(size) {
                tokens.take(part).unwrap();
            }
            assert_eq!(tokens.count, 4, "{size}");
        }
    }

    #[test]
    fn notices_what_is_missing_or_doubled() {
        assert!(Tokens::default().take(b"data: {\"delta\":\"1 3\"}\n").is_err());
        assert!(Tokens::default().take(b"data: {\"delta\":\"1 1\"}\n").is_err());
    }
}

//! Counts the tokens in a stream of SSE frames and checks that none is missing or duplicated.
//!
//! It counts tokens, not frames: the server joins adjacent deltas into one event, a baseline does not. Both send `1 2 3
//! …`.

use anyhow::ensure;

const DELTA: &str = "\"delta\":\"";

#[derive(Debug, Default)]
pub struct TokenCounter {
    /// The last number received.
    pub count: u32,
    pending: Vec<u8>,
}

impl TokenCounter {
    pub fn push(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
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
    use super::TokenCounter;

    #[test]
    fn counts_words_at_any_split() {
        let text = "id: 1\ndata: {\"delta\":\"1\"}\n\n: hi\nid: 2\ndata: {\"data\":{\"delta\":\" 2 3\"},\"x\":\"4\"}\n\ndata: {\"delta\":\" 4\"}\n\n";
        for size in 1..text.len() {
            let mut tokens = TokenCounter::default();
            for part in text.as_bytes().chunks(size) {
                tokens.push(part).unwrap();
            }
            assert_eq!(tokens.count, 4, "{size}");
        }
    }

    #[test]
    fn missing_and_duplicate_tokens_are_errors() {
        assert!(TokenCounter::default().push(b"data: {\"delta\":\"1 3\"}\n").is_err());
        assert!(TokenCounter::default().push(b"data: {\"delta\":\"1 1\"}\n").is_err());
    }
}

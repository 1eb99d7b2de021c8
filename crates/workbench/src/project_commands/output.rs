//! What is kept of a command's output: its beginning and its end, as text. Readers have a position, so that everybody reads at
//! their own pace and nobody holds a queue.

/// Kept from the beginning.
const HEAD_BYTES: usize = 16 << 10;
/// Kept from the end, at least. Up to twice as much is kept, so that it is rarely moved.
const TAIL_BYTES: usize = 32 << 10;

/// The output after a position.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OutputPart {
    pub text: String,
    /// Bytes after the position that were not kept. A line in the text says so at their place.
    pub omitted_bytes: u64,
    /// The position after this part.
    pub next: u64,
}

/// Positions are bytes of the text.
#[derive(Debug, Default)]
pub struct KeptOutput {
    head: String,
    tail: String,
    total: u64,
    decoder: Utf8Decoder,
}

impl KeptOutput {
    pub fn push(&mut self, bytes: &[u8]) {
        let text = self.decoder.decode(bytes);
        self.push_text(&text);
    }

    /// The output has ended: an unfinished character will not be finished.
    pub fn finish(&mut self) {
        let rest = self.decoder.finish();
        self.push_text(rest);
    }

    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// The text after a position. A position within a character counts as the one before it, one after the end as the end.
    pub fn after(&self, position: u64) -> OutputPart {
        let (head_end, tail_start) = (self.head.len() as u64, self.total - self.tail.len() as u64);
        let from_head = if position < head_end { suffix(&self.head, position) } else { "" };
        let from_tail = suffix(&self.tail, position.saturating_sub(tail_start));
        let omitted = tail_start.saturating_sub(position.max(head_end));
        let text = match omitted {
            0 => [from_head, from_tail].concat(),
            omitted => format!("{from_head}\n[{omitted} bytes omitted]\n{from_tail}"),
        };
        OutputPart { text, omitted_bytes: omitted, next: self.total }
    }

    fn push_text(&mut self, text: &str) {
        self.total += text.len() as u64;
        let in_head = match self.tail.is_empty() {
            true => floor_boundary(text, HEAD_BYTES - self.head.len()),
            // The head has ended, perhaps just before a character that did not fit.
            false => 0,
        };
        self.head.push_str(&text[..in_head]);
        self.tail.push_str(&text[in_head..]);
        if self.tail.len() > 2 * TAIL_BYTES {
            let cut = floor_boundary(&self.tail, self.tail.len() - TAIL_BYTES);
            self.tail.drain(..cut);
        }
    }
}

fn suffix(text: &str, from: u64) -> &str {
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    &text[floor_boundary(text, from)..]
}

/// The last character boundary up to `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Turns bytes that arrive in pieces into text. Characters may be split between pieces; bytes that are none are replaced.
#[derive(Debug, Default)]
struct Utf8Decoder {
    /// The beginning of a character, at most three bytes.
    unfinished: Vec<u8>,
}

impl Utf8Decoder {
    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut pending = std::mem::take(&mut self.unfinished);
        pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(pending.len());
        let mut rest = pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        None => {
                            self.unfinished = broken.to_vec();
                            return text;
                        }
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &broken[length..];
                        }
                    }
                }
            }
        }
    }

    fn finish(&mut self) -> &'static str {
        match std::mem::take(&mut self.unfinished).is_empty() {
            true => "",
            false => "\u{fffd}",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HEAD_BYTES, KeptOutput, OutputPart, TAIL_BYTES};

    #[test]
    fn readers_get_what_comes_after_their_position() {
        let mut output = KeptOutput::default();
        output.push(b"one ");
        assert_eq!(output.after(0), OutputPart { text: "one ".into(), omitted_bytes: 0, next: 4 });
        output.push(b"two");
        assert_eq!(output.after(4), OutputPart { text: "two".into(), omitted_bytes: 0, next: 7 });
        assert_eq!(output.after(7), OutputPart { next: 7, ..OutputPart::default() });
        assert_eq!(output.after(99), OutputPart { next: 7, ..OutputPart::default() });
    }

    #[test]
    fn characters_are_never_split_and_broken_bytes_are_replaced() {
        let mut output = KeptOutput::default();
        "é€😀".as_bytes().iter().for_each(|byte| output.push(&[*byte]));
        assert_eq!(output.after(0).text, "é€😀");
        assert_eq!(output.after(1).text, "é€😀", "a position within a character");
        assert_eq!(output.after(2).text, "€😀");
        output.push(b"\xffa\xf0\x9f");
        output.finish();
        assert_eq!(output.after(9).text, "\u{fffd}a\u{fffd}");
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_output_are_kept() {
        let mut output = KeptOutput::default();
        let mut all = String::new();
        for number in 0..40_000 {
            let line = format!("línea {number}\n");
            all.push_str(&line);
            output.push(line.as_bytes());
        }
        let whole = output.after(0);
        assert!(whole.text.len() < HEAD_BYTES + 2 * TAIL_BYTES + 100, "{}", whole.text.len());
        let (head, rest) = whole.text.split_once("\n[").unwrap();
        let (omitted, tail) = rest.split_once(" bytes omitted]\n").unwrap();
        assert_eq!(omitted.parse::<u64>().unwrap(), whole.omitted_bytes);
        assert!(all.starts_with(head) && all.ends_with(tail) && tail.len() >= TAIL_BYTES);
        assert_eq!((head.len() + tail.len()) as u64 + whole.omitted_bytes, all.len() as u64);
        // A reader that was in the gap hears how much it has missed.
        let later = output.after(HEAD_BYTES as u64 + 1000);
        assert!(later.text.starts_with("\n[") && later.omitted_bytes < whole.omitted_bytes);
        assert_eq!(output.after(whole.next - 5).text, all[all.len() - 5..]);
    }
}

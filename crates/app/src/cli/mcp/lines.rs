//! Reads lines of limited length.

use std::io::{self, BufRead};

#[derive(PartialEq, Eq, Debug)]
pub enum InputLine {
    Whole(Vec<u8>),
    /// The line was over the limit. It was read to its end and discarded.
    TooLong,
}

pub struct InputLines<R> {
    input: R,
    max: usize,
    begun: Vec<u8>,
    too_long: bool,
}

impl<R: BufRead> InputLines<R> {
    pub fn new(input: R, max: usize) -> Self {
        Self { input, max, begun: Vec::new(), too_long: false }
    }

    /// The next line that is not empty; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                available => available?,
            };
            if available.is_empty() {
                return Ok(self.take());
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = &available[..end.unwrap_or(available.len())];
            if self.begun.len() + taken.len() > self.max {
                self.too_long = true;
                self.begun = Vec::new();
            }
            if !self.too_long {
                self.begun.extend_from_slice(taken);
            }
            let used = taken.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some()
                && let Some(line) = self.take()
            {
                return Ok(Some(line));
            }
        }
    }

    fn take(&mut self) -> Option<InputLine> {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.too_long) {
            return Some(InputLine::TooLong);
        }
        (!line.trim_ascii().is_empty()).then_some(InputLine::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use super::{InputLine, InputLines};
    use std::io::BufReader;

    fn all(text: &str, capacity: usize) -> Vec<InputLine> {
        let mut lines = InputLines::new(BufReader::with_capacity(capacity, text.as_bytes()), 8);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    #[test]
    fn invariant_14_limits_an_endless_line_takes_no_memory_and_is_reported() {
        let whole = |text: &str| InputLine::Whole(text.into());
        for capacity in [1, 3, 1000] {
            let text = "one\n\r\n\n12345678\n123456789 and more\ntwo\r\nlast";
            let wanted = [whole("one"), whole("12345678"), InputLine::TooLong, whole("two\r"), whole("last")];
            assert_eq!(all(text, capacity), wanted, "{capacity}");
            assert_eq!(all("never ends and never ends", capacity), [InputLine::TooLong]);
        }
    }
}

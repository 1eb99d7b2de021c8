//! Standard input as lines of limited length.

use std::io::{self, BufRead};

#[derive(PartialEq, Eq, Debug)]
pub enum Line {
    Whole(Vec<u8>),
    /// Longer than it may be. It was read to its end and thrown away.
    TooLong,
}

pub struct Lines<R> {
    input: R,
    max: usize,
    begun: Vec<u8>,
    too_long: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R, max: usize) -> Self {
        Self { input, max, begun: Vec::new(), too_long: false }
    }

    /// The next line that is not empty; `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<Line>> {
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

    fn take(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.too_long) {
            return Some(Line::TooLong);
        }
        (!line.trim_ascii().is_empty()).then_some(Line::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Lines};
    use std::io::BufReader;

    fn all(text: &str, capacity: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(capacity, text.as_bytes()), 8);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    #[test]
    fn invariant_14_limits_a_line_without_end_takes_no_memory_and_is_told() {
        let whole = |text: &str| Line::Whole(text.into());
        for capacity in [1, 3, 1000] {
            let text = "one\n\r\n\n12345678\n123456789 and more\ntwo\r\nlast";
            let wanted = [whole("one"), whole("12345678"), Line::TooLong, whole("two\r"), whole("last")];
            assert_eq!(all(text, capacity), wanted, "{capacity}");
            assert_eq!(all("never ends and never ends", capacity), [Line::TooLong]);
        }
    }
}

//! Colors the Markdown of an answer while it streams. Nothing is reordered or removed, so an answer reads the same without
//! colors. The text must be sanitized first.

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const CYAN: &str = "\x1b[36m";
const OFF: &str = "\x1b[0m";

/// A streaming colorer. Text is shown word by word; headings, quotes and code when their line is complete.
#[derive(Debug, Default)]
pub struct MarkdownColors {
    /// What is not shown yet of the current line.
    line: String,
    /// Whether a part of the current line is shown already.
    is_begun: bool,
    in_code: bool,
}

impl MarkdownColors {
    /// Adds a part of the answer, and returns what can be shown.
    pub fn push(&mut self, delta: &str) -> String {
        let mut shown = String::new();
        for part in delta.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                shown.push_str(&self.take_line());
            }
        }
        let is_text = || self.line.trim_start().starts_with(|first| !matches!(first, '#' | '>' | '`'));
        if self.is_begun || (!self.in_code && is_text()) {
            let words = self.line.rmatch_indices(' ').map(|(at, _)| at + 1).find(|end| is_closed(&self.line[..*end]));
            if let Some(end) = words {
                shown.push_str(&inline(&self.line.drain(..end).collect::<String>()));
                self.is_begun = true;
            }
        }
        shown
    }

    /// The rest of the answer.
    pub fn finish(&mut self) -> String {
        let rest = if self.line.is_empty() { String::new() } else { self.take_line() };
        self.in_code = false;
        rest
    }

    fn take_line(&mut self) -> String {
        let whole = std::mem::take(&mut self.line);
        let (line, end) = whole.strip_suffix('\n').map_or((whole.as_str(), ""), |line| (line, "\n"));
        let start = line.trim_start();
        let colored = if std::mem::take(&mut self.is_begun) {
            inline(line)
        } else if start.starts_with("```") {
            self.in_code = !self.in_code;
            format!("{DIM}{line}{OFF}")
        } else if self.in_code {
            format!("{CYAN}{line}{OFF}")
        } else if start.starts_with('#') {
            format!("{BOLD}{line}{OFF}")
        } else if start.starts_with('>') {
            format!("{DIM}{line}{OFF}")
        } else {
            inline(line)
        };
        colored + end
    }
}

/// Returns whether no mark is open at the end of a text.
fn is_closed(text: &str) -> bool {
    text.matches('`').count().is_multiple_of(2) && text.matches("**").count().is_multiple_of(2) && !text.ends_with('*')
}

/// Colors `code` and **bold** within a line. A mark without its end stays as it is.
fn inline(line: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = rest.find(['`', '*']) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let (mark, color) = match from.starts_with("**") {
            true => ("**", BOLD),
            false if from.starts_with('`') => ("`", CYAN),
            false => ("", ""),
        };
        let inside = from.get(mark.len()..).filter(|_| !mark.is_empty());
        match inside.and_then(|inside| inside.find(mark).filter(|end| *end > 0)) {
            Some(end) => {
                let length = 2 * mark.len() + end;
                shown.push_str(&format!("{color}{}{OFF}", &from[..length]));
                rest = &from[length..];
            }
            None => {
                let length = mark.len().max(1);
                shown.push_str(&from[..length]);
                rest = &from[length..];
            }
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::MarkdownColors;

    /// The text without colors.
    fn plain(text: &str) -> String {
        ["\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"].iter().fold(text.to_owned(), |text, code| text.replace(code, ""))
    }

    const TEXT: &str =
        "# Title\nSome **bold** and `code`, 2 * 3 ** 4, `open\n```rust\nlet a = \"**\";\n```\n> quote\nlast";

    #[test]
    fn lines_are_colored_however_they_arrive() {
        let whole = {
            let mut colors = MarkdownColors::default();
            colors.push(TEXT) + &colors.finish()
        };
        for expected in [
            "\x1b[1m# Title\x1b[0m\n",
            "\x1b[1m**bold**\x1b[0m and \x1b[36m`code`\x1b[0m, 2 * 3 ** 4, `open\n",
            "\x1b[36mlet a = \"**\";\x1b[0m\n",
            "\x1b[2m> quote\x1b[0m\nlast",
        ] {
            assert!(whole.contains(expected), "{whole:?}");
        }
        assert_eq!(plain(&whole), TEXT, "nothing is added or removed");
        assert_eq!(MarkdownColors::default().push("word by wo"), "word by ", "text is shown before its line ends");
        for size in 1..9 {
            let mut colors = MarkdownColors::default();
            let letters: Vec<char> = TEXT.chars().collect();
            let mut shown = String::new();
            for piece in letters.chunks(size) {
                shown += &colors.push(&piece.iter().collect::<String>());
            }
            assert_eq!(shown + &colors.finish(), whole, "pieces of {size}");
        }
    }
}

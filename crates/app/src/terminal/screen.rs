//! Prints an answer: its text goes to standard output, everything else (thinking, tool calls, notes, the spinner) to
//! standard error. If both are the same terminal, switching between them starts a new line.

use super::{markdown::MarkdownColors, sanitize, spinner::Spinner};
use std::io::{self, IsTerminal, Write};

/// The longest note; notes are one line.
const NOTE: usize = 400;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CursorState {
    LineStart,
    Saying,
    Thinking,
}

pub struct Screen<Out, Side> {
    out: Out,
    side: Side,
    /// Both outputs are terminals, so presumably the same one.
    shared: bool,
    /// Whether text on standard error is dimmed: only on a terminal with colors.
    dim: bool,
    spinner: Spinner,
    cursor: CursorState,
    /// Whether the answer so far ends in the middle of a line.
    unfinished: bool,
    /// Colors the answer.
    markdown: Option<MarkdownColors>,
}

impl Screen<io::Stdout, io::Stderr> {
    pub fn standard() -> Self {
        let (out, side) = (io::stdout(), io::stderr());
        let (out_is_terminal, side_is_terminal) = (out.is_terminal(), side.is_terminal());
        Self::new(out, side, out_is_terminal, side_is_terminal, side_is_terminal && colors_wanted())
    }

    /// Colors the Markdown of answers, if they go to a terminal that wants colors.
    pub fn with_markdown(self) -> Self {
        let markdown = (self.out.is_terminal() && colors_wanted()).then(MarkdownColors::default);
        Self { markdown, ..self }
    }
}

/// <https://no-color.org>
pub fn colors_wanted() -> bool {
    #[expect(clippy::disallowed_methods, reason = "NO_COLOR is a convention of terminals, not a setting of Greenroom")]
    let refused = std::env::var_os("NO_COLOR");
    refused.is_none_or(|value| value.is_empty())
}

impl<Out: Write, Side: Write> Screen<Out, Side> {
    pub fn new(out: Out, side: Side, out_is_terminal: bool, side_is_terminal: bool, dim: bool) -> Self {
        let spinner = Spinner::new(side_is_terminal);
        let shared = out_is_terminal && side_is_terminal;
        Self { out, side, shared, dim, spinner, cursor: CursorState::LineStart, unfinished: false, markdown: None }
    }

    /// Prints a part of the answer.
    pub fn say(&mut self, delta: &str) -> io::Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        // The spinner may be drawn where the next line of the answer goes.
        self.spinner.clear(&mut self.side)?;
        if self.cursor != CursorState::Saying {
            self.fresh_line()?;
            self.cursor = CursorState::Saying;
        }
        let shown = sanitize::text(delta);
        match &mut self.markdown {
            Some(markdown) => self.out.write_all(markdown.push(&shown).as_bytes())?,
            None => self.out.write_all(shown.as_bytes())?,
        }
        if !shown.is_empty() {
            self.unfinished = !shown.ends_with('\n');
        }
        self.out.flush()
    }

    /// Shows what waits for the end of its line.
    fn flush_markdown(&mut self) -> io::Result<()> {
        match &mut self.markdown {
            Some(markdown) => self.out.write_all(markdown.finish().as_bytes()),
            None => Ok(()),
        }
    }

    /// Prints a part of the thinking.
    pub fn think(&mut self, delta: &str) -> io::Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        if self.cursor != CursorState::Thinking {
            self.fresh_line()?;
            self.cursor = CursorState::Thinking;
        }
        let shown = sanitize::text(delta);
        self.write_dim(&shown)?;
        self.side.flush()
    }

    /// Prints one dimmed line about the answer.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        let shown = sanitize::line(text, NOTE);
        self.write_dim(&shown)?;
        writeln!(self.side)?;
        self.side.flush()
    }

    /// Prints one line that is not dimmed.
    pub fn announce(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        writeln!(self.side, "{}", sanitize::line(text, NOTE))?;
        self.side.flush()
    }

    /// Prints one line for programs to standard output. The line must be sanitized.
    pub fn print_line(&mut self, line: &str) -> io::Result<()> {
        self.fresh_line()?;
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    /// Ends the answer with a newline, also in a pipe, and leaves the cursor at the start of a line.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.cursor == CursorState::Thinking {
            self.fresh_line()?;
        }
        self.spinner.clear(&mut self.side)?;
        self.flush_markdown()?;
        if self.unfinished {
            writeln!(self.out)?;
            self.unfinished = false;
            self.out.flush()?;
        }
        self.cursor = CursorState::LineStart;
        Ok(())
    }

    pub fn spins(&self) -> bool {
        self.spinner.is_enabled()
    }

    /// Draws the spinner, but only at the start of a line, where it cannot overwrite anything.
    pub fn tick(&mut self, label: &str) -> io::Result<()> {
        let free = self.cursor == CursorState::LineStart || (self.cursor == CursorState::Saying && !self.unfinished);
        if free { self.spinner.tick(&mut self.side, &sanitize::line(label, 60)) } else { Ok(()) }
    }

    fn fresh_line(&mut self) -> io::Result<()> {
        self.spinner.clear(&mut self.side)?;
        match self.cursor {
            CursorState::LineStart => {}
            // Only on a shared terminal: a pipe must not get a newline that is not part of the answer.
            CursorState::Saying if self.shared && self.unfinished => {
                self.flush_markdown()?;
                writeln!(self.out)?;
                self.out.flush()?;
                self.unfinished = false;
            }
            CursorState::Saying => {}
            CursorState::Thinking => writeln!(self.side)?,
        }
        self.cursor = CursorState::LineStart;
        Ok(())
    }

    fn write_dim(&mut self, harmless: &str) -> io::Result<()> {
        if self.dim { write!(self.side, "\x1b[2m{harmless}\x1b[0m") } else { write!(self.side, "{harmless}") }
    }
}

#[cfg(test)]
mod tests {
    use super::Screen;

    fn output_of(terminal: bool, steps: impl Fn(&mut Screen<&mut Vec<u8>, &mut Vec<u8>>)) -> (String, String) {
        let (mut out, mut side) = (Vec::new(), Vec::new());
        steps(&mut Screen::new(&mut out, &mut side, terminal, terminal, terminal));
        (String::from_utf8(out).unwrap(), String::from_utf8(side).unwrap())
    }

    #[test]
    fn a_pipe_gets_the_answer_and_nothing_else() {
        let (out, side) = output_of(false, |screen| {
            screen.tick("waiting").unwrap();
            screen.think("hm").unwrap();
            screen.say("one ").unwrap();
            screen.note("look {}").unwrap();
            screen.say("two").unwrap();
            screen.finish().unwrap();
        });
        assert_eq!(out, "one two\n");
        assert_eq!(side, "hm\nlook {}\n", "no spinner, no colors");
    }

    #[test]
    fn on_a_terminal_answer_and_notes_do_not_share_a_line() {
        let (out, side) = output_of(true, |screen| {
            screen.say("one").unwrap();
            screen.tick("waiting").unwrap();
            screen.note("look").unwrap();
            screen.say("two\n").unwrap();
            screen.finish().unwrap();
        });
        assert_eq!(out, "one\ntwo\n");
        assert_eq!(side, "\u{1b}[2mlook\u{1b}[0m\n", "no spinner over an unfinished line");
    }

    #[test]
    fn the_spinner_is_cleared_before_the_next_line_of_the_answer() {
        let (out, side) = output_of(true, |screen| {
            screen.say("one\n").unwrap();
            screen.tick("waiting").unwrap();
            screen.say("two\n").unwrap();
        });
        assert_eq!(out, "one\ntwo\n");
        assert!(side.contains("waiting") && side.ends_with("\r\u{1b}[2K"), "{side:?}");
    }

    #[test]
    fn invariant_16_an_escape_sequence_split_over_deltas_stays_text() {
        let (out, side) = output_of(true, |screen| {
            screen.say("a\u{1b}").unwrap();
            screen.say("[2Jb").unwrap();
            screen.think("\u{1b}]0;x\u{7}").unwrap();
            screen.finish().unwrap();
        });
        assert_eq!(out, "a␛[2Jb\n");
        assert!(side.contains("␛]0;x␇"), "{side:?}");
    }
}

//! The board on a screen: a line that is rewritten, or plain lines.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use super::TextOutput;
use super::board::{ProgressBoard, fit};
use super::terminal;

/// Back to the start and erase. Wrapping is off while the line is written: it may be wider than a terminal that was
/// resized, and a wrapped line cannot be rewritten.
const ERASE: &str = "\r\x1b[K";
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

pub struct ProgressScreen {
    board: ProgressBoard,
    text: Box<dyn Write + Send>,
    /// The terminal and its width.
    live: Option<(Box<dyn Write + Send>, usize)>,
    is_painted: bool,
    is_stopped: bool,
}

impl ProgressScreen {
    pub fn open(output: TextOutput) -> Self {
        let mut screen = Self::open_plain(output);
        if std::io::stderr().is_terminal() {
            screen.live = Some((Box::new(std::io::stderr()), terminal::width()));
        }
        screen
    }

    pub fn open_plain(output: TextOutput) -> Self {
        let text: Box<dyn Write + Send> = match output {
            TextOutput::Stdout => Box::new(std::io::stdout()),
            TextOutput::Stderr => Box::new(std::io::stderr()),
        };
        Self { board: ProgressBoard::default(), text, live: None, is_painted: false, is_stopped: false }
    }

    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    pub fn begin(&mut self, label: &str, now: Instant) -> usize {
        let id = self.board.begin(label, now);
        if self.is_live() {
            self.paint(now);
        }
        id
    }

    pub fn detail(&mut self, id: usize, detail: String) {
        self.board.detail(id, detail);
    }

    pub fn end(&mut self, id: usize) {
        self.board.end(id);
        self.erase();
    }

    pub fn say(&mut self, text: &str, now: Instant) {
        self.erase();
        let text = format!("{}\n", text.trim_end());
        write(&mut self.text, &text);
        if self.is_live() {
            self.paint(now);
        }
    }

    pub fn paint(&mut self, now: Instant) {
        let Some(line) = self.board.line(now) else {
            return self.erase();
        };
        match &mut self.live {
            Some((terminal, width)) => {
                write(terminal, &format!("{NO_WRAP}{ERASE}{}{WRAP}", fit(&line, *width)));
                self.is_painted = true;
            }
            None => write(&mut self.text, &format!("{line}\n")),
        }
    }

    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.erase();
    }

    fn erase(&mut self) {
        if let Some((terminal, _)) = self.live.as_mut().filter(|_| self.is_painted) {
            write(terminal, ERASE);
            self.is_painted = false;
        }
    }
}

/// A terminal that was closed must not end the work; the log has everything.
fn write(output: &mut Box<dyn Write + Send>, text: &str) {
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Captured {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn screen(text: &Captured, live: Option<&Captured>) -> ProgressScreen {
        let mut screen = ProgressScreen::open_plain(TextOutput::Stdout);
        screen.text = Box::new(text.clone());
        screen.live = live.map(|live| (Box::new(live.clone()) as Box<dyn Write + Send>, 20));
        screen
    }

    #[test]
    fn without_a_terminal_there_are_plain_lines_only() {
        let text = Captured::default();
        let mut screen = screen(&text, None);
        let now = Instant::now();
        let id = screen.begin("Building", now);
        screen.detail(id, "1 of 2 crates".into());
        screen.paint(now + Duration::from_secs(15));
        screen.end(id);
        screen.paint(now);
        screen.say("Built.\n", now);
        assert_eq!(text.text(), "Building: 1 of 2 crates (0:15)\nBuilt.\n");
    }

    #[test]
    fn on_a_terminal_the_line_is_rewritten_and_text_stays_above_it() {
        let (text, live) = (Captured::default(), Captured::default());
        let mut screen = screen(&text, Some(&live));
        let now = Instant::now();
        let id = screen.begin("Building the server", now);
        screen.say("warning: unused", now);
        let line = format!("{NO_WRAP}{ERASE}Building the server…{WRAP}");
        assert_eq!(live.text(), format!("{line}{ERASE}{line}"));
        assert_eq!(text.text(), "warning: unused\n");
        screen.end(id);
        assert_eq!(live.text(), format!("{line}{ERASE}{line}{ERASE}"), "nothing is left on the screen");
    }
}

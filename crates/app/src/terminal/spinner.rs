//! Shows on a terminal that the command is waiting. It draws over one line and clears it before anything else is
//! printed. Without a terminal it writes nothing.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

/// The interval for calls of [`Spinner::tick`].
pub const TICK: Duration = Duration::from_millis(100);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const CLEAR_LINE: &[u8] = b"\r\x1b[2K";

#[derive(Debug)]
pub struct Spinner {
    enabled: bool,
    drawn: bool,
    frame: usize,
    since: Instant,
}

impl Spinner {
    pub fn new(enabled: bool) -> Self {
        Self { enabled, drawn: false, frame: 0, since: Instant::now() }
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Draws the next frame. `label` must be one sanitized line.
    pub fn tick(&mut self, out: &mut impl Write, label: &str) -> io::Result<()> {
        if !self.enabled {
            return Ok(());
        }
        let frame = FRAMES[self.frame % FRAMES.len()];
        self.frame += 1;
        self.drawn = true;
        out.write_all(CLEAR_LINE)?;
        write!(out, "{frame} {label} {} s", self.since.elapsed().as_secs())?;
        out.flush()
    }

    /// Clears the line and restarts the displayed time.
    pub fn clear(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.since = Instant::now();
        if !self.drawn {
            return Ok(());
        }
        self.drawn = false;
        out.write_all(CLEAR_LINE)?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::Spinner;

    #[test]
    fn silent_without_a_terminal() {
        let mut out = Vec::new();
        let mut spinner = Spinner::new(false);
        spinner.tick(&mut out, "waiting").unwrap();
        spinner.clear(&mut out).unwrap();
        assert!(out.is_empty());
    }

    #[test]
    fn clears_only_what_it_drew() {
        let mut out = Vec::new();
        let mut spinner = Spinner::new(true);
        spinner.clear(&mut out).unwrap();
        assert!(out.is_empty(), "nothing was drawn yet");
        spinner.tick(&mut out, "waiting").unwrap();
        assert!(String::from_utf8(out.clone()).unwrap().ends_with("⠋ waiting 0 s"));
        out.clear();
        spinner.clear(&mut out).unwrap();
        assert_eq!(out, b"\r\x1b[2K");
    }
}

//! Reads lines from standard input. Reading blocks, so a thread of its own does it; it ends with the process.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use tokio::sync::mpsc;

/// The longest line.
const MAX_LINE_BYTES: u64 = 512 * 1024;
const WAITING_LINES: usize = 16;

/// The lines that somebody types.
pub struct TypedLines {
    lines: mpsc::Receiver<String>,
    /// Whether a person types: only then is there a prompt.
    pub is_terminal: bool,
}

impl TypedLines {
    pub fn standard() -> Self {
        let (sender, lines) = mpsc::channel(WAITING_LINES);
        std::thread::spawn(move || read(&sender));
        Self { lines, is_terminal: io::stdin().is_terminal() }
    }

    /// The next line without its end; `None` at the end of the input. Cancel safe.
    pub async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

fn read(sender: &mpsc::Sender<String>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        if sender.blocking_send(text).is_err() {
            return;
        }
    }
}

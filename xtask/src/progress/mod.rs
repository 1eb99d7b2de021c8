//! One line that says what xtask does now, how much is done and for how long.
//!
//! On a terminal the line is rewritten in place; elsewhere it is printed every 15 seconds. Other text goes through
//! [`ProgressLine::say`], which keeps the two apart. Must not know what runs or how: `steps` and `test` report to it.
//! Start at [`ProgressLine`]; `board.rs` decides what the line says, `cargo_output.rs` reads cargo's own progress.

mod board;
pub mod cargo_output;
mod screen;
mod terminal;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use board::{minutes, timed};
use screen::ProgressScreen;

const REPAINT: Duration = Duration::from_millis(250);
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// Where text other than the rewritten line goes. Standard output belongs to the program that xtask becomes, except in
/// `test`, whose result is the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextOutput {
    Stdout,
    Stderr,
}

pub struct ProgressLine {
    shared: Arc<SharedScreen>,
    painter: Option<JoinHandle<()>>,
}

struct SharedScreen {
    screen: Mutex<ProgressScreen>,
    stop: Condvar,
}

impl ProgressLine {
    pub fn start(output: TextOutput) -> Self {
        Self::on(ProgressScreen::open(output))
    }

    /// Plain lines even on a terminal, for when other programs write to it too.
    pub fn start_plain(output: TextOutput) -> Self {
        Self::on(ProgressScreen::open_plain(output))
    }

    fn on(screen: ProgressScreen) -> Self {
        let interval = if screen.is_live() { REPAINT } else { PLAIN_INTERVAL };
        let shared = Arc::new(SharedScreen { screen: Mutex::new(screen), stop: Condvar::new() });
        let painted = Arc::clone(&shared);
        let painter = std::thread::spawn(move || painted.paint_until_stopped(interval));
        Self { shared, painter: Some(painter) }
    }

    /// Shows an activity until the returned value is dropped.
    pub fn begin(&self, label: &str) -> Activity {
        let begun = Instant::now();
        let id = self.shared.lock().begin(label, begun);
        Activity { shared: Arc::clone(&self.shared), id, begun }
    }

    /// Prints whole lines above the progress line.
    pub fn say(&self, text: &str) {
        self.shared.lock().say(text, Instant::now());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.shared.lock().stop();
        self.shared.stop.notify_all();
        if let Some(painter) = self.painter.take()
            && painter.join().is_err()
        {
            eprintln!("the progress line stopped early");
        }
    }
}

impl SharedScreen {
    fn lock(&self) -> MutexGuard<'_, ProgressScreen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn paint_until_stopped(&self, interval: Duration) {
        let mut screen = self.lock();
        let mut next = Instant::now() + interval;
        while !screen.is_stopped() {
            let wait = next.saturating_duration_since(Instant::now());
            (screen, _) = self.stop.wait_timeout(screen, wait).unwrap_or_else(PoisonError::into_inner);
            if Instant::now() >= next && !screen.is_stopped() {
                screen.paint(Instant::now());
                next = Instant::now() + interval;
            }
        }
    }
}

/// Something that takes time and is on the line.
pub struct Activity {
    shared: Arc<SharedScreen>,
    id: usize,
    begun: Instant,
}

impl Activity {
    /// Replaces what is said after the label, such as `212 of 388 crates`.
    pub fn detail(&self, detail: String) {
        self.shared.lock().detail(self.id, detail);
    }

    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.shared.lock().end(self.id);
    }
}

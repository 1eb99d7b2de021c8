//! What is running, and how that reads on one line. No IO and no clock.

use std::time::{Duration, Instant};

#[derive(Default)]
pub struct ProgressBoard {
    next_id: usize,
    running: Vec<RunningActivity>,
}

struct RunningActivity {
    id: usize,
    label: String,
    detail: String,
    begun: Instant,
}

impl ProgressBoard {
    pub fn begin(&mut self, label: &str, begun: Instant) -> usize {
        self.next_id += 1;
        let label = label.to_owned();
        self.running.push(RunningActivity { id: self.next_id, label, detail: String::new(), begun });
        self.next_id
    }

    pub fn detail(&mut self, id: usize, detail: String) {
        if let Some(activity) = self.running.iter_mut().find(|activity| activity.id == id) {
            activity.detail = detail;
        }
    }

    pub fn end(&mut self, id: usize) {
        self.running.retain(|activity| activity.id != id);
    }

    /// None while nothing runs.
    pub fn line(&self, now: Instant) -> Option<String> {
        let describe = |activity: &RunningActivity| {
            let RunningActivity { label, detail, begun, .. } = activity;
            let separator = if detail.is_empty() { "" } else { ": " };
            format!("{label}{separator}{detail} ({})", minutes(now.saturating_duration_since(*begun)))
        };
        let parts: Vec<String> = self.running.iter().map(describe).collect();
        (!parts.is_empty()).then(|| parts.join(" | "))
    }
}

/// `3:12`, or `1:03:12` from an hour on.
pub fn minutes(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Runs the work and tells how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed())
}

/// Cuts a line so that it fits a terminal of this width.
pub fn fit(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_every_running_activity() {
        let begun = Instant::now();
        let mut board = ProgressBoard::default();
        assert_eq!(board.line(begun), None);
        let build = board.begin("Building the server", begun);
        board.detail(build, "212 of 388 crates, now tokio, sqlx-core".into());
        let later = begun + Duration::from_secs(192);
        let expected = "Building the server: 212 of 388 crates, now tokio, sqlx-core (3:12)";
        assert_eq!(board.line(later).as_deref(), Some(expected));
        board.begin("installing npm packages", later);
        assert_eq!(board.line(later), Some(format!("{expected} | installing npm packages (0:00)")));
        board.end(build);
        assert_eq!(board.line(later).as_deref(), Some("installing npm packages (0:00)"));
    }

    #[test]
    fn an_ended_activity_is_not_changed() {
        let now = Instant::now();
        let mut board = ProgressBoard::default();
        let first = board.begin("a", now);
        board.end(first);
        let second = board.begin("b", now);
        board.detail(first, "late".into());
        assert_ne!(first, second);
        assert_eq!(board.line(now).as_deref(), Some("b (0:00)"));
    }

    #[test]
    fn durations_read_like_a_clock() {
        assert_eq!(minutes(Duration::from_millis(5_900)), "0:05");
        assert_eq!(minutes(Duration::from_secs(312)), "5:12");
        assert_eq!(minutes(Duration::from_secs(3792)), "1:03:12");
    }

    #[test]
    fn long_lines_are_cut_by_characters() {
        assert_eq!(fit("grün", 4), "grün");
        assert_eq!(fit("grüner", 4), "grü…");
    }
}

//! The processes of this machine, found by a text in their command line.

use std::{
    fs,
    time::{Duration, Instant},
};

/// Invariant 5: all processes end within two seconds.
pub const TWO_SECONDS: Duration = Duration::from_secs(2);
/// Longer than anything that is waited for takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(20);

pub fn with_text(text: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = std::process::id() as i32;
    let has_text = |id: &i32| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        *id != own && String::from_utf8_lossy(&line).contains(text)
    };
    ids.filter(has_text).collect()
}

/// Waits until so many processes have the text.
pub fn wait_for(text: &str, count: usize) {
    let begun = Instant::now();
    while with_text(text).len() != count {
        assert!(begun.elapsed() < DEADLINE, "{:?} instead of {count} processes have {text}", with_text(text));
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn assert_gone_within(text: &str, limit: Duration) {
    let begun = Instant::now();
    while !with_text(text).is_empty() {
        assert!(begun.elapsed() < limit, "{:?} are left", with_text(text));
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! The difference between two texts, as people know it.

use similar::TextDiff;
use std::time::Duration;

/// What takes longer than this is told in larger pieces.
const DEADLINE: Duration = Duration::from_millis(500);

/// A unified diff; empty if they are the same.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(old, new);
    diff.unified_diff().context_radius(3).header(old_name, new_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::unified;
    use std::time::{Duration, Instant};

    #[test]
    fn as_people_know_it() {
        assert_eq!(unified("a\n", "a\n", "1", "2"), "");
        assert_eq!(unified("a\nb\n", "a\nc\n", "one", "two"), "--- one\n+++ two\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert!(unified("a", "b\n", "1", "2").contains("No newline"));
    }

    #[test]
    fn texts_that_have_nothing_in_common_do_not_take_for_ever() {
        let text =
            |salt: u64| (0..40_000_u64).map(|n| format!("{}\n", n.wrapping_mul(salt) % 7919)).collect::<String>();
        let began = Instant::now();
        assert!(!unified(&text(7), &text(13), "1", "2").is_empty());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

//! Unified diffs of two texts.

use similar::TextDiff;
use std::time::Duration;

/// After this time the diff gets coarser.
const DEADLINE: Duration = Duration::from_millis(500);

/// Returns a unified diff, or an empty string if the texts are equal.
pub fn unified_diff(old: &str, new: &str, old_name: &str, new_name: &str) -> String {
    if old == new {
        return String::new();
    }
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(old, new);
    diff.unified_diff().context_radius(3).header(old_name, new_name).to_string()
}

#[cfg(test)]
mod tests {
    use super::unified_diff;
    use std::time::{Duration, Instant};

    #[test]
    fn returns_a_unified_diff() {
        assert_eq!(unified_diff("a\n", "a\n", "1", "2"), "");
        assert_eq!(unified_diff("a\nb\n", "a\nc\n", "one", "two"), "--- one\n+++ two\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert!(unified_diff("a", "b\n", "1", "2").contains("No newline"));
    }

    #[test]
    fn unrelated_texts_are_compared_in_bounded_time() {
        let text =
            |salt: u64| (0..40_000_u64).map(|n| format!("{}\n", n.wrapping_mul(salt) % 7919)).collect::<String>();
        let began = Instant::now();
        assert!(!unified_diff(&text(7), &text(13), "1", "2").is_empty());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

//! The bounds, and whether figures are within them. Pure.
//!
//! To change one, run the guard several times and add a margin of about a quarter to the largest figure. A change that
//! needs a higher bound says in its commit why it is worth the cost; one that lowers a figure lowers its bound.

use crate::repository::BuildProfile;
use crate::totals::TestTotals;

struct GuardBound {
    /// The driver's name for it.
    figure: &'static str,
    what: &'static str,
    debug: u64,
    /// None where it cannot be measured, because a release has no symbols.
    release: Option<u64>,
}

const BOUNDS: &[GuardBound] = &[
    GuardBound { figure: "binary_bytes", what: "bytes of code and data", debug: 90_000_000, release: Some(40_000_000) },
    GuardBound { figure: "rest_bytes", what: "bytes of memory at rest", debug: 11_500_000, release: Some(7_500_000) },
    GuardBound { figure: "sse_reader_bytes", what: "bytes per idle SSE reader", debug: 12_000, release: Some(12_000) },
    GuardBound {
        figure: "websocket_reader_bytes",
        what: "bytes per idle WebSocket reader",
        debug: 7_200,
        release: Some(7_000),
    },
    GuardBound {
        figure: "single_event_instructions",
        what: "instructions per event, one per commit",
        debug: 1_200_000,
        release: Some(275_000),
    },
    GuardBound {
        figure: "single_event_allocations",
        what: "allocations per event, one per commit",
        debug: 108,
        release: None,
    },
    GuardBound {
        figure: "grouped_event_instructions",
        what: "instructions per event, many per commit",
        debug: 480_000,
        release: Some(83_000),
    },
    GuardBound {
        figure: "grouped_event_allocations",
        what: "allocations per event, many per commit",
        // One binary had 28 with other work beside it and 40 to 43 without: probably fewer events share a commit then.
        debug: 54,
        release: None,
    },
];

/// The lines `figure NAME NUMBER` in the driver's output.
pub fn figures(output: &str) -> Vec<(&str, u64)> {
    output.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.strip_prefix("figure ")?.split_once(' ')?;
    Some((name, value.parse().ok()?))
}

/// The totals and a line for each bound. A figure that is missing is a failure.
pub fn judge(figures: &[(&str, u64)], profile: BuildProfile) -> (TestTotals, String) {
    let mut totals = TestTotals::default();
    let mut lines = Vec::new();
    for bound in BOUNDS {
        let limit = match profile {
            BuildProfile::Debug => Some(bound.debug),
            BuildProfile::Release => bound.release,
        };
        let Some(limit) = limit else {
            continue;
        };
        let measured = figures.iter().find(|(name, _)| *name == bound.figure).map(|(_, value)| *value);
        let is_within = measured.is_some_and(|value| value <= limit);
        match is_within {
            true => totals.passed += 1,
            false => totals.failed += 1,
        }
        let value = measured.map_or_else(|| "not measured".to_owned(), grouped);
        let verdict = if is_within { "ok" } else { "FAILED" };
        lines.push(format!("guard: {}: {value} of at most {} ... {verdict}", bound.what, grouped(limit)));
    }
    lines.push(format!("guard: {totals}"));
    (totals, lines.join("\n"))
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(limit: fn(&GuardBound) -> Option<u64>) -> Vec<(&'static str, u64)> {
        BOUNDS.iter().filter_map(|bound| Some((bound.figure, limit(bound)?))).collect()
    }

    #[test]
    fn figures_are_read_from_the_output() {
        let output = "figure rest_bytes 17\nserver log\nfigure x many\nfigure sse_reader_bytes 18\n";
        assert_eq!(figures(output), [("rest_bytes", 17), ("sse_reader_bytes", 18)]);
    }

    #[test]
    fn a_figure_at_its_bound_passes_and_one_above_fails() {
        let mut figures = all(|bound| Some(bound.debug));
        let (totals, report) = judge(&figures, BuildProfile::Debug);
        assert!(totals.is_success() && report.ends_with("guard: 8 passed, 0 failed"), "{report}");
        figures[2].1 += 1;
        let (totals, report) = judge(&figures, BuildProfile::Debug);
        assert_eq!((totals.passed, totals.failed), (7, 1));
        assert!(report.contains("per idle SSE reader") && report.matches("FAILED").count() == 1, "{report}");
    }

    #[test]
    fn a_missing_figure_fails() {
        let (totals, report) = judge(&all(|bound| Some(bound.debug))[1..], BuildProfile::Debug);
        assert_eq!((totals.passed, totals.failed), (7, 1));
        assert!(report.contains("not measured"), "{report}");
    }

    #[test]
    fn a_release_has_its_own_bounds() {
        let (totals, _) = judge(&all(|bound| bound.release), BuildProfile::Release);
        assert_eq!((totals.passed, totals.failed), (6, 0));
    }

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([7, 123, 1234, 12_345_678].map(grouped), ["7", "123", "1,234", "12,345,678"]);
    }
}

//! Reads what cargo prints while it builds. Pure: one line in, its meaning out.

#[derive(Debug, PartialEq, Eq)]
pub enum CargoOutput<'a> {
    /// `Building [===>  ] 212/388: tokio, sqlx-core`
    Bar { done: u64, total: u64, now: &'a str },
    /// Cargo waits for another cargo, or for the network.
    Waiting(&'static str),
    /// What cargo does, such as `Compiling tokio v1.54.0`.
    Status,
    /// A warning or an error: everything that is none of the above.
    Diagnostic,
}

/// The width in which cargo aligns its verbs to the right.
const VERB_WIDTH: usize = 12;
const VERBS: &[&str] = &[
    "Adding",
    "Checking",
    "Compiling",
    "Dirty",
    "Doc-tests",
    "Downloaded",
    "Executable",
    "Finished",
    "Fresh",
    "Locking",
    "Running",
];

pub fn read(line: &str) -> CargoOutput<'_> {
    let Some((verb, rest)) = split_verb(line) else {
        return match line.trim().is_empty() {
            true => CargoOutput::Status,
            false => CargoOutput::Diagnostic,
        };
    };
    match verb {
        "Building" => bar(rest).unwrap_or(CargoOutput::Status),
        "Blocking" => CargoOutput::Waiting("waiting for another cargo"),
        "Downloading" => CargoOutput::Waiting("downloading crates"),
        "Updating" => CargoOutput::Waiting("updating the list of crates"),
        verb if VERBS.contains(&verb) => CargoOutput::Status,
        _ => CargoOutput::Diagnostic,
    }
}

/// What goes onto the progress line, if the line says anything for it.
pub fn detail(output: &CargoOutput<'_>) -> Option<String> {
    match output {
        CargoOutput::Bar { done, total, now: "" } => Some(format!("{done} of {total} crates")),
        CargoOutput::Bar { done, total, now } => Some(format!("{done} of {total} crates, now {now}")),
        CargoOutput::Waiting(reason) => Some((*reason).to_owned()),
        CargoOutput::Status | CargoOutput::Diagnostic => None,
    }
}

fn split_verb(line: &str) -> Option<(&str, &str)> {
    let (verb, rest) = line.split_at_checked(VERB_WIDTH)?;
    let verb = verb.trim_start();
    let is_word = verb.starts_with(|first: char| first.is_ascii_uppercase()) && !verb.contains(' ');
    (is_word && (rest.is_empty() || rest.starts_with(' '))).then(|| (verb, rest.trim()))
}

fn bar(rest: &str) -> Option<CargoOutput<'_>> {
    let (_, counts) = rest.strip_prefix('[')?.split_once(']')?;
    let (counts, now) = counts.split_once(':').unwrap_or((counts, ""));
    let (done, total) = counts.trim().split_once('/')?;
    Some(CargoOutput::Bar { done: done.parse().ok()?, total: total.parse().ok()?, now: now.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As cargo 1.95 prints them into a pipe with `CARGO_TERM_PROGRESS_WIDTH=100`.
    const BAR: &str =
        "    Building [=============>               ] 212/388: tokio, sqlx-core                            ";

    #[test]
    fn the_bar_is_read() {
        let bar = read(BAR);
        assert_eq!(bar, CargoOutput::Bar { done: 212, total: 388, now: "tokio, sqlx-core" });
        assert_eq!(detail(&bar).as_deref(), Some("212 of 388 crates, now tokio, sqlx-core"));
        let first = read("    Building [                             ] 0/4: nx, nx(test)");
        assert_eq!(first, CargoOutput::Bar { done: 0, total: 4, now: "nx, nx(test)" });
        let bare = read("    Building [=============================] 4/4");
        assert_eq!(detail(&bare).as_deref(), Some("4 of 4 crates"));
    }

    #[test]
    fn status_lines_are_not_shown() {
        for line in [
            "   Compiling nx v0.1.0 (crates/nx)",
            "    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.62s",
            "  Executable tests/it.rs (target/debug/deps/it-fb56cddb5ffb8a35)",
            "     Running unittests src/lib.rs (target/debug/deps/nx-72ee6507dc2c5010)",
            "",
        ] {
            assert_eq!(read(line), CargoOutput::Status, "{line}");
        }
        assert_eq!(
            detail(&read("    Blocking waiting for file lock on build directory")).as_deref(),
            Some("waiting for another cargo")
        );
    }

    #[test]
    fn warnings_and_errors_are_never_taken_for_status() {
        for line in [
            "warning: function `unused` is never used",
            " --> src/lib.rs:6:4",
            "6 | fn unused() {}",
            "  = note: `#[warn(dead_code)]` (part of `#[warn(unused)]`) on by default",
            "error: could not compile `nx` (lib) due to 1 previous error",
            "   Something nobody has seen yet",
            "ß",
        ] {
            assert_eq!(read(line), CargoOutput::Diagnostic, "{line}");
        }
    }
}

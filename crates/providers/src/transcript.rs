//! Reads recorded conversations with real programs, from `tests/transcripts/<program>/<scenario>.jsonl`.
//!
//! One entry a line: milliseconds since the start, who spoke, and the line that was said. In the recordings paths are
//! replaced by names such as `<workplace>`, and long lists that no parser looks at are cut short.

use serde_json::Value;
use std::{fs, path::PathBuf};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From us to the program.
    In,
    /// From the program to us.
    Out,
    /// What it wrote beside.
    Err,
    /// What whoever recorded it did.
    Note,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub direction: Direction,
    /// As it was on the wire, but for the order of JSON's keys.
    pub line: String,
}

pub(crate) fn read(program: &str, scenario: &str) -> Vec<Entry> {
    let file = folder(program).join(format!("{scenario}.jsonl"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(entry).collect()
}

/// Every scenario there is.
pub(crate) fn scenarios(program: &str) -> Vec<String> {
    let files = fs::read_dir(folder(program)).unwrap().map(|file| file.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

fn folder(program: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(program)
}

fn entry(text: &str) -> Entry {
    let entry: Value = serde_json::from_str(text).unwrap();
    let direction = match entry["dir"].as_str().unwrap() {
        "in" => Direction::In,
        "out" => Direction::Out,
        "err" => Direction::Err,
        "note" => Direction::Note,
        other => panic!("nobody is called {other}"),
    };
    let line = match &entry["line"] {
        Value::String(line) => line.clone(),
        line => line.to_string(),
    };
    Entry { direction, line }
}

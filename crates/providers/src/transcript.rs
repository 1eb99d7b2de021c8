//! Reads recorded conversations with real programs, from `tests/transcripts/<program>/<scenario>.jsonl`.
//!
//! One entry per line: milliseconds since the start, the direction, and the line. In the recordings paths are replaced
//! by names such as `<workplace>`, and long lists that no parser reads are shortened.

use serde_json::Value;
use std::{fs, path::PathBuf};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TranscriptDirection {
    /// From us to the program.
    In,
    /// From the program to us.
    Out,
    /// The program's standard error.
    Err,
    /// A remark on what was done during the recording.
    Note,
}

#[derive(Clone, Debug)]
pub(crate) struct TranscriptEntry {
    pub direction: TranscriptDirection,
    /// The line on the wire, except for the order of JSON keys.
    pub line: String,
}

pub(crate) fn read(program: &str, scenario: &str) -> Vec<TranscriptEntry> {
    let file = folder(program).join(format!("{scenario}.jsonl"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(entry).collect()
}

/// Returns the names of all scenarios.
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

fn entry(text: &str) -> TranscriptEntry {
    let entry: Value = serde_json::from_str(text).unwrap();
    let direction = match entry["dir"].as_str().unwrap() {
        "in" => TranscriptDirection::In,
        "out" => TranscriptDirection::Out,
        "err" => TranscriptDirection::Err,
        "note" => TranscriptDirection::Note,
        other => panic!("unknown direction {other}"),
    };
    let line = match &entry["line"] {
        Value::String(line) => line.clone(),
        line => line.to_string(),
    };
    TranscriptEntry { direction, line }
}

//! A recorded conversation with a CLI: JSON lines of `{"t": ms, "dir": "in"|"out"|"err"|"note", "line": …}`.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{io, path::Path};

#[derive(Clone, Debug)]
pub struct RecordedEntry {
    /// The line number in the file, from 1.
    pub number: usize,
    /// Milliseconds since the CLI was started.
    pub at: f64,
    pub content: RecordedContent,
}

#[derive(Clone, Debug)]
pub enum RecordedContent {
    In(Value),
    /// The raw text, so that the order of fields is preserved.
    Out(String),
    Err(String),
    /// The exit code, if the process ended on its own or with its input.
    Exit(u8),
    Note,
}

#[derive(Deserialize)]
struct RawEntry<'a> {
    t: f64,
    dir: String,
    #[serde(borrow)]
    line: &'a RawValue,
}

pub fn read(file: &Path) -> io::Result<Vec<RecordedEntry>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", file.display()));
    parse(&std::fs::read_to_string(file).map_err(named)?).map_err(named)
}

pub fn parse(text: &str) -> io::Result<Vec<RecordedEntry>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| entry(index + 1, line)).collect()
}

fn entry(number: usize, line: &str) -> io::Result<RecordedEntry> {
    let bad = |problem: String| io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {problem}"));
    let line: RawEntry<'_> = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
    let value: Value = serde_json::from_str(line.line.get()).map_err(|error| bad(error.to_string()))?;
    let what = match line.dir.as_str() {
        "in" => RecordedContent::In(value),
        "out" => RecordedContent::Out(text_or_raw(line.line, &value)),
        "err" => RecordedContent::Err(text_or_raw(line.line, &value)),
        "note" => value["exit"]
            .as_u64()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(RecordedContent::Note, RecordedContent::Exit),
        other => return Err(bad(format!("unknown direction {other:?}"))),
    };
    Ok(RecordedEntry { number, at: line.t, content: what })
}

/// Output that was not JSON is stored as a JSON string.
fn text_or_raw(raw: &RawValue, value: &Value) -> String {
    value.as_str().unwrap_or(raw.get()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{RecordedContent, parse};

    #[test]
    fn every_direction_is_read() {
        let text = "{\"t\":0,\"dir\":\"note\",\"line\":{\"cmd\":[]}}\n\n\
            {\"t\":1.5,\"dir\":\"in\",\"line\":{\"type\":\"user\"}}\n{\"t\":2,\"dir\":\"out\",\"line\":{\"z\": 1, \"a\": 2}}\n\
            {\"t\":3,\"dir\":\"out\",\"line\":\"plain \\\"text\\\"\"}\n{\"t\":4,\"dir\":\"err\",\"line\":\"oops\"}\n\
            {\"t\":5,\"dir\":\"note\",\"line\":{\"exit\":1}}\n{\"t\":6,\"dir\":\"note\",\"line\":{\"exit\":-9}}\n";
        let entries = parse(text).unwrap();
        let shown: Vec<String> = entries.iter().map(|entry| format!("{} {:?}", entry.number, entry.content)).collect();
        assert_eq!(shown[0], "1 Note");
        assert!(shown[1].starts_with("3 In("));
        assert!(matches!(&entries[2].content, RecordedContent::Out(line) if line == "{\"z\": 1, \"a\": 2}"));
        assert!(matches!(&entries[3].content, RecordedContent::Out(line) if line == "plain \"text\""));
        assert_eq!(shown[4..], ["6 Err(\"oops\")", "7 Exit(1)", "8 Note"]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse("{\"t\":0,\"dir\":\"note\",\"line\":1}\n{\"t\":0,\"dir\":\"up\",\"line\":1}").unwrap_err();
        assert_eq!(error.to_string(), "line 2: unknown direction \"up\"");
        assert!(parse("not json").is_err());
    }
}

//! A recorded conversation with a CLI: JSON lines of `{"t": ms, "dir": "in"|"out"|"err"|"note", "line": …}`.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{io, path::Path};

#[derive(Clone, Debug)]
pub struct Entry {
    /// In the file, counted from 1.
    pub number: usize,
    /// Milliseconds since the CLI was started.
    pub at: f64,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    In(Value),
    /// As it was written, so that even the order of fields is the CLI's own.
    Out(String),
    Err(String),
    /// How the process ended, where that was its own doing or the end of its input.
    Exit(u8),
    Note,
}

#[derive(Deserialize)]
struct Line<'a> {
    t: f64,
    dir: String,
    #[serde(borrow)]
    line: &'a RawValue,
}

pub fn read(file: &Path) -> io::Result<Vec<Entry>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", file.display()));
    parse(&std::fs::read_to_string(file).map_err(named)?).map_err(named)
}

pub fn parse(text: &str) -> io::Result<Vec<Entry>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| entry(index + 1, line)).collect()
}

fn entry(number: usize, line: &str) -> io::Result<Entry> {
    let bad = |problem: String| io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {problem}"));
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
    let value: Value = serde_json::from_str(line.line.get()).map_err(|error| bad(error.to_string()))?;
    let what = match line.dir.as_str() {
        "in" => What::In(value),
        "out" => What::Out(written(line.line, &value)),
        "err" => What::Err(written(line.line, &value)),
        "note" => value["exit"].as_u64().and_then(|code| u8::try_from(code).ok()).map_or(What::Note, What::Exit),
        other => return Err(bad(format!("there is no direction {other:?}"))),
    };
    Ok(Entry { number, at: line.t, what })
}

/// What was no JSON is kept as a text.
fn written(raw: &RawValue, value: &Value) -> String {
    value.as_str().unwrap_or(raw.get()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{What, parse};

    #[test]
    fn every_direction_is_read() {
        let text = "{\"t\":0,\"dir\":\"note\",\"line\":{\"cmd\":[]}}\n\n\
            {\"t\":1.5,\"dir\":\"in\",\"line\":{\"type\":\"user\"}}\n{\"t\":2,\"dir\":\"out\",\"line\":{\"z\": 1, \"a\": 2}}\n\
            {\"t\":3,\"dir\":\"out\",\"line\":\"plain \\\"text\\\"\"}\n{\"t\":4,\"dir\":\"err\",\"line\":\"oops\"}\n\
            {\"t\":5,\"dir\":\"note\",\"line\":{\"exit\":1}}\n{\"t\":6,\"dir\":\"note\",\"line\":{\"exit\":-9}}\n";
        let entries = parse(text).unwrap();
        let shown: Vec<String> = entries.iter().map(|entry| format!("{} {:?}", entry.number, entry.what)).collect();
        assert_eq!(shown[0], "1 Note");
        assert!(shown[1].starts_with("3 In("));
        assert!(matches!(&entries[2].what, What::Out(line) if line == "{\"z\": 1, \"a\": 2}"));
        assert!(matches!(&entries[3].what, What::Out(line) if line == "plain \"text\""));
        assert_eq!(shown[4..], ["6 Err(\"oops\")", "7 Exit(1)", "8 Note"]);
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = parse("{\"t\":0,\"dir\":\"note\",\"line\":1}\n{\"t\":0,\"dir\":\"up\",\"line\":1}").unwrap_err();
        assert_eq!(error.to_string(), "line 2: there is no direction \"up\"");
        assert!(parse("not json").is_err());
    }
}

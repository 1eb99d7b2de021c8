//! Parses JSON text, with a specific error for each kind of mistake. Pure.

use crate::error::Problem;
use serde::de::DeserializeOwned;
use serde_json::{Value, error::Category};
use serde_path_to_error::{Path, Segment};

/// Half of the parser's own limit, because accepted values are stored inside other JSON and parsed again.
pub const MAX_DEPTH: usize = 64;

pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Problem::invalid(format!("The body is not valid UTF-8 at byte {}; send UTF-8.", error.valid_up_to()))
    })?;
    if text.trim_ascii().is_empty() {
        return Err(Problem::invalid("The body is empty; send a JSON object."));
    }
    if depth(bytes) > MAX_DEPTH {
        return Err(Problem::invalid(format!("The JSON is nested more than {MAX_DEPTH} levels deep; flatten it.")));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        explain(error.inner(), text, Some(&pointer))
    })?;
    deserializer.end().map_err(|error| explain(&error, text, None))?;
    Ok(value)
}

fn explain(error: &serde_json::Error, json: &str, pointer: Option<&str>) -> Problem {
    let text = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&location).unwrap_or(&text);
    // The parser reports a number in place of an enum's name as a syntax error, although the JSON is valid.
    let is_valid = || serde_json::from_str::<Value>(json).is_ok();
    match pointer.filter(|_| error.classify() == Category::Data || is_valid()) {
        Some("") => Problem::invalid(format!("The body does not fit: {what}.")).with("pointer", ""),
        Some(at) => Problem::invalid(format!("`{at}` does not fit: {what}.")).with("pointer", at),
        None => Problem::invalid(format!("The body is not valid JSON{location}: {what}.")),
    }
}

/// The JSON pointer of a path (RFC 6901).
fn pointer(path: &Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    };
    path.iter().map(step).collect()
}

/// The nesting depth of arrays and objects. The parser does not limit the depth of unknown fields, so it is checked
/// first.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => drop(bytes.next()),
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::{depth, parse};
    use serde::Deserialize;
    use serde_json::Value;

    #[derive(Deserialize, Debug)]
    struct Outer {
        #[expect(dead_code)]
        list: Vec<Inner>,
    }

    #[derive(Deserialize, Debug)]
    struct Inner {
        #[serde(rename = "a/b~c")]
        #[expect(dead_code)]
        number: u8,
    }

    fn refusal(bytes: &[u8]) -> String {
        parse::<Outer>(bytes).unwrap_err().detail().to_owned()
    }

    #[test]
    fn each_mistake_has_its_own_error() {
        assert_eq!(
            refusal(br#"{"list":[{"a/b~c":1},{"a/b~c":"x"}]}"#),
            r#"`/list/1/a~1b~0c` does not fit: invalid type: string "x", expected u8."#
        );
        assert_eq!(refusal(b"{}"), "The body does not fit: missing field `list`.");
        assert!(refusal(b"{\"list\":[}").starts_with("The body is not valid JSON at line 1 column 10: "));
        assert!(refusal(b"{\"list\":[").contains("EOF"));
        assert!(refusal(b"{\"list\":[]} x").contains("trailing"));
        assert_eq!(refusal(b"\"\xff\""), "The body is not valid UTF-8 at byte 1; send UTF-8.");
        assert_eq!(refusal(b" \n"), "The body is empty; send a JSON object.");
    }

    #[test]
    fn depth_is_limited_even_in_unknown_fields() {
        let deep = format!("{{\"list\":[],\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(refusal(deep.as_bytes()).contains("64 levels"));
        let just = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(parse::<Value>(just.as_bytes()).is_ok());
        assert_eq!(depth(br#"{"a":"[[[\"[[","b":[{}]}"#), 3);
    }
}

//! Parses JSON text, with a specific error for each kind of mistake. Pure.

use super::{field_error::FieldError, value_reader::ValueReader};
use crate::error::Problem;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, error::Category};
use serde_path_to_error::{Path, Segment};
use std::fmt;

/// Half of the parser's own limit, because accepted values are stored inside other JSON and parsed again.
pub const MAX_DEPTH: usize = 64;

pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    read(parse_value(bytes)?)
}

/// Reads a value from JSON that is parsed already.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    T::deserialize(ValueReader(value)).map_err(FieldError::into_body_problem)
}

/// Any JSON in which no key is there twice.
fn parse_value(bytes: &[u8]) -> Result<Value, Problem> {
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
    let value = serde_path_to_error::deserialize::<_, UniqueKeys>(&mut deserializer).map_err(|error| {
        match error.inner().classify() {
            Category::Data => at(error.path()).into_body_problem(),
            Category::Io | Category::Syntax | Category::Eof => explain(error.inner()),
        }
    })?;
    deserializer.end().map_err(|error| explain(&error))?;
    Ok(value.0)
}

fn explain(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    let what = match text.strip_suffix(&location).unwrap_or(&text) {
        // The parser's words for a literal, `true`, `false` or `null`.
        "expected ident" => "expected a value",
        what => what,
    };
    Problem::invalid(format!("The body is not valid JSON{location}: {what}."))
}

/// The only mistake that [`UniqueKeys`] finds in valid JSON.
fn at(path: &Path) -> FieldError {
    let name = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    let names: Vec<String> = path.iter().filter_map(name).collect();
    names.into_iter().rev().fold(FieldError::new("this key is there twice"), FieldError::inside)
}

/// A JSON value; refused if an object has a key twice, because parsers differ in which one they take.
struct UniqueKeys(Value);

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor).map(Self)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueKeys(entry)) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if object.contains_key(&name) {
                // As the value of the key, so that the error has its path.
                entries.next_value_seed(RefusedValue)?;
            }
            let UniqueKeys(value) = entries.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

struct RefusedValue;

impl<'de> DeserializeSeed<'de> for RefusedValue {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(D::Error::custom("a key is there twice"))
    }
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
            r#"`/list/1/a~1b~0c` does not fit: it must be a whole number from 0 to 255, not "x"."#
        );
        assert_eq!(refusal(b"{}"), "`/list` does not fit: it is missing.");
        let twice = parse::<Value>(br#"{"a":[{},{"b":1,"b":2}]}"#).unwrap_err();
        assert_eq!((twice.pointer(), twice.detail()), ("/a/1/b", "`/a/1/b` does not fit: this key is there twice."));
        let literal = refusal(b"{\"list\":nul}");
        assert!(literal.starts_with("The body is not valid JSON at line 1 column 1"), "{literal}");
        assert!(literal.ends_with(": expected a value."), "{literal}");
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

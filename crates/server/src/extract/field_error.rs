//! Why a value does not fit, in words of the API: no Rust types, and always with the place. Shared by the body and the
//! query string. Pure.

use crate::error::Problem;
use serde::de::{self, Expected, Unexpected};
use std::fmt;

/// Values are quoted up to here.
const MAX_QUOTED_CHARS: usize = 60;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldError {
    /// From the innermost field outwards.
    path: Vec<String>,
    what: String,
}

impl FieldError {
    pub fn new(what: impl Into<String>) -> Self {
        Self { path: Vec::new(), what: what.into() }
    }

    /// Adds the field or the index that the value is in.
    #[must_use]
    pub fn inside(mut self, name: impl Into<String>) -> Self {
        self.path.push(name.into());
        self
    }

    /// The JSON pointer of the mistake (RFC 6901).
    pub fn pointer(&self) -> String {
        let escaped = |name: &String| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        self.path.iter().rev().map(escaped).collect()
    }

    pub fn into_body_problem(self) -> Problem {
        let pointer = self.pointer();
        let place = if pointer.is_empty() { "The body".to_owned() } else { format!("`{pointer}`") };
        Problem::invalid(format!("{place} does not fit: {}.", self.what)).with("pointer", pointer)
    }

    pub fn into_query_problem(self) -> Problem {
        match self.path.last() {
            Some(name) => Problem::invalid(format!("{name}: {}.", self.what)).with("parameter", name.clone()),
            None => Problem::invalid(format!("The query string does not fit: {}.", self.what)),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)
    }
}

impl std::error::Error for FieldError {}

impl de::Error for FieldError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        Self::new(match message.starts_with("data did not match any variant") {
            true => "it has none of the allowed forms".to_owned(),
            false => message,
        })
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("it must be {}, not {}", in_api_words(&expected.to_string()), quoted(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("it must be {}, and has {length} entries", in_api_words(&expected.to_string())))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("it must be {}, not {}", one_of(known), quoted(Unexpected::Str(name))))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let what = match known {
            [] => "this field is unknown; there are none here".to_owned(),
            [only] => format!("this field is unknown; there is only `{only}`"),
            _ => format!("this field is unknown; the fields here are {}", listed(known)),
        };
        Self::new(what).inside(shortened(name))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new("it is missing").inside(name)
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new("it is there twice").inside(name)
    }
}

pub fn one_of(known: &[&str]) -> String {
    match known {
        [only] => format!("`{only}`"),
        _ => format!("one of {}", listed(known)),
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn quoted(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Char(value) => format!("{value:?}"),
        Unexpected::Str(text) => format!("{:?}", shortened(text)),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "an array".to_owned(),
        Unexpected::Other(what) => what.to_owned(),
        _ => "an object".to_owned(),
    }
}

/// What serde and its derived code expect, for a reader who knows JSON and not Rust.
fn in_api_words(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" | "a character" | "string" => "a string",
        "a sequence" | "a set" => "an array",
        "a map" | "map" => "an object",
        "unit" | "()" => "null",
        "option" => "a value or null",
        "variant identifier" | "field identifier" => "a name",
        _ if expected.starts_with("struct ") || expected.contains("tagged enum ") => "an object",
        _ if expected.starts_with("tuple ") || expected.starts_with("an array of length ") => "an array",
        _ if expected.starts_with("enum ") => "one of the known names",
        _ => expected,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::in_api_words;

    #[test]
    fn no_word_of_rust_is_left() {
        for (rust, api) in [
            ("struct RoomSpec", "an object"),
            ("struct RoomSpec with 4 elements", "an object"),
            ("internally tagged enum Author", "an object"),
            ("tuple struct Pair", "an array"),
            ("a UUID", "a UUID"),
        ] {
            assert_eq!(in_api_words(rust), api);
        }
    }
}

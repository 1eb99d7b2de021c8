//! User-defined names. A name is one line of visible text, so it cannot end a frame, forge a log line or contain
//! terminal escapes (invariant 16).

use serde::{Deserialize, Serialize};
use std::fmt;

pub const MAX_CHARS: usize = 120;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(
    value_type = String,
    min_length = 1,
    max_length = 120,
    pattern = r"^(?=.*\S)[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+$",
    examples("Ada")
)]
pub struct Name(String);

/// The schema of a name in a list of an agent's settings, such as a pattern of tools: any text of one line.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 200, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$", examples("Read"))]
pub struct ListedName(pub String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    #[error("a name must not be empty")]
    Empty,
    #[error("a name has at most {MAX_CHARS} characters, this one has {0}")]
    TooLong(usize),
    #[error("a name is one line of text; it contains the control character U+{0:04X}")]
    Control(u32),
}

impl Name {
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        let count = text.chars().count();
        if count > MAX_CHARS {
            return Err(NameError::TooLong(count));
        }
        match text.chars().find(|&c| breaks_a_line(c)) {
            Some(c) => Err(NameError::Control(u32::from(c))),
            None => Ok(Self(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Control characters, Unicode line separators and bidirectional text marks.
fn breaks_a_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::parse(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, NameError};

    #[test]
    fn a_name_is_one_visible_line() {
        assert_eq!(Name::parse("  Zoë  ").unwrap().as_str(), "Zoë");
        assert_eq!(Name::parse(" \t "), Err(NameError::Empty));
        assert_eq!(Name::parse("a\r\nSet-Cookie: x"), Err(NameError::Control(13)));
        assert_eq!(Name::parse("a\u{202E}b"), Err(NameError::Control(0x202E)));
        assert_eq!(Name::parse(&"x".repeat(121)), Err(NameError::TooLong(121)));
    }
}

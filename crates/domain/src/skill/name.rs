//! The name of a skill, by the rules of Agent Skills. It is also a folder name and a word in messages, so it has no
//! path characters (invariant 18).

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

pub const MAX_CHARS: usize = 64;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$", examples("greet"))]
pub struct SkillName(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a valid skill name; use 1 to {MAX_CHARS} characters of a-z, 0-9 and single hyphens between them, such \
     as code-review"
)]
pub struct SkillNameError(String);

impl SkillName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SkillName {
    type Err = SkillNameError;
    fn from_str(text: &str) -> Result<Self, SkillNameError> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        match text.len() <= MAX_CHARS && text.split('-').all(is_word) {
            true => Ok(Self(text.to_owned())),
            false => Err(SkillNameError(text.chars().take(MAX_CHARS + 1).collect())),
        }
    }
}

impl TryFrom<String> for SkillName {
    type Error = SkillNameError;
    fn try_from(text: String) -> Result<Self, SkillNameError> {
        text.parse()
    }
}

impl From<SkillName> for String {
    fn from(name: SkillName) -> Self {
        name.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::SkillName;

    #[test]
    fn names_follow_the_rules_of_agent_skills() {
        for good in ["a", "code-review", "a1-2b", &"x".repeat(64)] {
            assert!(good.parse::<SkillName>().is_ok(), "{good}");
        }
        for bad in ["", "-", "-a", "a-", "a--b", "A", "a_b", "a b", "é", "../a", "a/b", ".", "a\0", &"x".repeat(65)] {
            assert!(bad.parse::<SkillName>().is_err(), "{bad:?}");
        }
    }
}

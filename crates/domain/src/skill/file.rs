//! Files beside the `SKILL.md`: where they may lie, and how much there may be of them.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

pub const SKILL_FILE: &str = "SKILL.md";
pub const MAX_FILES: usize = 200;
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
pub const MAX_TOTAL_BYTES: u64 = 8 * 1024 * 1024;
const MAX_PATH_BYTES: usize = 255;
const MAX_DEPTH: usize = 8;

/// A path beneath the skill's own folder; it cannot lead out of it (invariant 18).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 255)]
pub struct FilePath(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} cannot be the path of a file in a skill: {1}")]
pub struct Error(String, &'static str);

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileEntry {
    pub path: FilePath,
    pub bytes: u64,
    pub executable: bool,
}

/// A file with what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillFile {
    pub path: FilePath,
    pub executable: bool,
    pub content: Vec<u8>,
}

impl FilePath {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Both cannot be there: they are the same, or one would be a folder of the other.
    pub fn collides(&self, other: &Self) -> bool {
        let is_beneath = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self == other || is_beneath(&self.0, &other.0) || is_beneath(&other.0, &self.0)
    }
}

impl FromStr for FilePath {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |why| Err(Error(text.chars().take(80).collect(), why));
        let parts: Vec<&str> = text.split('/').collect();
        if text.len() > MAX_PATH_BYTES || parts.len() > MAX_DEPTH {
            return refused("it is too long; at most 255 bytes and 8 levels");
        }
        if text.contains(|c: char| c.is_control() || c == '\\' || c == ':') {
            return refused("it holds a control character, a backslash or a colon");
        }
        // Hidden ones are left out as well: they are settings of tools, not content.
        if parts.iter().any(|part| part.is_empty() || part.starts_with('.') || part.trim() != *part) {
            return refused("each part is a visible name, without . or .. or a leading dot");
        }
        if text.eq_ignore_ascii_case(SKILL_FILE) {
            return refused("SKILL.md is made from the skill itself");
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for FilePath {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<FilePath> for String {
    fn from(path: FilePath) -> Self {
        path.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::FilePath;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn a_file_cannot_stand_where_others_need_a_folder() {
        let path = |text: &str| text.parse::<FilePath>().unwrap();
        for (one, other, collide) in
            [("a", "a", true), ("a", "a/b", true), ("a/b/c", "a/b", true), ("a", "ab/c", false), ("a/b", "a/c", false)]
        {
            assert_eq!(path(one).collides(&path(other)), collide, "{one} {other}");
        }
    }

    #[test]
    fn paths_stay_beneath_their_folder() {
        for good in ["a", "scripts/run.sh", "a b/ü.md", "references/SKILL.md"] {
            assert!(good.parse::<FilePath>().is_ok(), "{good}");
        }
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            ".git/config",
            "a\\b",
            "C:a",
            "a\nb",
            "a\0",
            "SKILL.md",
            "skill.MD",
            " a",
            "a/b /c",
            &"x/".repeat(9),
            &"y".repeat(256),
        ] {
            assert!(bad.parse::<FilePath>().is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_plain(text in r"[a-zA-Z./\\ \x00-\x1f:]{0,20}") {
            if let Ok(path) = text.parse::<FilePath>() {
                let mut parts = Path::new(path.as_str()).components();
                prop_assert!(parts.all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}

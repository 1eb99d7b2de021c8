//! The files of a skill besides `SKILL.md`: allowed paths and size limits.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

pub const SKILL_FILE: &str = "SKILL.md";
pub const MAX_FILES: usize = 200;
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
pub const MAX_TOTAL_BYTES: u64 = 8 * 1024 * 1024;
const MAX_PATH_BYTES: usize = 255;
const MAX_DEPTH: usize = 8;

/// A path beneath the skill's folder; it cannot lead out of it (invariant 18).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, max_length = 255)]
pub struct FilePath(String);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a valid path of a file in a skill: {1}")]
pub struct SkillPathError(String, &'static str);

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileEntry {
    pub path: FilePath,
    pub bytes: u64,
    pub executable: bool,
}

/// A file with its content.
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

    /// Returns whether both paths cannot exist together: they are equal, or one would be a folder of the other.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let is_beneath = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self == other || is_beneath(&self.0, &other.0) || is_beneath(&other.0, &self.0)
    }
}

impl FromStr for FilePath {
    type Err = SkillPathError;
    fn from_str(text: &str) -> Result<Self, SkillPathError> {
        let invalid = |why| Err(SkillPathError(text.chars().take(80).collect(), why));
        let parts: Vec<&str> = text.split('/').collect();
        if text.len() > MAX_PATH_BYTES || parts.len() > MAX_DEPTH {
            return invalid("it is too long; the limit is 255 bytes and 8 levels");
        }
        if text.contains(|c: char| c.is_control() || c == '\\' || c == ':') {
            return invalid("it contains a control character, a backslash or a colon");
        }
        // Hidden files are not allowed either: they are settings of tools, not content.
        if parts.iter().any(|part| part.is_empty() || part.starts_with('.') || part.trim() != *part) {
            return invalid("a part is empty, begins with a dot, or begins or ends with a space");
        }
        if text.eq_ignore_ascii_case(SKILL_FILE) {
            return invalid("SKILL.md is generated from the skill");
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for FilePath {
    type Error = SkillPathError;
    fn try_from(text: String) -> Result<Self, SkillPathError> {
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
    fn a_file_conflicts_with_a_folder_of_the_same_path() {
        let path = |text: &str| text.parse::<FilePath>().unwrap();
        for (one, other, collide) in
            [("a", "a", true), ("a", "a/b", true), ("a/b/c", "a/b", true), ("a", "ab/c", false), ("a/b", "a/c", false)]
        {
            assert_eq!(path(one).conflicts_with(&path(other)), collide, "{one} {other}");
        }
    }

    #[test]
    fn only_paths_beneath_the_folder_are_valid() {
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
        fn valid_paths_have_only_plain_components(text in r"[a-zA-Z./\\ \x00-\x1f:]{0,20}") {
            if let Ok(path) = text.parse::<FilePath>() {
                let mut parts = Path::new(path.as_str()).components();
                prop_assert!(parts.all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}

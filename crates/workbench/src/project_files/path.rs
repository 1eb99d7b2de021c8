//! Paths beneath a project's folder, as people and agents write them.

use super::ProjectFilesError;
use crate::files::MAX_PATH_DEPTH;
use std::{fmt, path::Path};

/// Where the folder is inside of its sandbox. Agents see it there, so they may name files by it.
const GUEST_FOLDER: &str = "/workspace";
/// The limit of Linux file systems.
const MAX_NAME_BYTES: usize = 255;

/// A checked path: plain names, separated by slashes. Empty for the folder itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProjectPath(String);

impl ProjectPath {
    /// Accepts `src/a.py`, `./src/a.py`, `src/` and `/workspace/src/a.py`.
    pub fn parse(text: &str) -> Result<Self, ProjectFilesError> {
        let refused = || ProjectFilesError::Path(text.chars().take(200).collect());
        let beneath = match text.strip_prefix(GUEST_FOLDER) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest.trim_start_matches('/'),
            _ => text,
        };
        if beneath == "/" {
            return Err(refused());
        }
        let beneath = beneath.strip_suffix('/').unwrap_or(beneath);
        if beneath.is_empty() || beneath == "." {
            return Ok(Self::folder());
        }
        let names: Vec<&str> = beneath.split('/').skip_while(|name| *name == ".").collect();
        match names.len() <= MAX_PATH_DEPTH && names.iter().all(|name| is_name(name)) {
            true => Ok(Self(names.join("/"))),
            false => Err(refused()),
        }
    }

    /// The project's folder itself.
    pub fn folder() -> Self {
        Self(String::new())
    }

    pub fn is_folder_itself(&self) -> bool {
        self.0.is_empty()
    }

    /// A path beneath this one.
    pub fn join(&self, beneath: &str) -> Result<Self, ProjectFilesError> {
        match self.0.is_empty() {
            true => Self::parse(beneath),
            false => Self::parse(&format!("{}/{beneath}", self.0)),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name; empty for the folder itself.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that contains it.
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default())
    }
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.len() <= MAX_NAME_BYTES
        && !name.chars().any(|c| c.is_control() || c == '\\')
}

impl AsRef<Path> for ProjectPath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for ProjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "the folder of the project" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::ProjectPath;

    #[test]
    fn only_plain_paths_are_accepted() {
        for (text, path) in [
            ("src/a.py", "src/a.py"),
            ("./src/a.py", "src/a.py"),
            ("/workspace/src/a.py", "src/a.py"),
            ("/workspace", ""),
            ("/workspace/", ""),
            ("", ""),
            (".", ""),
            ("docs/", "docs"),
            ("ä ö.txt", "ä ö.txt"),
        ] {
            assert_eq!(ProjectPath::parse(text).unwrap().as_str(), path, "{text:?}");
        }
        let (long, deep) = ("x".repeat(256), "a/".repeat(65));
        for bad in [
            "..",
            "../a",
            "a/../b",
            "/etc/passwd",
            "/workspaces/a",
            "a//b",
            "a/./b",
            "a\\b",
            "a\0b",
            "a\nb",
            "/",
            long.as_str(),
            deep.as_str(),
            "C:\\a",
        ] {
            assert!(ProjectPath::parse(bad).is_err(), "{bad:?}");
        }
        let path = ProjectPath::parse("a/b/c.txt").unwrap();
        assert_eq!((path.name(), path.parent().as_str()), ("c.txt", "a/b"));
        assert_eq!(ProjectPath::folder().join("x").unwrap().as_str(), "x");
        assert!(path.join("../x").is_err());
    }
}

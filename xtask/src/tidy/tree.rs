//! The files of the repository with their text, and what a rule says about one of them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::repository::{XtaskResult, cannot_run, spell};

/// Paths are relative to the root and use `/`. Files that are not text are listed without content.
pub struct SourceTree {
    files: BTreeMap<String, Option<String>>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TidyFinding {
    path: String,
    line: usize,
    message: String,
}

impl TidyFinding {
    /// About a line, counted from 1.
    pub fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }

    #[cfg(test)]
    pub fn line(&self) -> usize {
        self.line
    }

    /// About the file as a whole.
    pub fn on(path: &str, message: impl Into<String>) -> Self {
        Self::at(path, 1, message)
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

impl SourceTree {
    /// The files that git tracks or would track, with their current content.
    pub fn read(root: &Path) -> XtaskResult<Self> {
        let mut command = Command::new("git");
        command.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let output = command.output().map_err(|error| cannot_run(&command, &error))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{}` ended with {}: {complaint}", spell(&command), output.status));
        }
        let listing = String::from_utf8_lossy(&output.stdout);
        let mut files = BTreeMap::new();
        for path in listing.split('\0').filter(|path| !path.is_empty()) {
            let on_disk = root.join(path);
            // Git still lists a deleted file until the deletion is committed.
            if on_disk.exists() {
                let text = std::fs::read(on_disk).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                files.insert(path.to_owned(), text);
            }
        }
        Ok(Self { files })
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| (path.to_string(), Some(text.to_string()));
        Self { files: files.iter().map(own).collect() }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    pub fn rust_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether a file or a folder with files has this path.
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(inside.clone()..).next().is_some_and(|(first, _)| first.starts_with(&inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_files_and_their_folders() {
        let tree = SourceTree::of(&[("docs/api/rooms.md", ""), ("docs-old.md", "")]);
        assert!(tree.has("docs/api/rooms.md") && tree.has("docs/api") && tree.has("docs/"));
        assert!(!tree.has("docs/ap") && !tree.has("docs-old"));
    }

    #[test]
    fn a_finding_reads_like_a_compiler_message() {
        assert_eq!(TidyFinding::at("a.rs", 7, "too long").to_string(), "a.rs:7: too long");
    }
}

//! What a release is made from: the version in Cargo.toml and the commit in git.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::repository::{XtaskResult, variable};

#[derive(Debug, PartialEq, Eq)]
pub struct ReleaseSource {
    pub version: String,
    /// None outside a git repository, as in an unpacked source archive.
    pub commit: Option<ReleaseCommit>,
    /// Seconds since 1970, for all files in the packages: the same source gives the same bytes.
    pub timestamp: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ReleaseCommit {
    /// Ends with `-dirty` when files differ from the commit.
    pub id: String,
    pub date: String,
}

impl ReleaseSource {
    pub fn read(root: &Path) -> XtaskResult<Self> {
        let manifest = root.join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).map_err(|error| format!("cannot read {}: {error}", manifest.display()))?;
        let version = workspace_version(&text)
            .ok_or_else(|| format!("{} has no version in [workspace.package]", manifest.display()))?;
        let given = variable("SOURCE_DATE_EPOCH").and_then(|value| value.to_str()?.parse().ok());
        let committed = || git(root, &["show", "-s", "--format=%ct"])?.parse().ok();
        let timestamp = given.or_else(committed).unwrap_or(0);
        Ok(Self { version: version.to_owned(), commit: read_commit(root), timestamp })
    }

    /// Tells the binary which commit it is built from.
    pub fn name_commit(&self, build: &mut Command) {
        if let Some(ReleaseCommit { id, date }) = &self.commit {
            build.env("GREENROOM_BUILT_FROM", format!("{id} {date}"));
        }
    }

    /// What `greenroom --version` has to print.
    pub fn version_line(&self) -> String {
        match &self.commit {
            Some(ReleaseCommit { id, date }) => format!("greenroom {} ({id} {date})", self.version),
            None => format!("greenroom {} (development build)", self.version),
        }
    }
}

fn read_commit(root: &Path) -> Option<ReleaseCommit> {
    let id = git(root, &["rev-parse", "--short=10", "HEAD"])?;
    let date = git(root, &["show", "-s", "--format=%cs"])?;
    let changes = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    let id = if changes.is_empty() { id } else { format!("{id}-dirty") };
    Some(ReleaseCommit { id, date })
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // Otherwise `git status` would write the index, for which somebody else may be waiting.
    command.arg("--no-optional-locks").current_dir(root).args(arguments).stdin(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn workspace_version(manifest: &str) -> Option<&str> {
    let section = manifest.lines().skip_while(|line| line.trim() != "[workspace.package]").skip(1);
    let mut own = section.take_while(|line| !line.starts_with('['));
    let value = own.find_map(|line| line.strip_prefix("version")?.trim_start().strip_prefix('='))?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_of_the_workspace() {
        let manifest = "[workspace]\nresolver = \"3\"\n[workspace.package]\nedition = \"2024\"\nversion = \"0.1.0\"\n\
                        [workspace.dependencies]\nversion = \"9\"\n";
        assert_eq!(workspace_version(manifest), Some("0.1.0"));
        assert_eq!(workspace_version("[workspace.package]\n[package]\nversion = \"1\"\n"), None);
    }

    #[test]
    fn the_version_line_names_the_commit() {
        let commit = Some(ReleaseCommit { id: "b32665401f".into(), date: "2026-11-17".into() });
        let source = ReleaseSource { version: "0.1.0".into(), commit, timestamp: 0 };
        assert_eq!(source.version_line(), "greenroom 0.1.0 (b32665401f 2026-11-17)");
        let source = ReleaseSource { commit: None, ..source };
        assert_eq!(source.version_line(), "greenroom 0.1.0 (development build)");
    }

    #[test]
    fn a_folder_without_git_has_no_commit() {
        let folder = std::env::temp_dir().join(format!("xtask-source-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Cargo.toml"), "[workspace.package]\nversion = \"2.0.0-rc.1\"\n").unwrap();
        let source = ReleaseSource::read(&folder).unwrap();
        assert_eq!((source.version.as_str(), source.commit), ("2.0.0-rc.1", None));
        fs::remove_dir_all(&folder).unwrap();
    }
}

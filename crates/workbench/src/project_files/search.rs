//! Searches the text of a project's files with ripgrep's engine and rules: hidden files, binary files and what a `.gitignore`
//! names are left out. The walk is ours, because everything goes through the held root.

use super::{ProjectFiles, ProjectFilesError, ProjectPath};
use crate::files::{EntryKind, read_to_limit};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, sinks::UTF8};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Files that are searched at once.
const MAX_FILES: usize = 50_000;
/// Entries of one folder.
const MAX_ENTRIES: usize = 10_000;
/// Larger files are not text that somebody has written.
const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_LINE_CHARS: usize = 300;
const MAX_GITIGNORE_BYTES: u64 = 256 << 10;
/// Keeps a hostile pattern from taking all memory.
const MAX_REGEX_BYTES: usize = 4 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSearch<'a> {
    /// A regular expression.
    pub pattern: &'a str,
    /// Only files with such names, such as `*.py`.
    pub names: Option<&'a str>,
    pub folder: &'a ProjectPath,
    /// The maximum number of lines to find.
    pub limit: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundLine {
    pub path: ProjectPath,
    pub line: u64,
    pub text: String,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SearchReport {
    pub lines: Vec<FoundLine>,
    /// Whether there may be more: a limit was reached, or the search was canceled.
    pub is_truncated: bool,
}

/// A folder, and the rules of its `.gitignore`.
type FolderRules = (ProjectPath, Gitignore);

impl ProjectFiles {
    /// Finds the lines that match. `is_canceled` is asked before each file.
    pub fn search(
        &self,
        search: &FileSearch<'_>,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<SearchReport, ProjectFilesError> {
        let invalid = |error: &dyn std::fmt::Display| ProjectFilesError::Pattern(error.to_string());
        let matcher = RegexMatcherBuilder::new()
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .line_terminator(Some(b'\n'))
            .build(search.pattern)
            .map_err(|error| invalid(&error))?;
        let names = search.names.map(|names| rules([names])).transpose().map_err(|error| invalid(&error))?;
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .heap_limit(Some(2 * MAX_FILE_BYTES as usize))
            .build();
        let mut report = SearchReport::default();
        let mut folders: Vec<(ProjectPath, Vec<FolderRules>)> = vec![(search.folder.clone(), Vec::new())];
        let mut left = MAX_FILES;
        while let Some((folder, mut above)) = folders.pop() {
            let listed = match self.list(&folder, MAX_ENTRIES) {
                Ok(listed) => listed,
                // Removed meanwhile, unless it is the folder that was asked for.
                Err(error) if above.is_empty() => return Err(error),
                Err(_) => continue,
            };
            report.is_truncated |= listed.is_truncated;
            above.push((folder.clone(), self.rules_of(&folder)));
            for entry in listed.entries {
                if is_canceled() || report.lines.len() >= search.limit || left == 0 {
                    report.is_truncated = true;
                    return Ok(report);
                }
                let Ok(path) = folder.join(&entry.name) else { continue };
                let is_folder = entry.kind == EntryKind::Folder;
                if entry.name.starts_with('.') || is_ignored(&above, &path, is_folder) {
                    continue;
                }
                if is_folder {
                    folders.push((path, above.clone()));
                } else if entry.kind == EntryKind::File
                    && entry.bytes <= MAX_FILE_BYTES
                    && names.as_ref().is_none_or(|names| names.matched(path.as_str(), false).is_ignore())
                {
                    left -= 1;
                    self.search_file(&mut searcher, &matcher, &path, search.limit, &mut report);
                }
            }
        }
        Ok(report)
    }

    fn search_file(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        path: &ProjectPath,
        limit: usize,
        report: &mut SearchReport,
    ) {
        let Ok(opened) = self.open_file(path) else { return };
        let found = UTF8(|line, text| {
            let text = text.trim_end().chars().take(MAX_LINE_CHARS).collect();
            report.lines.push(FoundLine { path: path.clone(), line, text });
            Ok(report.lines.len() < limit)
        });
        // A file that is not text, or is being written, does not end the search.
        if let Err(error) = searcher.search_file(matcher, &opened.file, found) {
            tracing::debug!(%error, "a file of a project was not searched to its end");
        }
    }

    fn rules_of(&self, folder: &ProjectPath) -> Gitignore {
        let read = || {
            let file = self.open_file(&folder.join(".gitignore").ok()?).ok()?.file;
            String::from_utf8(read_to_limit(file, MAX_GITIGNORE_BYTES).ok()?).ok()
        };
        rules(read().unwrap_or_default().lines()).unwrap_or_else(|_| Gitignore::empty())
    }
}

/// Rules without a file: a broken line is left out, unless it is the only one.
fn rules<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    let mut broken = None;
    let mut usable = 0;
    for line in lines {
        match builder.add_line(None, line) {
            Ok(_) => usable += 1,
            Err(error) => broken = Some(error),
        }
    }
    match broken {
        Some(error) if usable == 0 => Err(error),
        _ => builder.build(),
    }
}

/// The rules of the nearest folder decide.
fn is_ignored(above: &[FolderRules], path: &ProjectPath, is_folder: bool) -> bool {
    for (folder, rules) in above.iter().rev() {
        let beneath = path.as_str().strip_prefix(folder.as_str()).unwrap_or(path.as_str()).trim_start_matches('/');
        let found = rules.matched(beneath, is_folder);
        if !found.is_none() {
            return found.is_ignore();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::FileSearch;
    use crate::project_files::{DiskQuota, ProjectFiles, ProjectFilesError, ProjectPath, QuotaLimits};
    use std::{fs, os::unix::fs::symlink, sync::Arc};

    #[test]
    fn lines_are_found_as_ripgrep_finds_them_and_never_outside() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret.py"), "needle outside\n").unwrap();
        for (path, content) in [
            ("a.py", "one\nneedle = 1\n"),
            ("docs/b.md", "a needle\n"),
            (".hidden/c.py", "needle\n"),
            ("target/d.py", "needle\n"),
            ("src/keep/e.py", "needle\n"),
            ("src/keep/f.log", "needle\n"),
            ("binary", "needle\0\n"),
            (".gitignore", "target/\n*.log\n"),
            ("src/keep/.gitignore", "!f.log\n"),
        ] {
            let file = place.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        symlink(outside.path(), place.path().join("link")).unwrap();
        symlink(outside.path().join("secret.py"), place.path().join("link.py")).unwrap();
        let limits = QuotaLimits { bytes: u64::MAX, files: u64::MAX, free_bytes: 0 };
        let files = ProjectFiles::open(place.path(), Arc::new(DiskQuota::default()), limits).unwrap();
        let find = |pattern: &str, names: Option<&str>, folder: &str, limit: usize| {
            let folder = ProjectPath::parse(folder).unwrap();
            let found = files.search(&FileSearch { pattern, names, folder: &folder, limit }, &|| false)?;
            let mut lines: Vec<String> =
                found.lines.iter().map(|at| format!("{}:{}:{}", at.path, at.line, at.text)).collect();
            lines.sort();
            Ok::<_, ProjectFilesError>((lines, found.is_truncated))
        };
        let all = ["a.py:2:needle = 1", "docs/b.md:1:a needle", "src/keep/e.py:1:needle", "src/keep/f.log:1:needle"];
        assert_eq!(find("needle", None, "", 100).unwrap(), (all.map(str::to_owned).to_vec(), false));
        assert_eq!(find(r"^needle\b", Some("*.py"), "", 100).unwrap().0, [all[0], all[2]]);
        assert_eq!(find("needle", None, "src", 100).unwrap().0, [all[2], all[3]]);
        let first = find("needle", None, "", 1).unwrap();
        assert_eq!((first.0.len(), first.1), (1, true));
        assert!(matches!(find("(", None, "", 1), Err(ProjectFilesError::Pattern(_))));
        assert!(find(&"a{1000}".repeat(1000), None, "", 1).is_err(), "it would take too much memory");
        assert!(find("x", None, "missing", 1).is_err());
        assert!(find("needle", None, "link", 1).is_err());
    }
}

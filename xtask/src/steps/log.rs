//! A log file in `target/xtask`, begun again by each command.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::repository::XtaskResult;

pub struct LogFile {
    path: PathBuf,
    /// The path as people read it, from the root of the repository if it is inside.
    name: String,
    /// None once it cannot be written any more.
    file: Mutex<Option<File>>,
}

impl LogFile {
    pub fn create(folder: &Path, name: &str, root: &Path) -> XtaskResult<Self> {
        let path = folder.join(format!("{name}.log"));
        let cannot = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        fs::create_dir_all(folder).map_err(cannot)?;
        let file = Mutex::new(Some(File::create(&path).map_err(cannot)?));
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        Ok(Self { path, name, file })
    }

    pub fn beside(&self, name: &str, root: &Path) -> XtaskResult<Self> {
        Self::create(self.path.parent().unwrap_or(Path::new(".")), name, root)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A full disk must not end the work: it is reported once, and logging stops.
    pub fn line(&self, line: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = file.as_mut().map(|file| writeln!(file, "{line}")) {
            eprintln!("cannot write {}: {error}; the rest is not logged", self.name);
            *file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_begins_empty_and_keeps_its_lines() {
        let root = std::env::temp_dir().join(format!("xtask-log-{}", std::process::id()));
        let folder = root.join("target/xtask");
        LogFile::create(&folder, "serve", &root).unwrap().line("from an earlier run");
        let log = LogFile::create(&folder, "serve", &root).unwrap();
        let other = log.beside("test-rust", &root).unwrap();
        log.line("one");
        log.line("two");
        other.line("three");
        assert_eq!(fs::read_to_string(folder.join("serve.log")).unwrap(), "one\ntwo\n");
        assert_eq!((log.name(), other.name()), ("target/xtask/serve.log", "target/xtask/test-rust.log"));
        fs::remove_dir_all(&root).unwrap();
    }
}

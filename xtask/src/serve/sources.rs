//! Notices when a source of the server changes, by the times of the files: the standard library has no other way.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What a server is built from: code, manifests, embedded settings and migrations.
const ENDINGS: &[&str] = &["rs", "toml", "sql"];
/// In a crate's folder. Changed tests do not change the server.
const NOT_BUILT: &[&str] = &["tests"];

pub type SourceTimes = BTreeMap<PathBuf, SystemTime>;

/// Files that vanish while they are read are left out; the next look shows them as changed.
pub fn times(root: &Path) -> SourceTimes {
    let mut times = SourceTimes::new();
    add(&root.join("crates"), &mut times);
    add_file(&root.join("Cargo.toml"), &mut times);
    times
}

/// Changed, new and removed files.
pub fn changes<'a>(before: &'a SourceTimes, now: &'a SourceTimes) -> Vec<&'a Path> {
    let is_changed = |path: &&PathBuf| before.get(*path) != now.get(*path);
    let removed = before.keys().filter(|path| !now.contains_key(*path));
    now.keys().filter(is_changed).chain(removed).map(PathBuf::as_path).collect()
}

fn add(folder: &Path, times: &mut SourceTimes) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !NOT_BUILT.iter().any(|folder| name == *folder) => add(&path, times),
            Ok(kind) if kind.is_file() => add_file(&path, times),
            _ => {}
        }
    }
}

fn add_file(path: &Path, times: &mut SourceTimes) {
    let is_source = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    if is_source && let Ok(modified) = fs::metadata(path).and_then(|metadata| metadata.modified()) {
        times.insert(path.to_owned(), modified);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn changed_new_and_removed_files_are_noticed() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let of = |files: &[(&str, u64)]| -> SourceTimes {
            files.iter().map(|(path, seconds)| (PathBuf::from(path), at(*seconds))).collect()
        };
        let before = of(&[("a.rs", 1), ("b.rs", 1), ("c.rs", 1)]);
        assert_eq!(changes(&before, &before), Vec::<&Path>::new());
        let now = of(&[("a.rs", 1), ("b.rs", 2), ("d.rs", 1)]);
        assert_eq!(changes(&before, &now), [Path::new("b.rs"), Path::new("d.rs"), Path::new("c.rs")]);
        let older = of(&[("a.rs", 0), ("b.rs", 1), ("c.rs", 1)]);
        assert_eq!(changes(&before, &older), [Path::new("a.rs")], "git may restore an older file");
    }

    #[test]
    fn only_sources_of_the_server_are_watched() {
        let root = std::env::temp_dir().join(format!("xtask-sources-{}", std::process::id()));
        for file in ["Cargo.toml", "crates/a/src/lib.rs", "crates/a/tests/it/main.rs", "crates/a/notes.md", "web/a.rs"]
        {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found: Vec<PathBuf> = times(&root).into_keys().collect();
        assert_eq!(found, [root.join("Cargo.toml"), root.join("crates/a/src/lib.rs")]);
        fs::remove_dir_all(&root).unwrap();
    }
}

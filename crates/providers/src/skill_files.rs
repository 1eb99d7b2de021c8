//! Reads files of a skill for agents on model APIs. An agent may be able to write in the folders of its skills, so
//! everything is opened beneath them (invariant 18).

use domain::skill::SKILL_FILE;
use std::{
    io,
    path::{Path, PathBuf},
};
use workbench::files::{EntryKind, Root, RootError};

const MAX_FILE_BYTES: u64 = 256 * 1024;
const MAX_LISTED: usize = 100;
/// How many entries of one folder are looked at.
const MAX_ENTRIES: usize = 1000;

/// Reads the `SKILL.md` of a skill. Blocks.
pub(crate) fn read_document(folder: &Path) -> io::Result<String> {
    read_file(folder, SKILL_FILE)
}

/// Reads one of a skill's files. Blocks.
pub(crate) fn read_file(folder: &Path, file: &str) -> io::Result<String> {
    let bytes = Root::open_following_links(folder)?.read(file, MAX_FILE_BYTES).map_err(|error| match error {
        RootError::InvalidPath | RootError::Outside => {
            io::Error::new(io::ErrorKind::PermissionDenied, "the path is outside of the skill's folder")
        }
        error => error.into(),
    })?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Lists the skill's other files by name, at most two folders deep and [`MAX_LISTED`]. Blocks.
pub(crate) fn other_files(folder: &Path) -> io::Result<Vec<String>> {
    let root = Root::open_following_links(folder)?;
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in root.list(&folder, MAX_ENTRIES)?.entries {
            let path = folder.join(&entry.name);
            match entry.kind {
                _ if entry.name.as_encoded_bytes().starts_with(b".") || files.len() >= MAX_LISTED => {}
                EntryKind::Folder if depth < 2 => folders.push((path, depth + 1)),
                EntryKind::File if path != Path::new(SKILL_FILE) => files.push(path.display().to_string()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::{other_files, read_document, read_file};
    use std::{
        fs,
        os::unix::fs::symlink,
        path::{Path, PathBuf},
        sync::atomic::{AtomicBool, Ordering},
        time::{Duration, Instant},
    };
    use workbench::files::Root;

    fn skill(dir: &Path) -> PathBuf {
        fs::create_dir_all(dir.join("s/more")).unwrap();
        fs::write(dir.join("s/SKILL.md"), "First this.").unwrap();
        fs::write(dir.join("s/more/a.txt"), "further").unwrap();
        fs::write(dir.join("secret"), "secret").unwrap();
        dir.join("s")
    }

    #[test]
    fn files_are_listed_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = skill(dir.path());
        assert_eq!(read_document(&folder).unwrap(), "First this.");
        assert_eq!(other_files(&folder).unwrap(), ["more/a.txt"]);
        assert_eq!(read_file(&folder, "more/a.txt").unwrap(), "further");
    }

    #[test]
    fn invariant_18_beneath_paths_outside_of_a_skill_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let folder = skill(dir.path());
        symlink(dir.path().join("secret"), folder.join("link")).unwrap();
        for path in ["../secret", "more/../../secret", "/etc/hostname", "link"] {
            let error = read_file(&folder, path).unwrap_err();
            assert!(error.to_string().contains("is outside of"), "{path}: {error}");
        }
        assert_eq!(other_files(&folder).unwrap(), ["more/a.txt"]);
    }

    /// A path that was checked and then opened again would sometimes show the secret here.
    #[test]
    fn invariant_18_beneath_a_folder_that_turns_into_a_link_shows_nothing_outside() {
        let dir = tempfile::tempdir().unwrap();
        let folder = skill(dir.path());
        fs::write(dir.path().join("a.txt"), "secret").unwrap();
        symlink(dir.path(), dir.path().join("s/link")).unwrap();
        let (ended, deadline) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(60));
        let (mut read, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let root = Root::open(&folder).unwrap();
                while !ended.load(Ordering::Relaxed) {
                    root.exchange("more", "link").unwrap();
                }
            });
            while (read < 10_000 || refused < 10_000) && Instant::now() < deadline {
                match read_file(&folder, "more/a.txt") {
                    Ok(text) if text == "further" => read += 1,
                    Ok(_) => break,
                    Err(_) => refused += 1,
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert!(
            read >= 10_000 && refused >= 10_000,
            "{read} read, {refused} refused, then the file outside or the deadline"
        );
    }
}

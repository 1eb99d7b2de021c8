//! A skill on disk, with a digest by which a running program notices that it has changed.

use super::copy::FolderContents;
use crate::files::Root;
use domain::hex;
use sha2::{Digest as _, Sha256};
use std::{
    collections::BTreeMap,
    fmt, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// A folder with a `SKILL.md`.
#[derive(Clone, Debug)]
pub struct SkillFolder {
    pub name: String,
    pub path: PathBuf,
    pub digest: SkillDigest,
}

impl SkillFolder {
    /// Reads all files of the folder, within the limits for skills. Blocks.
    pub fn read(name: impl Into<String>, path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let digest = FolderContents::of(Root::open_following_links(&path)?)?.digest()?;
        Ok(Self { name: name.into(), path, digest })
    }
}

/// Two folders are equal if they have the same name and content: a stored skill is in another folder in every run.
impl PartialEq for SkillFolder {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.digest == other.digest
    }
}

impl Eq for SkillFolder {}

/// Identifies the content of a folder: the path, the executable bit and the content of every file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SkillDigest([u8; 32]);

impl SkillDigest {
    pub fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Debug for SkillDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SkillDigest({})", hex::encode(&self.0))
    }
}

/// Collects the files of a folder in any order.
#[derive(Default)]
pub(super) struct SkillDigestBuilder(BTreeMap<Vec<u8>, (bool, [u8; 32])>);

impl SkillDigestBuilder {
    pub fn add(&mut self, path: &Path, executable: bool, content: &[u8]) {
        self.0.insert(path.as_os_str().as_bytes().to_vec(), (executable, Sha256::digest(content).into()));
    }

    pub fn finish(self) -> SkillDigest {
        let mut digest = Sha256::new();
        for (path, (executable, content)) in self.0 {
            // With its length, so that no other list of files gives the same bytes.
            digest.update((path.len() as u64).to_be_bytes());
            digest.update(path);
            digest.update([u8::from(executable)]);
            digest.update(content);
        }
        SkillDigest(digest.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::SkillFolder;
    use std::{
        fs,
        os::unix::fs::PermissionsExt as _,
        path::Path,
        time::{Duration, SystemTime},
    };

    fn read(folder: &Path) -> SkillFolder {
        SkillFolder::read("review", folder).unwrap()
    }

    #[test]
    fn any_change_of_any_file_changes_the_digest() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("review");
        fs::create_dir_all(folder.join("scripts")).unwrap();
        fs::write(folder.join("SKILL.md"), "text").unwrap();
        let script = folder.join("scripts/run.sh");
        fs::write(&script, "#!/bin/sh").unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        type Change = fn(&Path);
        let changes: [(&str, Change); 5] = [
            ("content of the same length", |folder| fs::write(folder.join("scripts/run.sh"), "#!/bin/ed").unwrap()),
            ("executable", |folder| {
                fs::set_permissions(folder.join("scripts/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("renamed", |folder| {
                fs::rename(folder.join("scripts/run.sh"), folder.join("scripts/do.sh")).unwrap();
            }),
            ("added", |folder| fs::write(folder.join("scripts/empty"), "").unwrap()),
            ("moved", |folder| fs::rename(folder.join("scripts/empty"), folder.join("empty")).unwrap()),
        ];
        for (what, change) in changes {
            let before = read(&folder);
            assert_eq!(before, read(&folder));
            change(&folder);
            for file in [folder.join("SKILL.md"), script.clone()].iter().filter(|file| file.exists()) {
                fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
            }
            assert_ne!(before, read(&folder), "{what}");
        }
    }

    #[test]
    fn the_same_content_in_another_folder_is_the_same_skill() {
        let root = tempfile::tempdir().unwrap();
        let folders = ["one", "two"].map(|run| root.path().join(run));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("SKILL.md"), "text").unwrap();
            fs::write(folder.join(super::super::MARKER), folder.to_str().unwrap()).unwrap();
        }
        assert_eq!(read(&folders[0]), read(&folders[1]));
        assert_ne!(read(&folders[0]), SkillFolder::read("other", &folders[0]).unwrap());
    }
}

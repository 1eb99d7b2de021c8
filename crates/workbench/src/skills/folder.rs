//! Reads a skill from the files of a folder or an archive.

use super::copy::FolderContents;
use crate::files::Root;
use domain::skill::{FilePath, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE, SkillFile};
use std::{io, path::Path};

/// A `SKILL.md` and the files next to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillBundle {
    /// The name of its folder, for a skill without a name.
    pub folder: Option<String>,
    pub document: String,
    pub files: Vec<SkillFile>,
    /// How many files were left out: hidden files and the like.
    pub skipped: usize,
}

/// Why a skill could not be imported or packed. The message is shown to the user.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SkillBundleError(pub String);

impl From<io::Error> for SkillBundleError {
    fn from(error: io::Error) -> Self {
        Self(format!("could not read the folder: {error}"))
    }
}

/// Reads a skill from a folder. Links out of the folder are not followed. Blocks.
pub fn read_folder(folder: &Path) -> Result<SkillBundle, SkillBundleError> {
    let contents = FolderContents::of(Root::open_following_links(folder).map_err(io::Error::from)?)?;
    bundle_of(&contents, folder.file_name().map(|name| name.to_string_lossy().into_owned()))
}

/// The skill in a folder of this name.
pub(super) fn bundle_of(contents: &FolderContents, name: Option<String>) -> Result<SkillBundle, SkillBundleError> {
    if contents.bytes() > MAX_TOTAL_BYTES {
        return Err(too_large());
    }
    let mut gathered = SkillBundleBuilder::default();
    for (path, executable, content) in contents.read()? {
        gathered.add(&path.to_string_lossy(), executable, content)?;
    }
    gathered.finish(name)
}

/// Collects the files of a skill, within the limits.
#[derive(Default)]
pub(super) struct SkillBundleBuilder {
    document: Option<String>,
    files: Vec<SkillFile>,
    bytes: u64,
    skipped: usize,
}

impl SkillBundleBuilder {
    pub fn add(&mut self, path: &str, executable: bool, content: Vec<u8>) -> Result<(), SkillBundleError> {
        self.bytes += content.len() as u64;
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(too_large());
        }
        if path == SKILL_FILE {
            let text =
                String::from_utf8(content).map_err(|_| SkillBundleError("its SKILL.md is not UTF-8 text".into()))?;
            self.document = Some(text);
            return Ok(());
        }
        if is_tool_leftover(path) {
            self.skipped += 1;
            return Ok(());
        }
        let path: FilePath = path.parse().map_err(|error| SkillBundleError(format!("{error}")))?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(SkillBundleError(format!("{path} is larger than {} MB", MAX_FILE_BYTES / 1024 / 1024)));
        }
        if let Some(other) = self.files.iter().find(|file| file.path.conflicts_with(&path)) {
            return Err(SkillBundleError(format!("the paths {path} and {} conflict", other.path)));
        }
        self.files.push(SkillFile { path, executable, content });
        match self.files.len() > MAX_FILES {
            true => Err(SkillBundleError(format!("it has more than {MAX_FILES} files"))),
            false => Ok(()),
        }
    }

    pub fn finish(mut self, folder: Option<String>) -> Result<SkillBundle, SkillBundleError> {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        let document = self.document.ok_or_else(|| SkillBundleError("it has no SKILL.md".into()))?;
        Ok(SkillBundle { folder, document, files: self.files, skipped: self.skipped })
    }
}

pub(super) fn too_large() -> SkillBundleError {
    SkillBundleError(format!("it is larger than {} MB", MAX_TOTAL_BYTES / 1024 / 1024))
}

/// Hidden files and metadata of other tools. `..` is not skipped, but rejected as a path.
fn is_tool_leftover(path: &str) -> bool {
    path.split('/').any(|part| part == "__MACOSX" || (part.starts_with('.') && !matches!(part, "." | "..")))
}

//! A skill as files: what a folder or an archive holds of one.

use super::copy::Contents;
use domain::skill::{FilePath, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, SKILL_FILE, SkillFile};
use std::{io, path::Path};

/// A `SKILL.md` and what lies beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bundle {
    /// The folder it lay in, for a skill that does not say its name.
    pub folder: Option<String>,
    pub document: String,
    pub files: Vec<SkillFile>,
    /// Hidden files and the like, which were left out.
    pub skipped: usize,
}

/// Why it cannot be taken; for whoever sent it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self(format!("the folder cannot be read: {error}"))
    }
}

/// Reads a skill from a folder. Links do not lead out of it. Blocks.
pub fn read(folder: &Path) -> Result<Bundle, Refusal> {
    let contents = Contents::of(folder)?;
    if contents.bytes() > MAX_TOTAL_BYTES {
        return Err(too_large());
    }
    let mut gathered = Gathered::default();
    for (place, executable, content) in contents.read()? {
        gathered.add(&place.to_string_lossy(), executable, content)?;
    }
    gathered.bundle(folder.file_name().map(|name| name.to_string_lossy().into_owned()))
}

/// Files of a skill as they come in, within the limits.
#[derive(Default)]
pub(super) struct Gathered {
    document: Option<String>,
    files: Vec<SkillFile>,
    bytes: u64,
    skipped: usize,
}

impl Gathered {
    pub fn add(&mut self, path: &str, executable: bool, content: Vec<u8>) -> Result<(), Refusal> {
        self.bytes += content.len() as u64;
        if self.bytes > MAX_TOTAL_BYTES {
            return Err(too_large());
        }
        if path == SKILL_FILE {
            let text = String::from_utf8(content).map_err(|_| Refusal("its SKILL.md is not UTF-8 text".into()))?;
            self.document = Some(text);
            return Ok(());
        }
        if is_litter(path) {
            self.skipped += 1;
            return Ok(());
        }
        let path: FilePath = path.parse().map_err(|error| Refusal(format!("{error}")))?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(Refusal(format!("{path} has more than {} MB", MAX_FILE_BYTES / 1024 / 1024)));
        }
        if let Some(other) = self.files.iter().find(|file| file.path.collides(&path)) {
            return Err(Refusal(format!("{path} and {} cannot both be there", other.path)));
        }
        self.files.push(SkillFile { path, executable, content });
        match self.files.len() > MAX_FILES {
            true => Err(Refusal(format!("it has more than {MAX_FILES} files"))),
            false => Ok(()),
        }
    }

    pub fn bundle(mut self, folder: Option<String>) -> Result<Bundle, Refusal> {
        self.files.sort_by(|a, b| a.path.cmp(&b.path));
        let document = self.document.ok_or_else(|| Refusal("there is no SKILL.md in it".into()))?;
        Ok(Bundle { folder, document, files: self.files, skipped: self.skipped })
    }
}

pub(super) fn too_large() -> Refusal {
    Refusal(format!("it holds more than {} MB", MAX_TOTAL_BYTES / 1024 / 1024))
}

/// What tools leave behind; `..` is no litter and is refused as a path.
fn is_litter(path: &str) -> bool {
    path.split('/').any(|part| part == "__MACOSX" || (part.starts_with('.') && !matches!(part, "." | "..")))
}

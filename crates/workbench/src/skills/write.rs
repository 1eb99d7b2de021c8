//! Writes skills to disk: the skills of one run go into the run's own folder, so that concurrent runs can use different
//! versions of the same skills. A change applies to the next run. `sync_folders` then copies them to where a program looks for them.

use super::{
    remove_if_exists,
    skill_folder::{SkillDigest, SkillDigestBuilder, SkillFolder},
    swap, temporary_folder_name,
};
use crate::files::Root;
use domain::skill::{SKILL_FILE, SkillFile, SkillName};
use std::{
    fs::{self, DirBuilder},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    time::Duration,
};

/// A skill with its parameters filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilledSkill {
    pub name: SkillName,
    /// The whole `SKILL.md`.
    pub document: String,
    pub files: Vec<SkillFile>,
}

/// Writes exactly these skills to `at`, each in a folder of its name. The whole folder appears, and is replaced,
/// atomically. Returns those folders. Blocks.
pub fn write_skills(skills: &[FilledSkill], at: &Path) -> io::Result<Vec<SkillFolder>> {
    let (Some(parent), Some(name)) = (at.parent(), at.file_name().and_then(|name| name.to_str())) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the folder for skills must have a name"));
    };
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let (parent, new) = (Root::open(parent)?, temporary_folder_name());
    parent.create_dir_all(&new, 0o700)?;
    let folder = parent.open_folder(&new)?;
    let written = skills.iter().try_for_each(|skill| skill.write(&folder)).and_then(|()| swap(&parent, &new, name));
    // The folder now holds the older version, or an unfinished one.
    written.and(remove_if_exists(&parent, &new))?;
    let folder = |skill: &FilledSkill| {
        let name = skill.name.to_string();
        SkillFolder { path: at.join(&name), name, digest: skill.digest() }
    };
    Ok(skills.iter().map(folder).collect())
}

/// Removes the skills of a run that has ended: its whole folder. Blocks.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes skills of runs that have not been modified for this long; a killed server leaves them behind. Blocks.
pub fn remove_older_than(folder: &Path, age: Duration) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let changed = entry.metadata()?.modified()?;
        if changed.elapsed().is_ok_and(|elapsed| elapsed > age) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

impl FilledSkill {
    fn write(&self, into: &Root) -> io::Result<()> {
        into.create_dir_all(self.name.as_str(), 0o700)?;
        let folder = into.open_folder(self.name.as_str())?;
        write_file(&folder, SKILL_FILE, self.document.as_bytes(), false)?;
        for file in &self.files {
            let path = file.path.as_str();
            if let Some(parent) = Path::new(path).parent() {
                folder.create_dir_all(parent, 0o700)?;
            }
            write_file(&folder, path, &file.content, file.executable)?;
        }
        Ok(())
    }

    fn digest(&self) -> SkillDigest {
        let mut digest = SkillDigestBuilder::default();
        digest.add(Path::new(SKILL_FILE), false, self.document.as_bytes());
        for file in &self.files {
            digest.add(Path::new(file.path.as_str()), file.executable, &file.content);
        }
        digest.finish()
    }
}

fn write_file(folder: &Root, path: &str, content: &[u8], executable: bool) -> io::Result<()> {
    folder.create_new(path, if executable { 0o700 } else { 0o600 })?.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::{FilledSkill, remove_folder, remove_older_than, write_skills};
    use crate::skills::SkillFolder;
    use domain::skill::SkillFile;
    use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

    fn skill(name: &str, document: &str) -> FilledSkill {
        let file = SkillFile { path: "scripts/run.sh".parse().unwrap(), executable: true, content: b"#!".to_vec() };
        FilledSkill { name: name.parse().unwrap(), document: document.into(), files: vec![file] }
    }

    #[test]
    fn the_skills_of_a_run_are_written_replaced_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("runs/one/skills");
        write_skills(&[skill("review", "v1"), skill("write", "w")], &at).unwrap();
        assert_eq!(fs::read_to_string(at.join("review/SKILL.md")).unwrap(), "v1");
        let script = at.join("review/scripts/run.sh");
        assert_eq!(fs::metadata(script).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o700);
        write_skills(&[skill("review", "v2")], &at).unwrap();
        assert_eq!(fs::read_to_string(at.join("review/SKILL.md")).unwrap(), "v2");
        assert!(!at.join("write").exists());
        assert_eq!(fs::read_dir(at.parent().unwrap()).unwrap().count(), 1, "nothing unfinished is left");
        for _ in 0..2 {
            remove_folder(at.parent().unwrap()).unwrap();
        }
        assert!(!at.exists());
    }

    #[test]
    fn the_digest_is_that_of_the_written_folder() {
        let root = tempfile::tempdir().unwrap();
        let write = |run: &str, document: &str| {
            let written = write_skills(&[skill("review", document)], &root.path().join(run).join("skills")).unwrap();
            assert_eq!(written[0].digest, SkillFolder::read("review", &written[0].path).unwrap().digest);
            written
        };
        assert_eq!(write("a", "same"), write("b", "same"), "the folder does not matter");
        assert_ne!(write("c", "same"), write("d", "thus"), "same length, written within a second");
    }

    #[test]
    fn only_old_entries_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("runs");
        remove_older_than(&folder, Duration::ZERO).unwrap();
        fs::create_dir_all(folder.join("one")).unwrap();
        remove_older_than(&folder, Duration::from_secs(3600)).unwrap();
        assert!(folder.join("one").exists());
        remove_older_than(&folder, Duration::ZERO).unwrap();
        assert!(!folder.join("one").exists());
    }
}

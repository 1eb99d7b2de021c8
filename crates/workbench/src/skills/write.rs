//! The skills of one run, in a folder that is the run's own: two runs with two versions at once do not disturb each other,
//! and a change applies to the next run.

use super::{swap, unfinished};
use domain::{
    skill::{SKILL_FILE, SkillFile, SkillName},
    time::Timestamp,
};
use std::{
    fs::{self, DirBuilder, OpenOptions},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::{Duration, SystemTime},
};

/// A skill with its parameters filled in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filled {
    pub name: SkillName,
    /// The whole `SKILL.md`.
    pub document: String,
    pub files: Vec<SkillFile>,
    /// When this version was made.
    pub made_at: Timestamp,
}

/// Makes `at` hold exactly these skills, each in a folder of its name. All of it appears, and is replaced, as a whole.
/// Blocks.
pub fn write(skills: &[Filled], at: &Path) -> io::Result<()> {
    let parent = at.parent().unwrap_or(at);
    DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    let new = unfinished(parent);
    DirBuilder::new().mode(0o700).create(&new)?;
    let written = skills
        .iter()
        .try_for_each(|skill| skill.write(&new))
        .and_then(|()| swap(&new, at, at.symlink_metadata().is_ok()));
    // What it holds now is the older folder, or what could not be finished.
    let cleaned = if new.exists() { fs::remove_dir_all(&new) } else { Ok(()) };
    written.and(cleaned)
}

/// Removes the folder of a run that has ended. Blocks.
pub fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes what lies in a folder and has not been changed for so long: a server that was killed could not. Blocks.
pub fn clear_older(folder: &Path, age: Duration) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let changed = entry.metadata()?.modified()?;
        if changed.elapsed().is_ok_and(|elapsed| elapsed > age) {
            clear(&entry.path())?;
        }
    }
    Ok(())
}

impl Filled {
    fn write(&self, into: &Path) -> io::Result<()> {
        let folder = into.join(self.name.as_str());
        let make = |folder: &Path| DirBuilder::new().recursive(true).mode(0o700).create(folder);
        make(&folder)?;
        self.write_file(&folder.join(SKILL_FILE), self.document.as_bytes(), false)?;
        for file in &self.files {
            // A `FilePath` cannot lead out of the folder (invariant 18).
            let path = folder.join(file.path.as_str());
            path.parent().map_or(Ok(()), make)?;
            self.write_file(&path, &file.content, file.executable)?;
        }
        Ok(())
    }

    fn write_file(&self, path: &Path, content: &[u8], executable: bool) -> io::Result<()> {
        let mode = if executable { 0o700 } else { 0o600 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(content)?;
        file.set_modified(self.stamp(content))
    }

    /// The same for the same content and another for another, so that whoever compares files by their times neither copies
    /// what did not change nor keeps what did.
    fn stamp(&self, content: &[u8]) -> SystemTime {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let millis = u64::try_from(self.made_at.as_millis()).unwrap_or(0);
        let nanos = hasher.finish() % 1_000_000_000;
        SystemTime::UNIX_EPOCH + Duration::from_secs(millis / 1000) + Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::{Filled, clear, clear_older, write};
    use domain::{skill::SkillFile, time::Timestamp};
    use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

    fn skill(name: &str, document: &str) -> Filled {
        let file = SkillFile { path: "scripts/run.sh".parse().unwrap(), executable: true, content: b"#!".to_vec() };
        let made_at = Timestamp::from_millis(1_700_000_000_123);
        Filled { name: name.parse().unwrap(), document: document.into(), files: vec![file], made_at }
    }

    #[test]
    fn a_runs_skills_are_written_replaced_as_a_whole_and_cleared() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("runs/one/skills");
        write(&[skill("review", "v1"), skill("write", "w")], &at).unwrap();
        assert_eq!(fs::read_to_string(at.join("review/SKILL.md")).unwrap(), "v1");
        let script = at.join("review/scripts/run.sh");
        assert_eq!(fs::metadata(script).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o700);
        write(&[skill("review", "v2")], &at).unwrap();
        assert_eq!(fs::read_to_string(at.join("review/SKILL.md")).unwrap(), "v2");
        assert!(!at.join("write").exists());
        assert_eq!(fs::read_dir(at.parent().unwrap()).unwrap().count(), 1, "nothing unfinished is left");
        for _ in 0..2 {
            clear(at.parent().unwrap()).unwrap();
        }
        assert!(!at.exists());
    }

    #[test]
    fn the_same_content_has_the_same_time_and_another_has_another() {
        let root = tempfile::tempdir().unwrap();
        let time = |run: &str, document: &str| {
            let at = root.path().join(run).join("skills");
            write(&[skill("review", document)], &at).unwrap();
            fs::metadata(at.join("review/SKILL.md")).unwrap().modified().unwrap()
        };
        assert_eq!(time("a", "same"), time("b", "same"));
        assert_ne!(time("c", "same"), time("d", "thus"), "of the same length, of the same version");
    }

    #[test]
    fn only_what_is_old_is_cleared() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("runs");
        clear_older(&folder, Duration::ZERO).unwrap();
        fs::create_dir_all(folder.join("one")).unwrap();
        clear_older(&folder, Duration::from_secs(3600)).unwrap();
        assert!(folder.join("one").exists());
        clear_older(&folder, Duration::ZERO).unwrap();
        assert!(!folder.join("one").exists());
    }
}

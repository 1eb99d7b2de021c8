//! The files that a provider writes for an agent's program, in the home folder of the agent. The program can put links there,
//! also in place of the folders that the provider created; they are never followed (invariant 18).

use std::{
    io,
    path::{Path, PathBuf},
};
use workbench::{
    files::{Root, RootError},
    project_sandbox::SandboxSpec,
};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A home folder, held open from a folder that the program cannot replace.
pub struct AgentFiles {
    root: Root,
    home: PathBuf,
}

impl AgentFiles {
    /// `home` is the agent's folder: outside, or beneath the home folder of the sandbox.
    pub fn open(home: &Path, sandbox: Option<&SandboxSpec>) -> io::Result<Self> {
        let held = sandbox.map_or(home, |sandbox| sandbox.home.as_path());
        let beneath = home.strip_prefix(held).map_err(io::Error::other)?.to_owned();
        let files = Self { root: Root::open(held)?, home: beneath };
        if !files.home.as_os_str().is_empty() {
            files.root.create_dir_all(&files.home, FOLDER_MODE)?;
        }
        Ok(files)
    }

    pub fn create_folder(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Ok(self.root.create_dir_all(self.home.join(path), FOLDER_MODE)?)
    }

    /// Writes a private file, atomically: another process of the agent may be reading it.
    pub fn write(&self, path: impl AsRef<Path>, content: &str) -> io::Result<()> {
        let path = self.home.join(path);
        // A folder in its place is the program's work.
        if self.root.metadata(&path).is_ok_and(|found| found.is_dir()) {
            self.root.remove(&path)?;
        }
        Ok(self.root.write(path, FILE_MODE, content.as_bytes())?)
    }

    /// Removes a file or a folder with everything in it, if it exists.
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<()> {
        match self.root.remove(self.home.join(path)) {
            Err(error) if error.is_not_found() => Ok(()),
            done => Ok(done?),
        }
    }

    /// Reads a small file.
    pub fn read(&self, path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, RootError> {
        self.root.read(self.home.join(path), limit)
    }
}

/// Copies skills to a folder of the agent's home.
pub fn sync_skills(
    skills: &[workbench::skills::SkillFolder],
    home: &Path,
    sandbox: Option<&SandboxSpec>,
    into: &Path,
    holder: &str,
) -> io::Result<()> {
    let held = sandbox.map_or(home, |sandbox| sandbox.home.as_path());
    let into = home.strip_prefix(held).map_err(io::Error::other)?.join(into);
    let into = into.to_str().ok_or_else(|| io::Error::other("the path of the skills is not text"))?;
    workbench::skills::sync_folders(skills, held, into, holder)
}

#[cfg(test)]
mod tests {
    use super::AgentFiles;
    use std::{fs, os::unix::fs::symlink};
    use workbench::project_sandbox::{SandboxKey, SandboxSpec};

    #[test]
    fn invariant_18_beneath_links_that_a_program_left_are_not_followed() {
        let (data, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spec = SandboxSpec::new(SandboxKey::new("room", 1), data.path(), data.path());
        let home = data.path().join("agent");
        let files = AgentFiles::open(&home, Some(&spec)).unwrap();
        files.create_folder("claude").unwrap();
        files.write("claude/settings.json", "{}").unwrap();
        assert_eq!(fs::read_to_string(home.join("claude/settings.json")).unwrap(), "{}");
        // A link in place of the file is replaced, one in place of a folder is refused.
        fs::write(outside.path().join("target"), "theirs").unwrap();
        fs::remove_file(home.join("claude/settings.json")).unwrap();
        symlink(outside.path().join("target"), home.join("claude/settings.json")).unwrap();
        files.write("claude/settings.json", "ours").unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("target")).unwrap(), "theirs");
        fs::remove_dir_all(&home).unwrap();
        symlink(outside.path(), &home).unwrap();
        let reopened = AgentFiles::open(&home, Some(&spec));
        assert!(reopened.is_err() || reopened.unwrap().write("planted", "x").is_err());
        assert!(files.write("planted", "x").is_err() && files.remove("target").is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

//! The `.mcp.json` of the folder that agents work in. Anybody who can write there can write it, agents among them: nothing
//! in it is used until a person has looked at it and said so, and a file with another content is another file.

use domain::mcp::{FileError, MAX_FILE_BYTES, Servers, parse};
use domain::time::Timestamp;
use rustix::fs::{Mode, OFlags, open};
use sha2::{Digest as _, Sha256};
use std::{fs::File, io::Read as _, path::Path};

const FILE: &str = ".mcp.json";

/// A project's file as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ProjectFile {
    pub digest: [u8; 32],
    /// What it says, or why it cannot be understood.
    pub servers: Result<Servers, String>,
}

/// What there is in a room's folder, and whether it is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Project {
    /// SHA-256, where there is a file that can be read.
    pub digest: Option<[u8; 32]>,
    pub servers: Servers,
    pub state: ProjectState,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ProjectState {
    /// There is no file.
    None,
    Untrusted,
    Trusted(Timestamp),
    Unreadable(String),
}

impl Project {
    pub(super) fn of(read: Result<Option<ProjectFile>, String>, trusted: Option<store::TrustedFile>) -> Self {
        let bare = |digest, state| Self { digest, servers: Servers::new(), state };
        match read {
            Ok(None) => bare(None, ProjectState::None),
            Ok(Some(ProjectFile { digest, servers: Ok(servers) })) => {
                let state = match trusted {
                    Some(file) if file.digest == digest => ProjectState::Trusted(file.trusted_at),
                    _ => ProjectState::Untrusted,
                };
                Self { digest: Some(digest), servers, state }
            }
            Ok(Some(ProjectFile { digest, servers: Err(why) })) => bare(Some(digest), ProjectState::Unreadable(why)),
            Err(why) => bare(None, ProjectState::Unreadable(why)),
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        matches!(self.state, ProjectState::Trusted(_))
    }
}

/// Waits for the disk.
pub(super) fn read(folder: &Path) -> Result<Option<ProjectFile>, String> {
    // No link: it could lead out of the folder. Not waiting: it could be a pipe that nobody writes into.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(folder.join(FILE), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(rustix::io::Errno::LOOP) => return Err("it is a link; put the file itself there".into()),
        Err(error) => return Err(format!("it cannot be opened: {}", error.kind())),
    };
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is no file".into());
    }
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {}", error.kind()))?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(FileError::TooLong.to_string());
    }
    let servers = match std::str::from_utf8(&bytes) {
        Ok(text) => parse(text).map_err(|error| said(&error)),
        Err(_) => Err("it is not UTF-8".to_owned()),
    };
    Ok(Some(ProjectFile { digest: Sha256::digest(&bytes).into(), servers }))
}

/// Without the parser's own words: they may repeat a value.
fn said(error: &FileError) -> String {
    match error {
        FileError::Syntax(error) => format!(
            "it is no JSON of the form {{\"mcpServers\": {{…}}}} (line {}, column {})",
            error.line(),
            error.column()
        ),
        FileError::TooLong | FileError::TooMany(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, read};
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn a_file_is_read_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(FILE);
        assert_eq!(read(folder.path()), Ok(None));
        assert_eq!(read(&folder.path().join("nowhere")), Ok(None));
        fs::write(&at, r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        let first = read(folder.path()).unwrap().unwrap();
        assert_eq!(first.servers.unwrap().len(), 1);
        fs::write(&at, r#"{"mcpServers": {"a": {"command": "y"}}}"#).unwrap();
        assert_ne!(read(folder.path()).unwrap().unwrap().digest, first.digest);

        for (content, said) in [
            (&br#"{"mcpServers": "SECRET"}"#[..], "no JSON of the form"),
            (b"SECRET", "no JSON of the form"),
            (b"\xff", "not UTF-8"),
        ] {
            fs::write(&at, content).unwrap();
            let why = read(folder.path()).unwrap().unwrap().servers.unwrap_err();
            assert!(why.contains(said) && !why.contains("SECRET"), "{why}");
        }
        fs::write(&at, " ".repeat(2 << 20)).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("longer than"));

        fs::remove_file(&at).unwrap();
        fs::write(folder.path().join("elsewhere"), "{}").unwrap();
        symlink(folder.path().join("elsewhere"), &at).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("link"));
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("no file"));
        fs::remove_dir(&at).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &at, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("no file"), "a pipe is not waited for");
    }
}

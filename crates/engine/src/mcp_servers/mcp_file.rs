//! The `.mcp.json` in a room's workspace. Agents can write it, so nothing in it is used until a person has trusted
//! exactly this content; a changed file has to be trusted again.

use crate::workspace_trust::ContentTrust;
use domain::mcp::{MAX_FILE_BYTES, McpFileError, McpFileServers, parse_file};
use sha2::{Digest as _, Sha256};
use std::path::Path;
use workbench::files::{Root, RootError};

const FILE_NAME: &str = ".mcp.json";

/// A `.mcp.json` as read from disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct McpFileContents {
    pub digest: [u8; 32],
    /// The servers, or why the file cannot be parsed.
    pub servers: Result<McpFileServers, String>,
}

/// The `.mcp.json` of a workspace, and whether it is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WorkspaceMcpFile {
    /// SHA-256 of the file, if it can be read.
    pub digest: Option<[u8; 32]>,
    pub servers: McpFileServers,
    pub state: ContentTrust,
}

impl WorkspaceMcpFile {
    pub(super) fn of(read: Result<Option<McpFileContents>, String>, trusted: Option<store::TrustedContent>) -> Self {
        let bare = |digest, state| Self { digest, servers: McpFileServers::new(), state };
        match read {
            Ok(None) => bare(None, ContentTrust::None),
            Ok(Some(McpFileContents { digest, servers: Ok(servers) })) => {
                Self { digest: Some(digest), servers, state: ContentTrust::of(&digest, trusted) }
            }
            Ok(Some(McpFileContents { digest, servers: Err(why) })) => {
                bare(Some(digest), ContentTrust::Unreadable(why))
            }
            Err(why) => bare(None, ContentTrust::Unreadable(why)),
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        matches!(self.state, ContentTrust::Trusted(_))
    }
}

/// Reads the `.mcp.json` of a folder. Blocks on file IO.
pub(super) fn read(folder: &Path) -> Result<Option<McpFileContents>, String> {
    let read = Root::open(folder).and_then(|folder| folder.read(FILE_NAME, MAX_FILE_BYTES as u64));
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(RootError::NotAFolder) => return Ok(None),
        Err(error) if error.is_not_found() => return Ok(None),
        Err(RootError::Link) => return Err("it is a link; put the file itself there".into()),
        Err(RootError::NotAFile) => return Err("it is not a file".into()),
        Err(RootError::TooLong { .. }) => return Err(McpFileError::TooLong.to_string()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let servers = match std::str::from_utf8(&bytes) {
        Ok(text) => parse_file(text).map_err(|error| file_error_text(&error)),
        Err(_) => Err("it is not UTF-8".to_owned()),
    };
    Ok(Some(McpFileContents { digest: Sha256::digest(&bytes).into(), servers }))
}

/// An error text without the parser's message, which may contain a value.
fn file_error_text(error: &McpFileError) -> String {
    match error {
        McpFileError::Syntax(error) => format!(
            "it is not JSON of the form {{\"mcpServers\": {{…}}}} (line {}, column {})",
            error.line(),
            error.column()
        ),
        McpFileError::TooLong | McpFileError::TooMany(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE_NAME, read};
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn read_accepts_only_a_plain_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join(FILE_NAME);
        assert_eq!(read(folder.path()), Ok(None));
        assert_eq!(read(&folder.path().join("nowhere")), Ok(None));
        fs::write(&at, r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        let first = read(folder.path()).unwrap().unwrap();
        assert_eq!(first.servers.unwrap().len(), 1);
        fs::write(&at, r#"{"mcpServers": {"a": {"command": "y"}}}"#).unwrap();
        assert_ne!(read(folder.path()).unwrap().unwrap().digest, first.digest);

        for (content, expected) in [
            (&br#"{"mcpServers": "SECRET"}"#[..], "not JSON of the form"),
            (b"SECRET", "not JSON of the form"),
            (b"\xff", "not UTF-8"),
        ] {
            fs::write(&at, content).unwrap();
            let why = read(folder.path()).unwrap().unwrap().servers.unwrap_err();
            assert!(why.contains(expected) && !why.contains("SECRET"), "{why}");
        }
        fs::write(&at, " ".repeat(2 << 20)).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("longer than"));

        fs::remove_file(&at).unwrap();
        fs::write(folder.path().join("elsewhere"), "{}").unwrap();
        symlink(folder.path().join("elsewhere"), &at).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("link"));
        fs::remove_file(&at).unwrap();
        fs::create_dir(&at).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("not a file"));
        fs::remove_dir(&at).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &at, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(read(folder.path()).unwrap_err().contains("not a file"), "a pipe does not block");
    }
}

//! The operator's file of MCP servers, in the format of `.mcp.json`.

use domain::mcp::{FileError, MAX_FILE_BYTES, Servers, parse};
use std::{fs, io, path::Path};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read it")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

/// What is wrong with one server is told of that server; it keeps neither the others nor Greenroom from working.
pub fn read(file: &Path) -> Result<Servers, Error> {
    if fs::metadata(file)?.len() > MAX_FILE_BYTES as u64 {
        return Err(FileError::TooLong.into());
    }
    let servers = parse(&fs::read_to_string(file)?)?;
    for (name, error) in servers.iter().filter_map(|(name, server)| Some((name, server.as_ref().err()?))) {
        tracing::warn!(server = name, "the MCP server {error}; it cannot be used");
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::fs;

    #[test]
    fn one_bad_server_spoils_nothing_and_a_bad_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        assert!(read(&file).is_err());
        fs::write(
            &file,
            r#"{"mcpServers": {"good": {"command": "x"}, "bad": {}, "old": {"type": "sse", "url": "http://h"}}}"#,
        )
        .unwrap();
        let servers = read(&file).unwrap();
        assert!(servers["good"].is_ok() && servers["bad"].is_err() && servers["old"].is_ok());
        for bad in ["{}".to_owned(), "x".to_owned(), " ".repeat(2 << 20)] {
            fs::write(&file, bad).unwrap();
            assert!(read(&file).is_err());
        }
    }
}

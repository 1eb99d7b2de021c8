//! The operator's MCP server file, in the format of `.mcp.json`.

use domain::mcp::{MAX_FILE_BYTES, McpFileError, McpFileServers, parse_file};
use std::{fs, io, path::Path};

#[derive(Debug, thiserror::Error)]
pub enum McpFileReadError {
    #[error("cannot read the file")]
    Unreadable(#[from] io::Error),
    #[error(transparent)]
    File(#[from] McpFileError),
}

/// Reads the file. An invalid server is logged and skipped; it does not affect the others.
pub fn read(file: &Path) -> Result<McpFileServers, McpFileReadError> {
    if fs::metadata(file)?.len() > MAX_FILE_BYTES as u64 {
        return Err(McpFileError::TooLong.into());
    }
    let servers = parse_file(&fs::read_to_string(file)?)?;
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
    fn a_bad_server_does_not_affect_others_and_a_bad_file_is_refused() {
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

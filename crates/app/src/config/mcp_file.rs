//! The operator's file of MCP servers, in the format of `.mcp.json`.

use domain::mcp::{self, EntryError, FileError, ServerConfig};
use std::{collections::BTreeMap, fs, io, path::Path};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read it")]
    Unreadable(#[from] io::Error),
    #[error("cannot understand it")]
    File(#[from] FileError),
    #[error("the server {name:?} {problem}")]
    Server { name: String, problem: EntryError },
}

/// Those that are switched on. One mistake refuses all of it: whoever starts the server shall hear of it.
pub fn read(file: &Path) -> Result<BTreeMap<String, ServerConfig>, Error> {
    if fs::metadata(file)?.len() > mcp::MAX_FILE_BYTES as u64 {
        return Err(FileError::TooLong.into());
    }
    parse(&fs::read_to_string(file)?)
}

fn parse(text: &str) -> Result<BTreeMap<String, ServerConfig>, Error> {
    let mut servers = BTreeMap::new();
    for (name, config) in mcp::parse(text)? {
        match config {
            Ok(config) if config.disabled => {}
            Ok(config) => drop(servers.insert(name, config)),
            Err(problem) => return Err(Error::Server { name, problem }),
        }
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use domain::mcp::Transport;

    #[test]
    fn programs_and_addresses() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
            "web": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"authorization": "x"}},
            "off": {"command": "x", "disabled": true}}}"#;
        let servers = parse(text).unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "web"]);
        assert!(matches!(&servers["files"].transport, Transport::Stdio { args, .. } if args.len() == 2));
        assert!(matches!(&servers["web"].transport, Transport::Http { headers, .. } if headers.len() == 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_servers_name() {
        let error = parse(r#"{"mcpServers": {"it": {"type": "pigeon", "url": "http://y"}}}"#).unwrap_err().to_string();
        assert!(error.contains("unknown type") && error.contains("\"it\""), "{error}");
        assert!(parse("{}").is_err() && parse("x").is_err());
    }
}

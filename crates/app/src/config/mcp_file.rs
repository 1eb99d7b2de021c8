//! The operator's file of MCP servers, in the format of `.mcp.json`.

use providers::McpTransport;
use serde::Deserialize;
use std::{collections::BTreeMap, fs, io, path::Path};

const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read it")]
    Unreadable(#[from] io::Error),
    #[error("it is longer than {MAX_BYTES} bytes")]
    TooLong,
    #[error("cannot understand it")]
    Syntax(#[from] serde_json::Error),
    #[error("the server {name:?} {problem}")]
    Server { name: String, problem: &'static str },
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

pub fn read(file: &Path) -> Result<BTreeMap<String, McpTransport>, Error> {
    if fs::metadata(file)?.len() > MAX_BYTES {
        return Err(Error::TooLong);
    }
    parse(&fs::read_to_string(file)?)
}

fn parse(text: &str) -> Result<BTreeMap<String, McpTransport>, Error> {
    let File { servers } = serde_json::from_str(text)?;
    let enabled = servers.into_iter().filter(|(_, entry)| !entry.disabled);
    enabled.map(|(name, entry)| transport(&name, entry).map(|transport| (name, transport))).collect()
}

fn transport(name: &str, entry: Entry) -> Result<McpTransport, Error> {
    let wrong = |problem| Err(Error::Server { name: name.to_owned(), problem });
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(letters) {
        return wrong("has a name of other than 1 to 64 letters, digits, _ and -");
    }
    match (entry.kind.as_deref(), entry.command, entry.url) {
        (None | Some("stdio"), Some(command), None) => {
            Ok(McpTransport::Stdio { command, args: entry.args, env: entry.env })
        }
        (None | Some("http" | "streamable-http"), None, Some(url)) => {
            Ok(McpTransport::Http { url, headers: entry.headers })
        }
        (Some("sse"), ..) => wrong("is of type sse; agents' programs are given stdio and http servers"),
        (Some("stdio" | "http" | "streamable-http") | None, ..) => {
            wrong("needs either a command (stdio) or a url (http)")
        }
        (Some(_), ..) => wrong("is of an unknown type; there are stdio and http"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use providers::McpTransport;

    #[test]
    fn programs_and_addresses() {
        let text = r#"{"mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
            "web": {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"authorization": "x"}},
            "off": {"command": "x", "disabled": true}}}"#;
        let servers = parse(text).unwrap();
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "web"]);
        assert!(matches!(&servers["files"], McpTransport::Stdio { args, .. } if args.len() == 2));
        assert!(matches!(&servers["web"], McpTransport::Http { headers, .. } if headers.len() == 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_the_servers_name() {
        for (entry, said) in [
            (r#"{}"#, "needs either"),
            (r#"{"command": "x", "url": "y"}"#, "needs either"),
            (r#"{"type": "sse", "url": "y"}"#, "of type sse"),
            (r#"{"type": "pigeon", "url": "y"}"#, "unknown type"),
        ] {
            let error = parse(&format!(r#"{{"mcpServers": {{"it": {entry}}}}}"#)).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("\"it\""), "{error}");
        }
        assert!(parse("{}").is_err() && parse("x").is_err());
        assert!(parse(r#"{"mcpServers": {"a b": {"command": "x"}}}"#).is_err());
    }
}

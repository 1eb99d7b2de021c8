//! A `.mcp.json`: servers by name. An invalid entry is an error of that server, not of the file.

use super::{McpEntryError, McpServerConfig, McpServerEntry, check_name};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub const MAX_FILE_BYTES: usize = 1024 * 1024;
pub const MAX_SERVERS: usize = 200;

/// By name: the server's configuration, or what is wrong with its entry.
pub type McpFileServers = BTreeMap<String, Result<McpServerConfig, McpEntryError>>;

#[derive(Debug, thiserror::Error)]
pub enum McpFileError {
    #[error("the file is longer than {MAX_FILE_BYTES} bytes")]
    TooLong,
    #[error("the file is not JSON of the form {{\"mcpServers\": {{…}}}}: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("the file has {0} servers; the limit is {MAX_SERVERS}")]
    TooMany(usize),
}

#[derive(Deserialize)]
struct McpFile {
    #[serde(rename = "mcpServers")]
    servers: Map<String, Value>,
}

pub fn parse_file(text: &str) -> Result<McpFileServers, McpFileError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(McpFileError::TooLong);
    }
    // Some editors begin a file with a byte order mark.
    let McpFile { servers } = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    if servers.len() > MAX_SERVERS {
        return Err(McpFileError::TooMany(servers.len()));
    }
    Ok(servers
        .into_iter()
        .map(|(name, entry)| {
            let read = read(&name, entry);
            (name, read)
        })
        .collect())
}

fn read(name: &str, entry: Value) -> Result<McpServerConfig, McpEntryError> {
    check_name(name)?;
    let entry: McpServerEntry =
        serde_json::from_value(entry).map_err(|error| McpEntryError::Shape(error.to_string()))?;
    entry.try_into()
}

/// Returns the text of a file with these servers. [`parse_file`] reads the same servers from it.
pub fn print_file<'a>(servers: impl IntoIterator<Item = (&'a str, &'a McpServerConfig)>) -> String {
    let entries: Map<String, Value> = servers
        .into_iter()
        .map(|(name, config)| (name.to_owned(), json!(McpServerEntry::from(config.clone()))))
        .collect();
    format!("{:#}\n", json!({"mcpServers": entries}))
}

#[cfg(test)]
mod tests {
    use super::{MAX_FILE_BYTES, MAX_SERVERS, McpEntryError, parse_file};
    use crate::mcp::{McpServerConfig, McpTransport};

    fn one(entry: &str) -> Result<McpServerConfig, McpEntryError> {
        parse_file(&format!(r#"{{"mcpServers": {{"it": {entry}}}}}"#)).unwrap().remove("it").unwrap()
    }

    #[test]
    fn reads_stdio_http_and_sse_servers() {
        let text = r#"{"other": 1, "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "alwaysAllow": ["x"]},
            "web": {"type": "http", "url": "https://host/mcp", "headers": {"authorization": "x"}, "timeout": 5000},
            "old": {"type": "sse", "url": "${BASE}/sse"},
            "off": {"command": "x", "disabled": true}}}"#;
        let servers = parse_file(text).unwrap();
        let get = |name: &str| servers[name].clone().unwrap();
        assert!(
            matches!(get("files").transport, McpTransport::Stdio { args, env, .. } if args.len() == 2 && env["A"] == "b")
        );
        assert!(matches!(get("web").transport, McpTransport::Http { headers, .. } if headers.len() == 1));
        assert_eq!(get("web").call_timeout.unwrap().as_secs(), 5);
        assert!(matches!(get("old").transport, McpTransport::Sse { url, .. } if url == "${BASE}/sse"));
        assert!(get("off").disabled && !get("web").disabled);
    }

    #[test]
    fn an_invalid_entry_has_its_own_error_and_the_others_work() {
        for (entry, expected) in [
            ("{}", "needs either"),
            (r#"{"command": "x", "url": "http://y"}"#, "needs either"),
            (r#"{"type": "sse", "command": "y"}"#, "needs either"),
            (r#"{"type": "pigeon", "url": "http://y"}"#, "unknown type \"pigeon\""),
            (r#"{"command": " "}"#, "empty command"),
            (r#"{"command": "x", "env": {"A=B": "c"}}"#, "invalid variable name"),
            (r#"{"command": "x\u0000"}"#, "NUL"),
            (r#"{"url": "file:///etc/passwd"}"#, "http:// or https://"),
            (r#"{"url": "http://y", "headers": {"a": "b\r\nc: d"}}"#, "invalid header"),
            (r#"{"command": "x", "timeout": 0}"#, "timeout"),
            (r#"{"command": 7}"#, "cannot be parsed"),
            ("\"x\"", "cannot be parsed"),
        ] {
            let error = one(entry).unwrap_err().to_string();
            assert!(error.contains(expected), "{entry}: {error}");
        }
        let servers =
            parse_file(r#"{"mcpServers": {"a b": {"command": "x"}, "bad": 1, "good": {"command": "x"}}}"#).unwrap();
        assert_eq!(servers["a b"], Err(McpEntryError::Name));
        assert!(servers["bad"].is_err() && servers["good"].is_ok());
    }

    #[test]
    fn an_invalid_file_is_rejected() {
        for text in ["", "x", "{}", "[]", r#"{"mcpServers": 1}"#] {
            assert!(parse_file(text).is_err(), "{text}");
        }
        assert!(parse_file(&" ".repeat(MAX_FILE_BYTES + 1)).is_err());
        let many: Vec<String> = (0..=MAX_SERVERS).map(|n| format!(r#""s{n}": {{}}"#)).collect();
        assert!(parse_file(&format!(r#"{{"mcpServers": {{{}}}}}"#, many.join(","))).is_err());
        assert!(parse_file("\u{feff}{\"mcpServers\": {}}").unwrap().is_empty());
    }
}

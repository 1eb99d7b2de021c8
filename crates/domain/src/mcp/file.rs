//! A `.mcp.json`: many servers by name. One that is wrong is an error of its own, not of the file.

use super::{Entry, EntryError, ServerConfig, check_name};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub const MAX_FILE_BYTES: usize = 1024 * 1024;
pub const MAX_SERVERS: usize = 200;

/// By name: how to reach it, or what is wrong with it.
pub type Servers = BTreeMap<String, Result<ServerConfig, EntryError>>;

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("it is longer than {MAX_FILE_BYTES} bytes")]
    TooLong,
    #[error("it is no JSON of the form {{\"mcpServers\": {{…}}}}: {0}")]
    Syntax(#[from] serde_json::Error),
    #[error("it has {0} servers; {MAX_SERVERS} are the limit")]
    TooMany(usize),
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers")]
    servers: Map<String, Value>,
}

pub fn parse(text: &str) -> Result<Servers, FileError> {
    if text.len() > MAX_FILE_BYTES {
        return Err(FileError::TooLong);
    }
    // Editors on some systems begin a file with a mark of its encoding.
    let File { servers } = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    if servers.len() > MAX_SERVERS {
        return Err(FileError::TooMany(servers.len()));
    }
    Ok(servers
        .into_iter()
        .map(|(name, entry)| {
            let read = read(&name, entry);
            (name, read)
        })
        .collect())
}

fn read(name: &str, entry: Value) -> Result<ServerConfig, EntryError> {
    check_name(name)?;
    let entry: Entry = serde_json::from_value(entry).map_err(|error| EntryError::Shape(error.to_string()))?;
    entry.try_into()
}

/// The text of a file with these servers, which [`parse`] reads back as they are.
pub fn print<'a>(servers: impl IntoIterator<Item = (&'a str, &'a ServerConfig)>) -> String {
    let entries: Map<String, Value> =
        servers.into_iter().map(|(name, config)| (name.to_owned(), json!(Entry::from(config.clone())))).collect();
    format!("{:#}\n", json!({"mcpServers": entries}))
}

#[cfg(test)]
mod tests {
    use super::{EntryError, MAX_FILE_BYTES, MAX_SERVERS, parse};
    use crate::mcp::{ServerConfig, Transport};

    fn one(entry: &str) -> Result<ServerConfig, EntryError> {
        parse(&format!(r#"{{"mcpServers": {{"it": {entry}}}}}"#)).unwrap().remove("it").unwrap()
    }

    #[test]
    fn programs_and_addresses() {
        let text = r#"{"other": 1, "mcpServers": {
            "files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "alwaysAllow": ["x"]},
            "web": {"type": "http", "url": "https://host/mcp", "headers": {"authorization": "x"}, "timeout": 5000},
            "old": {"type": "sse", "url": "${BASE}/sse"},
            "off": {"command": "x", "disabled": true}}}"#;
        let servers = parse(text).unwrap();
        let get = |name: &str| servers[name].clone().unwrap();
        assert!(
            matches!(get("files").transport, Transport::Stdio { args, env, .. } if args.len() == 2 && env["A"] == "b")
        );
        assert!(matches!(get("web").transport, Transport::Http { headers, .. } if headers.len() == 1));
        assert_eq!(get("web").call_timeout.unwrap().as_secs(), 5);
        assert!(matches!(get("old").transport, Transport::Sse { url, .. } if url == "${BASE}/sse"));
        assert!(get("off").disabled && !get("web").disabled);
    }

    #[test]
    fn what_is_wrong_with_one_is_said_and_the_others_work() {
        for (entry, said) in [
            ("{}", "needs either"),
            (r#"{"command": "x", "url": "http://y"}"#, "needs either"),
            (r#"{"type": "sse", "command": "y"}"#, "needs either"),
            (r#"{"type": "pigeon", "url": "http://y"}"#, "unknown type \"pigeon\""),
            (r#"{"command": " "}"#, "empty command"),
            (r#"{"command": "x", "env": {"A=B": "c"}}"#, "impossible name"),
            (r#"{"command": "x\u0000"}"#, "NUL"),
            (r#"{"url": "file:///etc/passwd"}"#, "neither http:// nor https://"),
            (r#"{"url": "http://y", "headers": {"a": "b\r\nc: d"}}"#, "cannot be sent"),
            (r#"{"command": "x", "timeout": 0}"#, "timeout"),
            (r#"{"command": 7}"#, "cannot be understood"),
            ("\"x\"", "cannot be understood"),
        ] {
            let error = one(entry).unwrap_err().to_string();
            assert!(error.contains(said), "{entry}: {error}");
        }
        let servers =
            parse(r#"{"mcpServers": {"a b": {"command": "x"}, "bad": 1, "good": {"command": "x"}}}"#).unwrap();
        assert_eq!(servers["a b"], Err(EntryError::Name));
        assert!(servers["bad"].is_err() && servers["good"].is_ok());
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        for text in ["", "x", "{}", "[]", r#"{"mcpServers": 1}"#] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&" ".repeat(MAX_FILE_BYTES + 1)).is_err());
        let many: Vec<String> = (0..=MAX_SERVERS).map(|n| format!(r#""s{n}": {{}}"#)).collect();
        assert!(parse(&format!(r#"{{"mcpServers": {{{}}}}}"#, many.join(","))).is_err());
        assert!(parse("\u{feff}{\"mcpServers\": {}}").unwrap().is_empty());
    }
}

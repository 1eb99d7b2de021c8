//! MCP servers as people write them down: what a server is, the `.mcp.json` file, variables in it, and which of several
//! tiers has its way.
//!
//! Pure: who looks a variable up, who starts a server and who trusts a project's file is decided elsewhere.

mod entry;
mod file;
mod secrets;
mod tiers;
mod variables;

#[cfg(test)]
mod properties;

pub use entry::{Entry, EntryError};
pub use file::{FileError, MAX_FILE_BYTES, MAX_SERVERS, Servers, parse, print};
pub use secrets::{MASK, Secrets, split_authority};
pub use tiers::{Effective, Layer, Merged, Tier, merge};
pub use variables::{Unset, substitute, variables_in};

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

pub const MAX_NAME_CHARS: usize = 64;

/// A server by the name that an agent knows it by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    pub name: String,
    pub config: ServerConfig,
}

impl Server {
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self { name: name.into(), config: ServerConfig::new(transport) }
    }
}

/// How a server is reached and how long it is waited for. As JSON: one entry of a `.mcp.json`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Entry", into = "Entry")]
pub struct ServerConfig {
    pub transport: Transport,
    pub disabled: bool,
    /// From the order to start until it can be asked for its tools; `None`: the manager's own limit.
    pub startup_timeout: Option<Duration>,
    /// For one call of a tool; `None`: the manager's own limit.
    pub call_timeout: Option<Duration>,
    /// The folder that a stdio server is started in; `None`: one that the manager has for it.
    pub folder: Option<PathBuf>,
}

impl ServerConfig {
    /// With nothing set but how it is reached.
    pub fn new(transport: Transport) -> Self {
        Self { transport, disabled: false, startup_timeout: None, call_timeout: None, folder: None }
    }

    /// With its variables filled in; see [`substitute`]. A value that is put in is never looked at again.
    pub fn resolve(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let transport = variables::resolve(&self.transport, lookup)?;
        transport.check()?;
        Ok(Self { transport, ..self.clone() })
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A program that speaks over its standard input and output.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    /// Streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
    /// HTTP with a stream of events beside it, as servers spoke before 2025-03-26.
    Sse { url: String, headers: BTreeMap<String, String> },
}

impl Transport {
    /// As in the `type` of a `.mcp.json`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
        }
    }

    /// What must hold when it is used. What still has variables in it is checked when they are filled in.
    fn check(&self) -> Result<(), EntryError> {
        match self {
            Self::Stdio { command, .. } if command.trim().is_empty() => Err(EntryError::NoCommand),
            Self::Stdio { command, args, env } => {
                let mut texts = [command].into_iter().chain(args).chain(env.values());
                if texts.any(|text| text.contains('\0')) {
                    return Err(EntryError::Nul);
                }
                match env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
                    Some(name) => Err(EntryError::Variable(name.clone())),
                    None => Ok(()),
                }
            }
            Self::Http { url, headers } | Self::Sse { url, headers } => {
                let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
                let is_web = scheme.is_some_and(|scheme| scheme == "http" || scheme == "https");
                // Readers of addresses differ in what they make of these, and so in which host is meant.
                let is_odd = url.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control());
                if is_odd || (!is_web && !url.contains("${")) {
                    return Err(EntryError::Url(url.clone()));
                }
                match headers.iter().find(|(name, value)| !is_header(name, value)) {
                    Some((name, _)) => Err(EntryError::Header(name.clone())),
                    None => Ok(()),
                }
            }
        }
    }
}

fn is_header(name: &str, value: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(token) && !value.contains(['\r', '\n', '\0'])
}

impl fmt::Debug for Transport {
    /// Without values of variables and headers, and without what an address may carry: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .finish(),
            Self::Http { url, headers } | Self::Sse { url, headers } => {
                f.debug_struct(self.kind()).field("url", &public_part(url)).field("headers", &headers.keys()).finish()
            }
        }
    }
}

/// An address as it may be shown and logged: without a user, a password or a query.
pub fn public_part(url: &str) -> String {
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    match shown.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => shown.to_owned(),
    }
}

/// Why one server of a file cannot be used. The others are none the worse for it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Entry(#[from] EntryError),
    #[error(transparent)]
    Unset(#[from] Unset),
}

/// Names become part of tool names, so they have only what every model API takes.
pub fn check_name(name: &str) -> Result<(), EntryError> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(letter) {
        return Err(EntryError::Name);
    }
    Ok(())
}

impl utoipa::PartialSchema for ServerConfig {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        Entry::schema()
    }
}

impl utoipa::ToSchema for ServerConfig {
    fn name() -> std::borrow::Cow<'static, str> {
        "McpServerConfig".into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Server, Transport, check_name, public_part};

    #[test]
    fn an_address_that_readers_take_for_different_hosts_is_refused() {
        let at = |url: &str| Transport::Http { url: url.into(), headers: [].into() }.check();
        assert_eq!(at("https://host/mcp?a=b#c"), Ok(()));
        for odd in ["https://evil\\@host/mcp", "https://ho\tst/", "https://host /", "ftp://host"] {
            assert!(at(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn secrets_are_not_in_what_is_logged() {
        let stdio = Transport::Stdio {
            command: "npx".into(),
            args: vec!["--key=SECRET".into()],
            env: [("TOKEN".to_owned(), "SECRET".to_owned())].into(),
        };
        let http = Transport::Http {
            url: "https://me:SECRET@host:1/mcp?key=SECRET".into(),
            headers: [("authorization".to_owned(), "Bearer SECRET".to_owned())].into(),
        };
        for transport in [stdio, http] {
            let shown = format!("{:?}", Server::new("it", transport));
            assert!(!shown.contains("SECRET"), "{shown}");
        }
        assert_eq!(public_part("https://a@b@host:1/mcp#x"), "https://host:1/mcp");
        assert_eq!(public_part("http://host?x=/y@z"), "http://host");
    }

    #[test]
    fn names_are_fit_for_tool_names() {
        for (name, fits) in [("git", true), ("my_files-2", true), ("", false), ("a b", false), ("a.b", false)] {
            assert_eq!(check_name(name).is_ok(), fits, "{name}");
        }
        assert!(check_name(&"x".repeat(65)).is_err());
    }
}

//! MCP server configuration: the servers, the `.mcp.json` file, its variables, and the precedence of tiers.
//!
//! Pure: looking up variables, starting servers and trusting a project's file happen elsewhere.

mod entry;
mod file;
mod secrets;
mod tiers;
mod tool_name;
mod variables;

#[cfg(test)]
mod properties;

pub use entry::{McpEntryError, McpServerEntry, McpServerType};
pub use file::{MAX_FILE_BYTES, MAX_SERVERS, McpFileError, McpFileServers, parse_file, print_file};
pub use secrets::{MASK, McpSecrets, split_authority};
pub use tiers::{McpTier, McpTierServers, MergedMcpServer, MergedMcpServers, merge_tiers};
pub use tool_name::{server_pattern, tool_name, tool_of};
pub use variables::{UnsetVariable, may_be_allowed, substitute, variables_in};

use crate::owner::Owner;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

pub const MAX_NAME_CHARS: usize = 64;

/// A server configuration with the name that the agent uses for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedMcpServer {
    pub name: String,
    pub config: McpServerConfig,
    /// The workspace that has configured it, whose agents alone share its connection. `None`: the operator's file, which
    /// all share.
    pub owner: Option<Owner>,
}

impl NamedMcpServer {
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self { name: name.into(), config: McpServerConfig::new(transport), owner: None }
    }

    /// Whether the operator has configured it. Servers of others may only be at public addresses.
    pub fn is_from_operator(&self) -> bool {
        self.owner.as_ref().is_none_or(Owner::belongs_to_operator)
    }
}

/// The transport and the timeouts of a server. As JSON: one entry of a `.mcp.json`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "McpServerEntry", into = "McpServerEntry")]
pub struct McpServerConfig {
    pub transport: McpTransport,
    pub disabled: bool,
    /// Time from starting the server until its tools can be listed. `None`: the manager's default.
    pub startup_timeout: Option<Duration>,
    /// Time for one tool call. `None`: the manager's default.
    pub call_timeout: Option<Duration>,
    /// The working directory of a stdio server. `None`: a folder chosen by the manager.
    pub folder: Option<PathBuf>,
}

impl McpServerConfig {
    /// Creates a configuration with defaults for everything but the transport.
    pub fn new(transport: McpTransport) -> Self {
        Self { transport, disabled: false, startup_timeout: None, call_timeout: None, folder: None }
    }

    /// Returns the configuration with its variables replaced; see [`substitute`]. Values are not expanded again.
    pub fn resolve(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, McpConfigError> {
        let transport = variables::resolve(&self.transport, lookup)?;
        transport.check()?;
        Ok(Self { transport, ..self.clone() })
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub enum McpTransport {
    /// A program that communicates over standard input and output.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    /// Streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
    /// HTTP with a separate event stream: the transport of MCP versions before 2025-03-26.
    Sse { url: String, headers: BTreeMap<String, String> },
}

impl McpTransport {
    /// The `type` in a `.mcp.json`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
        }
    }

    /// Checks what must hold before use. A URL with variables is checked again after they are replaced.
    fn check(&self) -> Result<(), McpEntryError> {
        match self {
            Self::Stdio { command, .. } if command.trim().is_empty() => Err(McpEntryError::NoCommand),
            Self::Stdio { command, args, env } => {
                let mut texts = [command].into_iter().chain(args).chain(env.values());
                if texts.any(|text| text.contains('\0')) {
                    return Err(McpEntryError::Nul);
                }
                match env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
                    Some(name) => Err(McpEntryError::Variable(name.clone())),
                    None => Ok(()),
                }
            }
            Self::Http { url, headers } | Self::Sse { url, headers } => {
                let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
                let is_web = scheme.is_some_and(|scheme| scheme == "http" || scheme == "https");
                // URL parsers disagree about these characters, and therefore about the host.
                let is_odd = url.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control());
                if is_odd || (!is_web && !url.contains("${")) {
                    return Err(McpEntryError::Url(url.clone()));
                }
                match headers.iter().find(|(name, value)| !is_header(name, value)) {
                    Some((name, _)) => Err(McpEntryError::Header(name.clone())),
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

impl fmt::Debug for McpTransport {
    /// Omits values of variables and headers, and credentials and queries of URLs: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .finish(),
            Self::Http { url, headers } | Self::Sse { url, headers } => f
                .debug_struct(self.kind())
                .field("url", &url_without_secrets(url))
                .field("headers", &headers.keys())
                .finish(),
        }
    }
}

/// Returns the URL without user, password and query, so that it can be shown and logged.
pub fn url_without_secrets(url: &str) -> String {
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

/// Why one server of a file cannot be used. The other servers are not affected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum McpConfigError {
    #[error(transparent)]
    Entry(#[from] McpEntryError),
    #[error(transparent)]
    Unset(#[from] UnsetVariable),
}

/// Names become part of tool names, so they only have characters that every model API accepts.
pub fn check_name(name: &str) -> Result<(), McpEntryError> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(letter) {
        return Err(McpEntryError::Name);
    }
    Ok(())
}

impl utoipa::PartialSchema for McpServerConfig {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        McpServerEntry::schema()
    }
}

impl utoipa::ToSchema for McpServerConfig {
    fn name() -> std::borrow::Cow<'static, str> {
        "McpServerConfig".into()
    }
}

#[cfg(test)]
mod tests {
    use super::{McpTransport, NamedMcpServer, check_name, url_without_secrets};

    #[test]
    fn a_url_with_an_ambiguous_host_is_rejected() {
        let at = |url: &str| McpTransport::Http { url: url.into(), headers: [].into() }.check();
        assert_eq!(at("https://host/mcp?a=b#c"), Ok(()));
        for odd in ["https://evil\\@host/mcp", "https://ho\tst/", "https://host /", "ftp://host"] {
            assert!(at(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let stdio = McpTransport::Stdio {
            command: "npx".into(),
            args: vec!["--key=SECRET".into()],
            env: [("TOKEN".to_owned(), "SECRET".to_owned())].into(),
        };
        let http = McpTransport::Http {
            url: "https://me:SECRET@host:1/mcp?key=SECRET".into(),
            headers: [("authorization".to_owned(), "Bearer SECRET".to_owned())].into(),
        };
        for transport in [stdio, http] {
            let shown = format!("{:?}", NamedMcpServer::new("it", transport));
            assert!(!shown.contains("SECRET"), "{shown}");
        }
        assert_eq!(url_without_secrets("https://a@b@host:1/mcp#x"), "https://host:1/mcp");
        assert_eq!(url_without_secrets("http://host?x=/y@z"), "http://host");
    }

    #[test]
    fn server_names_are_valid_in_tool_names() {
        for (name, fits) in [("git", true), ("my_files-2", true), ("", false), ("a b", false), ("a.b", false)] {
            assert_eq!(check_name(name).is_ok(), fits, "{name}");
        }
        assert!(check_name(&"x".repeat(65)).is_err());
    }
}

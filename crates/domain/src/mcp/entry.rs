//! One server entry of a `.mcp.json`: lenient when read, canonical when written.

use super::{McpServerConfig, McpTransport};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// A timeout longer than a day is taken for a mistake.
const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// Keys that only other programs use are ignored.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpServerConfig)]
pub struct McpServerEntry {
    /// `stdio`, `http` or `sse`. Without it, a command means `stdio` and a URL means `http`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<McpServerType>)]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
    /// The timeout of one tool call, in milliseconds.
    #[schema(minimum = 1, maximum = 86400000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// The startup timeout, in milliseconds.
    #[schema(minimum = 1, maximum = 86400000)]
    #[serde(default, rename = "startupTimeout", skip_serializing_if = "Option::is_none")]
    pub startup_timeout: Option<u64>,
    /// The working directory of a stdio server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// How a server is reached. The two names with `streamable` are those that other programs use for `http`; responses have `http`.
#[derive(utoipa::ToSchema)]
pub enum McpServerType {
    #[schema(rename = "stdio")]
    Stdio,
    #[schema(rename = "http")]
    Http,
    #[schema(rename = "sse")]
    Sse,
    #[schema(rename = "streamable-http")]
    StreamableHttp,
    #[schema(rename = "streamableHttp")]
    StreamableHttpCamelCase,
}

/// What is wrong with one entry. Each text continues "the MCP server "name" …".
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum McpEntryError {
    #[error("has an invalid name; a name has 1 to 64 letters, digits, _ and -")]
    Name,
    #[error("needs either a command (stdio) or a url (http, sse), and not both")]
    CommandOrUrl,
    #[error("has the unknown type {0:?}; use stdio, http or sse")]
    Kind(String),
    #[error("has an empty command")]
    NoCommand,
    #[error("has an invalid url {0:?}; it must begin with http:// or https://")]
    Url(String),
    #[error("has an invalid header {0:?}")]
    Header(String),
    #[error("has an invalid variable name {0:?} in its env")]
    Variable(String),
    #[error("has a NUL character in its command, arguments or environment")]
    Nul,
    #[error("has an invalid timeout; it must be 1 to {MAX_TIMEOUT_MS} ms")]
    Timeout,
    #[error("cannot be parsed: {0}")]
    Shape(String),
    /// Stored, but not to be decrypted.
    #[error("cannot be used: {0}")]
    Secrets(String),
}

impl TryFrom<McpServerEntry> for McpServerConfig {
    type Error = McpEntryError;

    fn try_from(entry: McpServerEntry) -> Result<Self, McpEntryError> {
        let McpServerEntry { kind, command, args, env, url, headers, disabled, timeout, startup_timeout, cwd } = entry;
        let transport = match (kind.as_deref(), command, url) {
            (None | Some("stdio"), Some(command), None) => McpTransport::Stdio { command, args, env },
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
                McpTransport::Http { url, headers }
            }
            (Some("sse"), None, Some(url)) => McpTransport::Sse { url, headers },
            (Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "sse") | None, ..) => {
                return Err(McpEntryError::CommandOrUrl);
            }
            (Some(other), ..) => return Err(McpEntryError::Kind(other.to_owned())),
        };
        transport.check()?;
        let folder = cwd.filter(|cwd| !cwd.is_empty()).map(Into::into);
        let (startup_timeout, call_timeout) = (duration(startup_timeout)?, duration(timeout)?);
        Ok(Self { transport, disabled, startup_timeout, call_timeout, folder })
    }
}

fn duration(millis: Option<u64>) -> Result<Option<Duration>, McpEntryError> {
    match millis {
        None => Ok(None),
        Some(millis @ 1..=MAX_TIMEOUT_MS) => Ok(Some(Duration::from_millis(millis))),
        Some(_) => Err(McpEntryError::Timeout),
    }
}

impl From<McpServerConfig> for McpServerEntry {
    fn from(config: McpServerConfig) -> Self {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let kind = Some(config.transport.kind().to_owned());
        let common = Self {
            kind,
            disabled: config.disabled,
            timeout: config.call_timeout.map(millis),
            startup_timeout: config.startup_timeout.map(millis),
            cwd: config.folder.map(|folder| folder.to_string_lossy().into_owned()),
            ..Self::default()
        };
        match config.transport {
            McpTransport::Stdio { command, args, env } => Self { command: Some(command), args, env, ..common },
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                Self { url: Some(url), headers, ..common }
            }
        }
    }
}

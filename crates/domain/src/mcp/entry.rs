//! One server as it stands in a `.mcp.json`: lenient in what it takes, plain in what it writes.

use super::{ServerConfig, Transport};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// Longer than a day is a slip of the hand.
const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1000;

/// Keys that other programs keep in their files are passed over.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = McpServerConfig)]
pub struct Entry {
    /// `stdio`, `http` or `sse`. Without it a command means stdio and an address http.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
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
    /// For one call of a tool, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// For the start, in milliseconds.
    #[serde(default, rename = "startupTimeout", skip_serializing_if = "Option::is_none")]
    pub startup_timeout: Option<u64>,
    /// The folder that a stdio server is started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// What is wrong with one entry. Reads well after "the MCP server "name" ".
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EntryError {
    #[error("has a name of other than 1 to 64 letters, digits, _ and -")]
    Name,
    #[error("needs either a command (stdio) or a url (http, sse), and not both")]
    CommandOrUrl,
    #[error("is of the unknown type {0:?}; there are stdio, http and sse")]
    Kind(String),
    #[error("has an empty command")]
    NoCommand,
    #[error("has an address that begins with neither http:// nor https://: {0:?}")]
    Url(String),
    #[error("has a header {0:?} that cannot be sent")]
    Header(String),
    #[error("has a variable with the impossible name {0:?} in its env")]
    Variable(String),
    #[error("has a NUL in its command, its arguments or its environment")]
    Nul,
    #[error("has a timeout of other than 1 to {MAX_TIMEOUT_MS} ms")]
    Timeout,
    #[error("cannot be understood: {0}")]
    Shape(String),
}

impl TryFrom<Entry> for ServerConfig {
    type Error = EntryError;

    fn try_from(entry: Entry) -> Result<Self, EntryError> {
        let Entry { kind, command, args, env, url, headers, disabled, timeout, startup_timeout, cwd } = entry;
        let transport = match (kind.as_deref(), command, url) {
            (None | Some("stdio"), Some(command), None) => Transport::Stdio { command, args, env },
            (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
                Transport::Http { url, headers }
            }
            (Some("sse"), None, Some(url)) => Transport::Sse { url, headers },
            (Some("stdio" | "http" | "streamable-http" | "streamableHttp" | "sse") | None, ..) => {
                return Err(EntryError::CommandOrUrl);
            }
            (Some(other), ..) => return Err(EntryError::Kind(other.to_owned())),
        };
        transport.check()?;
        let folder = cwd.filter(|cwd| !cwd.is_empty()).map(Into::into);
        let (startup_timeout, call_timeout) = (duration(startup_timeout)?, duration(timeout)?);
        Ok(Self { transport, disabled, startup_timeout, call_timeout, folder })
    }
}

fn duration(millis: Option<u64>) -> Result<Option<Duration>, EntryError> {
    match millis {
        None => Ok(None),
        Some(millis @ 1..=MAX_TIMEOUT_MS) => Ok(Some(Duration::from_millis(millis))),
        Some(_) => Err(EntryError::Timeout),
    }
}

impl From<ServerConfig> for Entry {
    fn from(config: ServerConfig) -> Self {
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
            Transport::Stdio { command, args, env } => Self { command: Some(command), args, env, ..common },
            Transport::Http { url, headers } | Transport::Sse { url, headers } => {
                Self { url: Some(url), headers, ..common }
            }
        }
    }
}

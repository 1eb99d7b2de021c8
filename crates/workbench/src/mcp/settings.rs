//! Timeouts and limits for MCP servers.

use crate::{egress::EgressPolicy, process::BackoffLimits};
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

/// The protocol revisions that are supported. rmcp itself accepts any version that a server names.
pub const SUPPORTED_VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Which of the two handshakes is tried first with a stdio server. HTTP servers get the newer one, with a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolEra {
    /// `initialize`, up to 2025-11-25. Tried first, because some servers ignore the newer one instead of rejecting it.
    Legacy,
    /// `server/discover`, from 2026-07-28 on.
    Modern,
}

#[derive(Clone, Debug)]
pub struct McpClientSettings {
    /// Where stdio servers without a configured folder are started. Must exist.
    pub folder: PathBuf,
    /// What every stdio server gets besides its config's variables. Nothing else is inherited.
    pub environment: BTreeMap<OsString, OsString>,
    pub stdio_era: ProtocolEra,
    /// From the start to the end of the handshake. Packages may have to be downloaded first.
    pub startup_timeout: Duration,
    /// For all pages of a tool list.
    pub list_timeout: Duration,
    /// For a tool call, unless the caller or the config sets another timeout.
    pub call_timeout: Duration,
    /// A server that was idle for this long is stopped; the next use starts it again.
    pub idle_timeout: Duration,
    /// For stopping a server.
    pub close_timeout: Duration,
    /// How long to wait after a change notification before the tools are listed again.
    pub debounce: Duration,
    pub backoff: BackoffLimits,
    pub max_pages: usize,
    pub max_tools: usize,
    pub egress: Arc<EgressPolicy>,
}

impl McpClientSettings {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            environment: BTreeMap::new(),
            stdio_era: ProtocolEra::Legacy,
            startup_timeout: Duration::from_secs(60),
            list_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(600),
            close_timeout: Duration::from_secs(10),
            debounce: Duration::from_millis(250),
            backoff: BackoffLimits::default(),
            max_pages: 1000,
            max_tools: 10_000,
            egress: Arc::default(),
        }
    }
}

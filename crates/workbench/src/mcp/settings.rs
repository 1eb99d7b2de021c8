//! How long servers are waited for, and how much of them is taken.

use crate::process::Limits;
use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

/// The revisions of the protocol that are spoken here. rmcp takes whatever a server answers.
pub const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Which of the two kinds of greeting a stdio server hears first. HTTP servers are asked for the newer one and fall back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, up to 2025-11-25. Servers that pass over what they do not know would keep the other one waiting.
    Legacy,
    /// `server/discover`, from 2026-07-28 on.
    Modern,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Where stdio servers without a folder of their own are started; exists.
    pub folder: PathBuf,
    /// What every stdio server gets besides what its config names. Nothing else of the environment gets through.
    pub environment: BTreeMap<OsString, OsString>,
    pub stdio_era: Era,
    /// From the order to start to the end of the greeting. Packages may have to be fetched first.
    pub startup: Duration,
    /// For all pages of a list of tools.
    pub list: Duration,
    /// For a call of a tool, where neither the caller nor the config says otherwise.
    pub call: Duration,
    /// A server that nobody used for so long is stopped; the next use starts it again.
    pub idle: Duration,
    /// For the end of a server that was asked to end.
    pub close: Duration,
    /// After word of a change, how long it must be quiet before the tools are listed again.
    pub debounce: Duration,
    pub backoff: Limits,
    pub max_pages: usize,
    pub max_tools: usize,
}

impl Settings {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            environment: BTreeMap::new(),
            stdio_era: Era::Legacy,
            startup: Duration::from_secs(60),
            list: Duration::from_secs(30),
            call: Duration::from_secs(600),
            idle: Duration::from_secs(600),
            close: Duration::from_secs(10),
            debounce: Duration::from_millis(250),
            backoff: Limits::default(),
            max_pages: 1000,
            max_tools: 10_000,
        }
    }
}

//! `[sandbox]`: where the programs of agents run.

use super::{AppConfigError, reader::ConfigReader};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SandboxSection {
    pub agents: AgentIsolation,
    /// Further files and folders that programs inside can read.
    pub programs: Vec<PathBuf>,
    pub idle: Duration,
    pub max_open: usize,
}

/// Where the programs of agents run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgentIsolation {
    /// In the strongest sandbox that works here, or not at all.
    Auto,
    Native,
    /// With the rights of the server's user.
    None,
}

const PROGRAMS: &str =
    "a list of absolute paths that exist, outside of /workspace, /home/agent, /tmp, /proc, /dev and /etc";
/// The sandbox has its own.
const OWN: [&str; 6] = ["/workspace", "/home/agent", "/tmp", "/proc", "/dev", "/etc"];

impl SandboxSection {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        Ok(Self {
            agents: from.parsed("sandbox.agents", "\"auto\", \"native\" or \"none\"", |text| match text {
                "auto" => Some(AgentIsolation::Auto),
                "native" => Some(AgentIsolation::Native),
                "none" => Some(AgentIsolation::None),
                _ => None,
            })?,
            programs: from.list("sandbox.programs", PROGRAMS, |text| program(Path::new(text)))?,
            idle: from.seconds("sandbox.idle_seconds", 10..=604_800)?,
            max_open: from.integer("sandbox.max_open", 1..=10_000)?,
        })
    }
}

fn program(path: &Path) -> Option<PathBuf> {
    let is_own = OWN.iter().any(|own| path.starts_with(own)) || path == Path::new("/");
    (path.is_absolute() && !is_own && path.exists()).then(|| path.to_owned())
}

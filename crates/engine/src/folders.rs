//! Where agents work on disk.

use domain::ids::{AgentId, RoomId};
use std::path::PathBuf;

/// Absolute paths; what is in them belongs to the agents.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The data folder.
    pub data: PathBuf,
    /// One folder for all rooms that the operator named, instead of one per room.
    pub workspace: Option<PathBuf>,
}

impl Folders {
    /// Where the agents of a room work.
    pub fn workplace(&self, room: RoomId) -> PathBuf {
        self.workspace.clone().unwrap_or_else(|| self.data.join("rooms").join(room.to_string()))
    }

    /// Where an agent's program keeps what it remembers.
    pub fn home(&self, agent: AgentId) -> PathBuf {
        self.data.join("agents").join(agent.to_string())
    }
}

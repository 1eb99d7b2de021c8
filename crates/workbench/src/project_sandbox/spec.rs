//! What a sandbox is for and what it gets, as plain data.

use domain::project::SpaceKey;
use sandbox::{GUEST_HOME, GUEST_WORKSPACE, SandboxLimits};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The folder of the data folder in which the home folders of sandboxes are, each named by the key of its sandbox.
pub const HOMES: &str = "homes";

/// Names a sandbox: those who use the same key share one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SandboxKey(String);

impl SandboxKey {
    /// `kind` and `id` say what the sandbox is for, such as `room` and the room's id.
    pub fn new(kind: &str, id: impl fmt::Display) -> Self {
        Self(format!("{kind}-{id}"))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A project, or a room without one, has one sandbox.
impl From<SpaceKey> for SandboxKey {
    fn from(space: SpaceKey) -> Self {
        match space {
            SpaceKey::Project(project) => Self::new("project", project),
            SpaceKey::Room(room) => Self::new("room", room),
        }
    }
}

impl fmt::Display for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A sandbox as its users want it. The project's folder must exist when it is opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SandboxSpec {
    pub key: SandboxKey,
    /// The project's folder on this machine; `/workspace` inside.
    pub workspace: PathBuf,
    /// Whether the project's folder is the server's own. An existing folder of the machine keeps its owners.
    pub owns_workspace: bool,
    /// The home folder on this machine, which outlives the sandbox; `/home/agent` inside.
    pub home: PathBuf,
    pub limits: SandboxLimits,
    /// The hosts that programs may reach through the egress proxy. None: no network.
    pub allowed_hosts: Vec<String>,
}

impl SandboxSpec {
    pub fn new(key: SandboxKey, workspace: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        let (workspace, home) = (workspace.into(), home.into());
        Self { key, workspace, owns_workspace: true, home, limits: SandboxLimits::default(), allowed_hosts: Vec::new() }
    }

    /// The path inside of a file or folder of this machine. `None`: it does not exist inside.
    pub fn path_inside(&self, path: &Path) -> Option<PathBuf> {
        let mounts = [(&self.home, GUEST_HOME), (&self.workspace, GUEST_WORKSPACE)];
        mounts.into_iter().find_map(|(outside, inside)| {
            let rest = path.strip_prefix(outside).ok()?;
            // Joining an empty path would add a slash.
            Some(if rest.as_os_str().is_empty() { inside.into() } else { Path::new(inside).join(rest) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{SandboxKey, SandboxSpec};
    use std::path::{Path, PathBuf};

    #[test]
    fn paths_of_this_machine_have_their_place_inside() {
        let spec = SandboxSpec::new(SandboxKey::new("room", 7), "/data/rooms/7", "/data/homes/7");
        let inside = |path: &str| spec.path_inside(Path::new(path));
        assert_eq!(inside("/data/rooms/7"), Some(PathBuf::from("/workspace")));
        assert_eq!(inside("/data/rooms/7/a/b"), Some(PathBuf::from("/workspace/a/b")));
        assert_eq!(inside("/data/homes/7/agent"), Some(PathBuf::from("/home/agent/agent")));
        assert_eq!(inside("/data/rooms/70"), None);
        assert_eq!(inside("/etc/passwd"), None);
        assert_eq!(spec.key.to_string(), "room-7");
    }
}

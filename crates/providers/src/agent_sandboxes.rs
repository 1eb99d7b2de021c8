//! Where the programs of agents run on this server.

use std::fmt;
use workbench::project_sandbox::SandboxManager;

#[derive(Clone, Default)]
pub enum AgentSandboxes {
    /// With all rights of the server's user: the operator has chosen that.
    #[default]
    Outside,
    /// Each in the sandbox of its project.
    Inside(SandboxManager),
    /// Nowhere: the sandbox that the operator wants does not work on this machine. With what to do about it.
    Refused(String),
}

impl fmt::Debug for AgentSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outside => "outside",
            Self::Inside(_) => "inside",
            Self::Refused(_) => "refused",
        })
    }
}

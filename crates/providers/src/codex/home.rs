//! Prepares the agent's own `CODEX_HOME`.

use super::command::WIRES;
use crate::{
    AgentWorkspace,
    agent_files::AgentFiles,
    program::{self, AgentProgram},
};
use domain::{mcp::NamedMcpServer, provider_settings::WorkspaceProviders};
use std::{
    io,
    os::unix::fs::{DirBuilderExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};
use workbench::project_sandbox::SandboxSpec;

const SKILLS: &str = ".agents/skills";
const LOGIN: &str = "auth.json";
/// The login of the user who runs the server, below their home folder.
pub const SHARED_LOGIN: &str = ".codex/auth.json";

/// The folder in which Codex keeps this agent's threads, settings and login.
pub fn folder(home: &Path) -> PathBuf {
    home.join("codex")
}

/// The home folder of an agent's Codex, and where it runs. Agents and rooms with different ones do not share a program.
#[derive(Clone, PartialEq, Debug)]
pub struct CodexHome {
    pub folder: PathBuf,
    pub sandbox: Option<Arc<SandboxSpec>>,
    /// The MCP servers that the program reaches through the gateway, if it is in a sandbox.
    pub mcp_servers: Vec<NamedMcpServer>,
    /// The workspace's own key and address.
    pub provider_settings: WorkspaceProviders,
}

impl CodexHome {
    pub fn of(workspace: &AgentWorkspace) -> Self {
        let sandbox = workspace.sandbox.clone();
        let mcp_servers = if sandbox.is_some() { workspace.mcp_servers.clone() } else { Vec::new() };
        let provider_settings = workspace.provider_settings.only(&WIRES.map(|wire| wire.settings));
        Self { folder: workspace.home.clone(), sandbox, mcp_servers, provider_settings }
    }

    /// As the program sees it.
    pub fn folder_inside(&self) -> PathBuf {
        program::path_inside(self.sandbox.as_deref(), &self.folder)
    }
}

/// Creates the folder for a program inside of a sandbox, and removes what a tool could have written there to be used without
/// asking. Sessions stay.
pub fn prepare_inside(home: &CodexHome, sandbox: &SandboxSpec) -> io::Result<()> {
    let files = AgentFiles::open(&home.folder, Some(sandbox))?;
    files.create_folder("codex")?;
    for file in ["codex/rules", "codex/hooks.json", "codex/auth.json"] {
        files.remove(file)?;
    }
    // Codex trusts a workspace by itself unless its own settings say otherwise.
    files.write("codex/config.toml", "[projects.\"/workspace\"]\ntrust_level = \"untrusted\"\n")
}

/// Creates the folder. If sharing is enabled and it has no login, links the login of the user who runs the server.
pub fn prepare(home: &Path, program: &AgentProgram) -> io::Result<()> {
    let folder = folder(home);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let own = folder.join(LOGIN);
    let shared = program.user_home().map(|person| person.join(SHARED_LOGIN));
    match shared {
        // A link, so that both see a renewed token.
        Some(shared) if program.share_login && shared.is_file() && own.symlink_metadata().is_err() => {
            symlink(shared, own)
        }
        // A link of earlier: the login is not shared any more, or the workspace has a key of its own.
        _ if !program.share_login && own.is_symlink() => std::fs::remove_file(own),
        _ => Ok(()),
    }
}

pub fn has_login(home: &Path) -> bool {
    folder(home).join(LOGIN).exists()
}

/// Codex does not create its helper programs below the system's temporary folder, so every sandboxed command fails
/// there.
pub fn breaks_sandbox(home: &Path) -> bool {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    resolved(home).starts_with(resolved(&std::env::temp_dir()))
}

/// Copies the agent's skills to the folder where Codex looks for them in a workspace.
pub async fn sync_skills(workspace: &AgentWorkspace) -> io::Result<()> {
    let (skills, folder, holder) = (workspace.skills.clone(), workspace.folder.clone(), workspace.skill_holder());
    let copy = move || workbench::skills::sync_folders(&skills, &folder, SKILLS, &holder);
    tokio::task::spawn_blocking(copy).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::{breaks_sandbox, folder, has_login, prepare};
    use crate::codex::tests::program;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn login_is_linked_only_if_shared_and_never_replaces_another() {
        let (person, agent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut program = program("codex", &[("HOME", person.path().to_str().unwrap())]);
        program.share_login = true;
        prepare(agent.path(), &program).unwrap();
        assert!(!has_login(agent.path()), "there is no login to share");
        std::fs::create_dir(person.path().join(".codex")).unwrap();
        std::fs::write(person.path().join(".codex/auth.json"), "theirs").unwrap();
        program.share_login = false;
        prepare(agent.path(), &program).unwrap();
        assert!(!has_login(agent.path()), "sharing is disabled");
        program.share_login = true;
        prepare(agent.path(), &program).unwrap();
        prepare(agent.path(), &program).unwrap();
        let own = folder(agent.path()).join("auth.json");
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "theirs");
        std::fs::remove_file(&own).unwrap();
        std::fs::write(&own, "its own").unwrap();
        prepare(agent.path(), &program).unwrap();
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "its own");
        assert_eq!(std::fs::read_to_string(person.path().join(".codex/auth.json")).unwrap(), "theirs");
        assert_eq!(folder(agent.path()).metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn home_below_the_temporary_folder_breaks_the_sandbox() {
        let agent = tempfile::tempdir().unwrap();
        assert!(breaks_sandbox(agent.path()));
        assert!(!breaks_sandbox(std::path::Path::new("/usr/share")));
    }
}

//! Prepares the agent's own `CODEX_HOME`.

use crate::{AgentWorkspace, program::AgentProgram};
use std::{
    io,
    os::unix::fs::{DirBuilderExt as _, symlink},
    path::{Path, PathBuf},
};

const LOGIN: &str = "auth.json";
/// The login of the user who runs the server, below their home folder.
pub const SHARED_LOGIN: &str = ".codex/auth.json";

/// The folder in which Codex keeps this agent's threads, settings and login.
pub fn folder(home: &Path) -> PathBuf {
    home.join("codex")
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
    tokio::task::spawn_blocking(move || workbench::skills::sync_folders(&skills, &folder, ".agents/skills", &holder))
        .await
        .map_err(io::Error::other)?
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

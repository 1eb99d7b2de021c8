//! Prepares the files for the program: its own folder, the login it may use, its MCP servers and skills.

use super::command::{ClaudeLaunchSettings, config_folder};
use crate::{
    agent_files::{self, AgentFiles},
    gateway::TOKEN_PLACE,
    program::AgentProgram,
};
use serde_json::json;
use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink},
    path::{Path, PathBuf},
};
use workbench::project_sandbox::SandboxSpec;

const CREDENTIALS: &str = ".credentials.json";
/// The program shows each skill as `greenroom:NAME`.
const PLUGIN_NAME: &str = "greenroom";

/// Settings of the program that a tool inside of the sandbox could have written: with them, tools would be used without
/// asking.
const CONTROL_FILES: [&str; 3] = ["settings.json", "settings.local.json", ".claude.json"];

/// Prepares the folder of a program inside of a sandbox, with the token of its process. Blocking; may copy files.
pub(super) fn prepare_inside(fixed: &ClaudeLaunchSettings, sandbox: &SandboxSpec, token: &str) -> io::Result<()> {
    let files = AgentFiles::open(&fixed.home, Some(sandbox))?;
    files.create_folder("claude")?;
    for file in CONTROL_FILES {
        files.remove(Path::new("claude").join(file))?;
    }
    let name = fixed.mcp_file.file_name().ok_or_else(|| io::Error::other("the MCP file has no name"))?;
    files.write(name, &fixed.mcp_config.replace(TOKEN_PLACE, token))?;
    let holder = fixed.home.to_string_lossy();
    let plugin = fixed.skills_folder.strip_prefix(&fixed.home).map_err(io::Error::other)?;
    files.create_folder(plugin.join(".claude-plugin"))?;
    files.write(plugin.join(".claude-plugin/plugin.json"), &plugin_manifest())?;
    let into = plugin.join("skills");
    agent_files::sync_skills(&fixed.skills, &fixed.home, Some(sandbox), &into, &holder)
}

/// Blocking; may copy files.
pub(super) fn prepare(fixed: &ClaudeLaunchSettings, login: Option<&Path>) -> io::Result<()> {
    let config = config_folder(&fixed.home);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&config)?;
    if let Some(login) = login {
        link_login(login, &config.join(CREDENTIALS))?;
    }
    write_private(&fixed.mcp_file, &fixed.mcp_config)?;
    let holder = fixed.home.to_string_lossy();
    // Where earlier versions copied the skills to, for all rooms.
    workbench::skills::sync_folders(&[], &config, "skills", &holder)?;
    write_plugin(&fixed.skills_folder)?;
    workbench::skills::sync_folders(&fixed.skills, &fixed.skills_folder, "skills", &holder)
}

/// Makes the folder a plugin of the program, which has nothing but the skills in it.
fn write_plugin(folder: &Path) -> io::Result<()> {
    let about = folder.join(".claude-plugin");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&about)?;
    write_private(&about.join("plugin.json"), &plugin_manifest())
}

fn plugin_manifest() -> String {
    json!({"name": PLUGIN_NAME, "version": "1.0.0", "description": "The skills of this agent"}).to_string()
}

/// The login file of the user who runs the server, if it exists and sharing is enabled.
pub(super) fn operator_login(program: &AgentProgram) -> Option<PathBuf> {
    let login = program.user_home().filter(|_| program.share_login)?.join(".claude").join(CREDENTIALS);
    login.is_file().then_some(login)
}

/// Creates a link, so that both see a renewed login. The agent's own login is never replaced.
fn link_login(login: &Path, to: &Path) -> io::Result<()> {
    match symlink(login, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Writes atomically, because another process of this agent may be reading the file.
fn write_private(file: &Path, content: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&new)?.write_all(content.as_bytes())?;
    fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use super::{CREDENTIALS, link_login, write_private};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn invariant_17_secrets_stay_the_mcp_config_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        for content in ["a longer first content", "second"] {
            write_private(&file, content).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn login_link_never_replaces_an_existing_login() {
        let folder = tempfile::tempdir().unwrap();
        let (login, own) = (folder.path().join("login"), folder.path().join(CREDENTIALS));
        fs::write(&login, "persons").unwrap();
        link_login(&login, &own).unwrap();
        link_login(&login, &own).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "persons");
        fs::remove_file(&own).unwrap();
        fs::write(&own, "agents").unwrap();
        link_login(&login, &own).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "agents");
    }
}

//! What lies on disk before the program starts: its own folder, the login it may use, its MCP servers and skills.

use super::command::{Fixed, config_folder};
use crate::program::Program;
use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink},
    path::{Path, PathBuf},
};

const CREDENTIALS: &str = ".credentials.json";

/// Blocking; may copy files.
pub(super) fn prepare(fixed: &Fixed, login: Option<&Path>) -> io::Result<()> {
    let config = config_folder(&fixed.home);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&config)?;
    if let Some(login) = login {
        lend(login, &config.join(CREDENTIALS))?;
    }
    write_privately(&fixed.mcp_file, &fixed.mcp)?;
    let skills: Vec<(String, PathBuf)> =
        fixed.skills.iter().map(|seen| (seen.folder.name.clone(), seen.folder.path.clone())).collect();
    let holder = fixed.home.to_string_lossy();
    workbench::skills::sync(&skills, &config.join("skills"), &holder)
}

/// The login of the person who runs the server, where it is to be lent and there is one.
pub(super) fn persons_login(program: &Program) -> Option<PathBuf> {
    let login = program.persons_home().filter(|_| program.share_login)?.join(".claude").join(CREDENTIALS);
    login.is_file().then_some(login)
}

/// A link, so that a login renewed by either is renewed for both. One of the agent's own is left alone.
fn lend(login: &Path, to: &Path) -> io::Result<()> {
    match symlink(login, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Whole or not at all: another process of this agent may be reading it.
fn write_privately(file: &Path, content: &str) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&new)?.write_all(content.as_bytes())?;
    fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use super::{CREDENTIALS, lend, write_privately};
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn invariant_17_secrets_stay_the_file_of_mcp_servers_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        for content in ["a longer first content", "second"] {
            write_privately(&file, content).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_login_is_lent_once_and_never_overwrites_one() {
        let folder = tempfile::tempdir().unwrap();
        let (login, own) = (folder.path().join("login"), folder.path().join(CREDENTIALS));
        fs::write(&login, "persons").unwrap();
        lend(&login, &own).unwrap();
        lend(&login, &own).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "persons");
        fs::remove_file(&own).unwrap();
        fs::write(&own, "agents").unwrap();
        lend(&login, &own).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "agents");
    }
}

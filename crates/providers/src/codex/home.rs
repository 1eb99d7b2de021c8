//! The agent's own `CODEX_HOME`, and what lies in it before Codex starts.

use crate::{Place, program::Program};
use std::{
    io,
    os::unix::fs::{DirBuilderExt as _, symlink},
    path::{Path, PathBuf},
};

const LOGIN: &str = "auth.json";

/// Where Codex keeps threads, settings and its login for this agent.
pub fn folder(home: &Path) -> PathBuf {
    home.join("codex")
}

/// Makes the folder and lends it the login of the person who runs the server, if that is wanted and it has none.
pub fn prepare(home: &Path, program: &Program) -> io::Result<()> {
    let folder = folder(home);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let own = folder.join(LOGIN);
    let persons = program.persons_home().map(|person| person.join(".codex").join(LOGIN));
    match persons {
        // A link, so that a token that is renewed on either side is renewed on both.
        Some(persons) if program.share_login && persons.is_file() && own.symlink_metadata().is_err() => {
            symlink(persons, own)
        }
        _ => Ok(()),
    }
}

pub fn has_login(home: &Path) -> bool {
    folder(home).join(LOGIN).exists()
}

/// Codex refuses to make its helper programs under the system's folder for temporary files, and then every sandboxed
/// command fails.
pub fn breaks_the_sandbox(home: &Path) -> bool {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    resolved(home).starts_with(resolved(&std::env::temp_dir()))
}

/// Puts the agent's skills where Codex looks for them in a workplace.
pub async fn bring_skills(place: &Place) -> io::Result<()> {
    let skills: Vec<(String, PathBuf)> =
        place.skills.iter().map(|skill| (skill.name.clone(), skill.path.clone())).collect();
    let (into, holder) = (place.workplace.join(".agents").join("skills"), place.agent.id.to_string());
    tokio::task::spawn_blocking(move || workbench::skills::sync(&skills, &into, &holder))
        .await
        .map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::{breaks_the_sandbox, folder, has_login, prepare};
    use crate::codex::tests::program;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_persons_login_is_lent_only_if_wanted_and_never_over_another() {
        let (person, agent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut program = program("codex", &[("HOME", person.path().to_str().unwrap())]);
        program.share_login = true;
        prepare(agent.path(), &program).unwrap();
        assert!(!has_login(agent.path()), "the person has none");
        std::fs::create_dir(person.path().join(".codex")).unwrap();
        std::fs::write(person.path().join(".codex/auth.json"), "theirs").unwrap();
        program.share_login = false;
        prepare(agent.path(), &program).unwrap();
        assert!(!has_login(agent.path()), "it is not to be shared");
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
    fn a_home_among_temporary_files_is_known_to_break_the_sandbox() {
        let agent = tempfile::tempdir().unwrap();
        assert!(breaks_the_sandbox(agent.path()));
        assert!(!breaks_the_sandbox(std::path::Path::new("/usr/share")));
    }
}

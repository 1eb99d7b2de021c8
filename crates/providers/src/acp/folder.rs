//! Prepares the files for an agent: its own folder, which is its `HOME`, the login it may use, and its skills. Writes
//! nothing outside of the agent's folder and its workspace.

use super::{
    gemini::{self, WorkspaceOverrides},
    preset::{HomeLayout, Preset},
};
use crate::{AgentWorkspace, agent_files::AgentFiles, gateway::GatewayAccess, program::AgentProgram};
use domain::{ids::RoomId, time::Timestamp};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};
use workbench::project_sandbox::SandboxSpec;

/// Longer than the minute that is part of a session's file name.
const MIN_LOAD_AGE: Duration = Duration::from_secs(65);

const SESSIONS: &str = "greenroom-sessions";
const MAX_RECORD_BYTES: u64 = 4096;

/// How long an unused session is kept. After that, the session is rebuilt from the history.
const MAX_IDLE_AGE: Duration = Duration::from_secs(60 * 24 * 60 * 60);

pub fn home_of(preset: &Preset, workspace: &AgentWorkspace) -> PathBuf {
    workspace.home.join(&preset.name)
}

/// How to start the program, depending on its files.
#[derive(Debug)]
pub struct PreparedHome {
    pub environment: BTreeMap<OsString, OsString>,
    pub args: Vec<OsString>,
    pub overrides: WorkspaceOverrides,
    /// The working directory of the process. A session has its own.
    pub folder: PathBuf,
}

/// Prepares all files of a program inside of a sandbox; `access` is the token of its process. Blocking; may copy files.
pub fn prepare_inside(
    preset: &Preset,
    program: &AgentProgram,
    workspace: &AgentWorkspace,
    sandbox: &SandboxSpec,
    access: &GatewayAccess,
) -> io::Result<PreparedHome> {
    let home = home_of(preset, workspace);
    let files = AgentFiles::open(&home, Some(sandbox))?;
    if let Some(folder) = preset.skills {
        let holder = workspace.skill_holder();
        workbench::skills::sync_folders(&workspace.skills, &workspace.folder, folder, &holder)?;
    }
    let guest_home = workspace.path_inside(&home);
    let mut set: Vec<(&str, &OsStr)> = vec![("HOME", guest_home.as_os_str())];
    set.extend(preset.set_variables.iter().map(|(name, value)| (*name, OsStr::new(*value))));
    // The vendors of other keys cannot be reached from inside.
    let mut environment = program.environment_inside(sandbox, &[], &set);
    environment.extend(access.variables());
    let (mut args, mut folder) = (Vec::new(), workspace.path_inside(&workspace.folder));
    if preset.home == HomeLayout::Gemini {
        environment.insert("GEMINI_SANDBOX".into(), "false".into());
        files.create_folder(".gemini")?;
        // A tool could have written these, to be used without asking or to lead elsewhere.
        for file in [".env", ".gemini/.env", ".gemini/trustedFolders.json", ".gemini/extensions", ".gemini/policies"] {
            files.remove(file)?;
        }
        let settings = gemini::settings(&environment, &home, workspace).to_string();
        files.write(".gemini/settings.json", &settings)?;
        let system = gemini::system_settings(&guest_home);
        files.write(Path::new(".gemini").join(system.file_name().unwrap_or_default()), &settings)?;
        environment.insert("GEMINI_CLI_SYSTEM_SETTINGS_PATH".into(), system.into_os_string());
        files.write(
            Path::new(".gemini").join(gemini::INSTRUCTIONS),
            workspace.agent.spec.system_prompt.as_deref().unwrap_or_default(),
        )?;
        files.write(".gemini/greenroom-policy.toml", &gemini::rules(&workspace.agent.spec.tools))?;
        let rules = guest_home.join(".gemini/greenroom-policy.toml");
        args = vec!["--admin-policy".into(), rules.into_os_string()];
        folder = guest_home;
    }
    let overrides = WorkspaceOverrides::of(preset, workspace, &home);
    if preset.home == HomeLayout::Gemini {
        overrides.apply(&mut environment);
    }
    Ok(PreparedHome { environment, args, overrides, folder })
}

/// Prepares all files. Blocking; may copy files.
pub fn prepare(preset: &Preset, program: &AgentProgram, workspace: &AgentWorkspace) -> io::Result<PreparedHome> {
    let home = home_of(preset, workspace);
    create(&home)?;
    if program.share_login
        && let Some(person) = program.user_home()
    {
        for file in preset.login_files {
            link_login(&person.join(file), &home.join(file))?;
        }
    }
    if let Some(folder) = preset.skills {
        let holder = workspace.skill_holder();
        workbench::skills::sync_folders(&workspace.skills, &workspace.folder, folder, &holder)?;
    }
    let mut set: Vec<(&str, &OsStr)> = vec![("HOME", home.as_os_str())];
    set.extend(preset.set_variables.iter().map(|(name, value)| (*name, OsStr::new(*value))));
    let mut environment = program.environment(preset.allowed_variables, &set);
    let (mut args, mut started_in) = (Vec::new(), workspace.folder.clone());
    if preset.home == HomeLayout::Gemini {
        let folder = home.join(".gemini");
        create(&folder)?;
        let settings = gemini::settings(&environment, &home, workspace).to_string();
        write(&folder.join("settings.json"), &settings)?;
        let system = gemini::system_settings(&home);
        write(&system, &settings)?;
        environment.insert("GEMINI_CLI_SYSTEM_SETTINGS_PATH".into(), system.into_os_string());
        let instructions = workspace.agent.spec.system_prompt.as_deref().unwrap_or_default();
        write(&folder.join(gemini::INSTRUCTIONS), instructions)?;
        let rules = folder.join("greenroom-policy.toml");
        write(&rules, &gemini::rules(&workspace.agent.spec.tools))?;
        args = vec!["--admin-policy".into(), rules.into_os_string()];
        prune(&folder.join("tmp"), SystemTime::UNIX_EPOCH + since_1970(Timestamp::now()))?;
    }
    let surroundings = WorkspaceOverrides::of(preset, workspace, &home);
    if preset.home == HomeLayout::Gemini {
        surroundings.apply(&mut environment);
        // Gemini reads settings and starts MCP servers from its working directory before a session is opened.
        started_in = home;
    }
    Ok(PreparedHome { environment, args, overrides: surroundings, folder: started_in })
}

/// Removes sessions that were unused for long. Gemini's own cleanup is disabled, see `gemini::settings`.
fn prune(projects: &Path, now: SystemTime) -> io::Result<()> {
    for project in entries(projects)? {
        for file in entries(&project.join("chats"))? {
            let used = file.symlink_metadata()?.modified()?;
            if file.extension() == Some(OsStr::new("jsonl"))
                && now.duration_since(used).is_ok_and(|age| age > MAX_IDLE_AGE)
            {
                fs::remove_file(&file)?;
            }
        }
    }
    Ok(())
}

fn since_1970(now: Timestamp) -> Duration {
    now.since(Timestamp::from_millis(0))
}

/// Lists a folder that may not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Records when the room's session was created, for programs that cannot load a fresh session.
pub fn remember_session(preset: &Preset, workspace: &AgentWorkspace, session: &str, now: Timestamp) -> io::Result<()> {
    let files = session_files(preset, workspace)?;
    files.create_folder(SESSIONS)?;
    let record = json!({"session": session, "made": now.as_millis()}).to_string();
    files.write(Path::new(SESSIONS).join(file_name(workspace.room_id)), &record)
}

fn session_files(preset: &Preset, workspace: &AgentWorkspace) -> io::Result<AgentFiles> {
    let home = home_of(preset, workspace);
    if workspace.sandbox.is_none() {
        create(&home)?;
    }
    AgentFiles::open(&home, workspace.sandbox.as_deref())
}

/// Removes the record, so that the session is not loaded any more.
pub fn forget_session(preset: &Preset, workspace: &AgentWorkspace) -> io::Result<()> {
    session_files(preset, workspace)?.remove(Path::new(SESSIONS).join(file_name(workspace.room_id)))
}

/// Whether the session is known to be old enough. A session without a record may be fresh.
pub fn is_old_enough_to_load(preset: &Preset, workspace: &AgentWorkspace, session: &str, now: Timestamp) -> bool {
    let file = Path::new(SESSIONS).join(file_name(workspace.room_id));
    let text = session_files(preset, workspace).ok().and_then(|files| files.read(file, MAX_RECORD_BYTES).ok());
    let remembered = text.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let made = remembered.filter(|remembered| remembered["session"] == session).and_then(|it| it["made"].as_i64());
    made.is_some_and(|made| now.since(Timestamp::from_millis(made)) >= MIN_LOAD_AGE)
}

fn file_name(room: RoomId) -> String {
    format!("{room}.json")
}

fn create(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a link, so that both see a renewed login. The agent's own login is never replaced.
fn link_login(login: &Path, to: &Path) -> io::Result<()> {
    if !login.is_file() {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        create(folder)?;
    }
    match symlink(login, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Writes atomically, because another process of this agent may be reading the file.
fn write(file: &Path, content: &str) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    // Two rooms of one agent may write the file at the same time.
    let new = file.with_extension(format!("{}.new", WRITTEN.fetch_add(1, Ordering::Relaxed)));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&new).and_then(|mut new| new.write_all(content.as_bytes()));
    match written.and_then(|()| fs::rename(&new, file)) {
        Ok(()) => Ok(()),
        Err(error) => {
            if let Err(error) = fs::remove_file(&new) {
                tracing::debug!(%error, file = %new.display(), "could not remove an unfinished file");
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        MAX_IDLE_AGE, MIN_LOAD_AGE, forget_session, home_of, is_old_enough_to_load, prepare, prune, remember_session,
    };
    use crate::{
        acp::{preset::Preset, testing},
        program::AgentProgram,
    };
    use domain::time::Timestamp;
    use serde_json::Value;
    use std::{collections::BTreeMap, ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path, time::SystemTime};

    fn program(variables: &[(&str, &str)], share_login: bool) -> AgentProgram {
        let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        AgentProgram { share_login, environment, ..testing::program("gemini") }
    }

    fn auth(folder: &Path, variables: &[(&str, &str)], share_login: bool) -> Value {
        let (preset, workspace) = (Preset::named("gemini").unwrap(), testing::workspace(folder));
        prepare(&preset, &program(variables, share_login), &workspace).unwrap();
        let file = home_of(&preset, &workspace).join(".gemini/settings.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let settings: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        settings["security"]["auth"]["selectedType"].clone()
    }

    #[test]
    fn login_method_depends_on_the_available_credentials() {
        let folder = || tempfile::tempdir().unwrap();
        assert_eq!(auth(folder().path(), &[("GEMINI_API_KEY", "k")], false), "gemini-api-key");
        assert_eq!(auth(folder().path(), &[("GOOGLE_API_KEY", "k")], false), "vertex-ai");
        assert_eq!(auth(folder().path(), &[("GEMINI_API_KEY", "")], false), Value::Null);
        let person = folder();
        fs::create_dir(person.path().join(".gemini")).unwrap();
        fs::write(person.path().join(".gemini/oauth_creds.json"), "login").unwrap();
        let variables = [("HOME", person.path().to_str().unwrap())];
        assert_eq!(auth(folder().path(), &variables, false), Value::Null);
        assert_eq!(auth(folder().path(), &variables, true), "oauth-personal");
        assert_eq!(
            fs::read_dir(person.path().join(".gemini")).unwrap().count(),
            1,
            "nothing is written to the user's folder"
        );
    }

    #[test]
    fn invariant_17_secrets_stay_only_allowed_variables_are_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        let (preset, workspace) = (Preset::named("gemini").unwrap(), testing::workspace(folder.path()));
        let variables = [("GEMINI_API_KEY", "k"), ("DATABASE_URL", "secret"), ("HOME", "other"), ("PATH", "p")];
        let environment = prepare(&preset, &program(&variables, false), &workspace).unwrap().environment;
        let seen: BTreeMap<&OsStr, &OsStr> = environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(seen[OsStr::new("HOME")], home_of(&preset, &workspace));
        assert_eq!(seen[OsStr::new("GEMINI_API_KEY")], "k");
        assert!(!seen.contains_key(OsStr::new("DATABASE_URL")));
    }

    #[test]
    fn invariant_14_limits_unused_sessions_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let chats = folder.path().join("project/chats");
        prune(folder.path(), SystemTime::UNIX_EPOCH).unwrap();
        fs::create_dir_all(&chats).unwrap();
        fs::write(folder.path().join("logs.json"), "").unwrap();
        let names = ["session-old.jsonl", "session-new.jsonl", "notes"];
        for name in names {
            fs::write(chats.join(name), "{}").unwrap();
        }
        let written = fs::metadata(chats.join("session-new.jsonl")).unwrap().modified().unwrap();
        for old in ["session-old.jsonl", "notes"] {
            let file = fs::File::options().write(true).open(chats.join(old)).unwrap();
            file.set_modified(written - MAX_IDLE_AGE * 2).unwrap();
        }
        prune(folder.path(), written).unwrap();
        assert_eq!(names.map(|name| chats.join(name).exists()), [false, true, true]);
    }

    #[test]
    fn only_a_recorded_session_becomes_old_enough_to_load() {
        let folder = tempfile::tempdir().unwrap();
        let (preset, workspace) = (Preset::named("gemini").unwrap(), testing::workspace(folder.path()));
        let made = Timestamp::from_millis(1_000_000);
        assert!(!is_old_enough_to_load(&preset, &workspace, "s", made + MIN_LOAD_AGE));
        remember_session(&preset, &workspace, "s", made).unwrap();
        assert!(!is_old_enough_to_load(&preset, &workspace, "s", made + MIN_LOAD_AGE / 2));
        assert!(is_old_enough_to_load(&preset, &workspace, "s", made + MIN_LOAD_AGE));
        assert!(!is_old_enough_to_load(&preset, &workspace, "another", made + MIN_LOAD_AGE));
        forget_session(&preset, &workspace).unwrap();
        forget_session(&preset, &workspace).unwrap();
        assert!(!is_old_enough_to_load(&preset, &workspace, "s", made + MIN_LOAD_AGE));
    }
}

//! What lies on disk before an agent starts: its own folder, which is its `HOME`, the login it may use, its skills.
//! Nothing outside of the agent's folder and its workplace is written.

use super::{
    gemini::{self, Surroundings},
    preset::{Home, Preset},
};
use crate::{Place, program::Program};
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

/// Longer than the minute that a session's file is named after.
const FRESH: Duration = Duration::from_secs(65);

const SESSIONS: &str = "greenroom-sessions";

/// How long a session is kept that is not used. A room that comes back later is told what was said.
const UNUSED: Duration = Duration::from_secs(60 * 24 * 60 * 60);

pub fn home_of(preset: &Preset, place: &Place) -> PathBuf {
    place.home.join(&preset.name)
}

/// What the program is started with, because of what lies in its folder.
#[derive(Debug)]
pub struct Prepared {
    pub environment: BTreeMap<OsString, OsString>,
    pub args: Vec<OsString>,
    pub surroundings: Surroundings,
    /// Where it is started. A session has its own folder.
    pub folder: PathBuf,
}

/// Makes everything ready. Blocking; may copy files.
pub fn prepare(preset: &Preset, program: &Program, place: &Place) -> io::Result<Prepared> {
    let home = home_of(preset, place);
    create(&home)?;
    if program.share_login
        && let Some(person) = program.persons_home()
    {
        for file in preset.login {
            lend(&person.join(file), &home.join(file))?;
        }
    }
    if let Some(folder) = preset.skills {
        let skills: Vec<(String, PathBuf)> =
            place.skills.iter().map(|skill| (skill.name.clone(), skill.path.clone())).collect();
        workbench::skills::sync(&skills, &place.workplace.join(folder), &place.agent.id.to_string())?;
    }
    let mut set: Vec<(&str, &OsStr)> = vec![("HOME", home.as_os_str())];
    set.extend(preset.set.iter().map(|(name, value)| (*name, OsStr::new(*value))));
    let mut environment = program.environment(preset.pass, &set);
    let (mut args, mut started_in) = (Vec::new(), place.workplace.clone());
    if preset.home == Home::Gemini {
        let folder = home.join(".gemini");
        create(&folder)?;
        let settings = gemini::settings(&environment, &home, place).to_string();
        write(&folder.join("settings.json"), &settings)?;
        let system = gemini::system_settings(&home);
        write(&system, &settings)?;
        environment.insert("GEMINI_CLI_SYSTEM_SETTINGS_PATH".into(), system.into_os_string());
        let instructions = place.agent.spec.system_prompt.as_deref().unwrap_or_default();
        write(&folder.join(gemini::INSTRUCTIONS), instructions)?;
        let rules = folder.join("greenroom-policy.toml");
        write(&rules, &gemini::rules(&place.agent.spec.tools))?;
        args = vec!["--admin-policy".into(), rules.into_os_string()];
        prune(&folder.join("tmp"), SystemTime::UNIX_EPOCH + since_1970(Timestamp::now()))?;
    }
    let surroundings = Surroundings::of(preset, place, &home);
    if preset.home == Home::Gemini {
        surroundings.apply(&mut environment);
        // Where it starts it reads settings and starts MCP servers, long before a session tells it better.
        started_in = home;
    }
    Ok(Prepared { environment, args, surroundings, folder: started_in })
}

/// Removes the sessions that nobody has used for long; Gemini itself must not, see above.
fn prune(projects: &Path, now: SystemTime) -> io::Result<()> {
    for project in entries(projects)? {
        for file in entries(&project.join("chats"))? {
            let used = file.symlink_metadata()?.modified()?;
            if file.extension() == Some(OsStr::new("jsonl")) && now.duration_since(used).is_ok_and(|age| age > UNUSED) {
                fs::remove_file(&file)?;
            }
        }
    }
    Ok(())
}

fn since_1970(now: Timestamp) -> Duration {
    now.since(Timestamp::from_millis(0))
}

/// Of a folder that may not be there.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// When the room's session with this agent was made: a program that cannot load a fresh one must know.
pub fn remember_session(preset: &Preset, place: &Place, session: &str, now: Timestamp) -> io::Result<()> {
    let folder = home_of(preset, place).join(SESSIONS);
    create(&folder)?;
    write(&folder.join(file_name(place.room_id)), &json!({"session": session, "made": now.as_millis()}).to_string())
}

/// The session is not to be loaded any more.
pub fn forget_session(preset: &Preset, place: &Place) -> io::Result<()> {
    match fs::remove_file(home_of(preset, place).join(SESSIONS).join(file_name(place.room_id))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Whether the session is known to be old enough. One that is not remembered may be fresh.
pub fn is_settled(preset: &Preset, place: &Place, session: &str, now: Timestamp) -> bool {
    let file = home_of(preset, place).join(SESSIONS).join(file_name(place.room_id));
    let remembered = fs::read_to_string(file).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let made = remembered.filter(|remembered| remembered["session"] == session).and_then(|it| it["made"].as_i64());
    made.is_some_and(|made| now.since(Timestamp::from_millis(made)) >= FRESH)
}

fn file_name(room: RoomId) -> String {
    format!("{room}.json")
}

fn create(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A link, so that a login renewed by either is renewed for both. One of the agent's own is left alone.
fn lend(login: &Path, to: &Path) -> io::Result<()> {
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

/// Whole or not at all: another process of this agent may be reading it.
fn write(file: &Path, content: &str) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    // Two rooms of one agent may write it at once.
    let new = file.with_extension(format!("{}.new", WRITTEN.fetch_add(1, Ordering::Relaxed)));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&new).and_then(|mut new| new.write_all(content.as_bytes()));
    match written.and_then(|()| fs::rename(&new, file)) {
        Ok(()) => Ok(()),
        Err(error) => {
            if let Err(error) = fs::remove_file(&new) {
                tracing::debug!(%error, file = %new.display(), "a file that was not finished stays");
            }
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FRESH, UNUSED, forget_session, home_of, is_settled, prepare, prune, remember_session};
    use crate::{
        acp::{preset::Preset, testing},
        program::Program,
    };
    use domain::time::Timestamp;
    use serde_json::Value;
    use std::{collections::BTreeMap, ffi::OsStr, fs, os::unix::fs::PermissionsExt as _, path::Path, time::SystemTime};

    fn program(variables: &[(&str, &str)], share_login: bool) -> Program {
        let environment = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Program { share_login, environment, ..testing::program("gemini") }
    }

    fn auth(folder: &Path, variables: &[(&str, &str)], share_login: bool) -> Value {
        let (preset, place) = (Preset::named("gemini").unwrap(), testing::place(folder));
        prepare(&preset, &program(variables, share_login), &place).unwrap();
        let file = home_of(&preset, &place).join(".gemini/settings.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let settings: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        settings["security"]["auth"]["selectedType"].clone()
    }

    #[test]
    fn the_way_to_log_in_is_what_there_is() {
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
        assert_eq!(fs::read_dir(person.path().join(".gemini")).unwrap().count(), 1, "nothing is written there");
    }

    #[test]
    fn invariant_17_secrets_stay_an_agent_sees_what_it_needs_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (preset, place) = (Preset::named("gemini").unwrap(), testing::place(folder.path()));
        let variables = [("GEMINI_API_KEY", "k"), ("DATABASE_URL", "secret"), ("HOME", "other"), ("PATH", "p")];
        let environment = prepare(&preset, &program(&variables, false), &place).unwrap().environment;
        let seen: BTreeMap<&OsStr, &OsStr> = environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(seen[OsStr::new("HOME")], home_of(&preset, &place));
        assert_eq!(seen[OsStr::new("GEMINI_API_KEY")], "k");
        assert!(!seen.contains_key(OsStr::new("DATABASE_URL")));
    }

    #[test]
    fn invariant_14_limits_sessions_that_nobody_uses_are_removed() {
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
            file.set_modified(written - UNUSED * 2).unwrap();
        }
        prune(folder.path(), written).unwrap();
        assert_eq!(names.map(|name| chats.join(name).exists()), [false, true, true]);
    }

    #[test]
    fn a_session_settles_and_one_that_is_not_remembered_never_does() {
        let folder = tempfile::tempdir().unwrap();
        let (preset, place) = (Preset::named("gemini").unwrap(), testing::place(folder.path()));
        let made = Timestamp::from_millis(1_000_000);
        assert!(!is_settled(&preset, &place, "s", made + FRESH));
        remember_session(&preset, &place, "s", made).unwrap();
        assert!(!is_settled(&preset, &place, "s", made + FRESH / 2));
        assert!(is_settled(&preset, &place, "s", made + FRESH));
        assert!(!is_settled(&preset, &place, "another", made + FRESH));
        forget_session(&preset, &place).unwrap();
        forget_session(&preset, &place).unwrap();
        assert!(!is_settled(&preset, &place, "s", made + FRESH));
    }
}

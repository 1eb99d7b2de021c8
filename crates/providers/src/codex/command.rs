//! The command line and the environment of `codex app-server`. Pure, but for a look at which files are there.

use super::home;
use crate::program::Program;
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};
use workbench::process::Command;

/// What of the server's environment Codex may see besides what every program may.
const PASSED: [&str; 6] = [
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
    "CODEX_CA_CERTIFICATE",
];

/// Without the first four it looks up hosts of its vendor's, and takes seconds to end. The last one keeps variables that
/// look like secrets from the commands that the agent runs.
const SETTINGS: [&str; 5] = [
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",
    "features.apps=false",
    "shell_environment_policy.ignore_default_excludes=false",
];

/// How to start it for the agent that lives in `home`.
pub fn app_server(program: &Program, found: &Path, home: &Path) -> Command {
    let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    if let Some(url) = variable(program, "OPENAI_BASE_URL") {
        // The variable alone does nothing. A JSON string is a TOML string.
        settings.push(format!("openai_base_url={}", serde_json::Value::from(url)));
    }
    if api_key(program, home).is_some() {
        // The key is for this process; nothing of it is written down.
        settings.push("cli_auth_credentials_store=\"ephemeral\"".to_owned());
    }
    let mut args: Vec<OsString> = vec!["app-server".into()];
    args.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
    args.extend(program.args.iter().map(OsString::from));
    let folder = home::folder(home);
    // What it writes to its log is shown when it fails, and not on a terminal.
    let own = [("CODEX_HOME", folder.as_os_str()), ("HOME", home.as_os_str()), ("NO_COLOR", OsStr::new("1"))];
    let environment = program.environment(&PASSED, &own);
    Command { program: native(found), args, env: environment, folder }
}

/// The key to log in with. Codex does not take it from the environment by itself: it has to be told.
pub fn api_key(program: &Program, home: &Path) -> Option<String> {
    if home::has_login(home) {
        return None;
    }
    ["CODEX_API_KEY", "OPENAI_API_KEY"].into_iter().find_map(|name| variable(program, name))
}

pub fn version(program: &Program, found: &Path) -> Command {
    Command {
        program: native(found),
        args: vec!["--version".into()],
        env: program.environment(&[], &[]),
        folder: PathBuf::from("/"),
    }
}

fn variable(program: &Program, name: &str) -> Option<String> {
    let value = program.environment.get(OsStr::new(name))?.to_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// The package's `codex` is a script that starts the real one: one more process, and a runtime that has to be there.
fn native(found: &Path) -> PathBuf {
    vendored(found).unwrap_or_else(|| found.to_owned())
}

fn vendored(found: &Path) -> Option<PathBuf> {
    let script = found.canonicalize().ok()?;
    if script.extension() != Some(OsStr::new("js")) {
        return None;
    }
    let package = script.parent()?.parent()?;
    let scope = package.parent()?;
    let mut vendors = vec![package.join("vendor")];
    for folder in [scope.to_owned(), package.join("node_modules").join("@openai")] {
        let siblings = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let platforms = siblings.filter(|entry| entry.file_name().to_string_lossy().starts_with("codex-"));
        vendors.extend(platforms.map(|entry| entry.path().join("vendor")));
    }
    let mut binaries: Vec<PathBuf> = vendors
        .into_iter()
        .filter_map(|vendor| std::fs::read_dir(vendor).ok())
        .flat_map(|targets| targets.flatten().map(|target| target.path().join("bin").join("codex")))
        .filter(|binary| binary.is_file())
        .collect();
    // With more than one platform at hand, the script knows better which one is this.
    if binaries.len() == 1 { binaries.pop() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{api_key, app_server, native};
    use crate::codex::tests::program;
    use std::{ffi::OsStr, path::Path};

    #[test]
    fn invariant_17_environment_only_what_is_named_gets_through() {
        let mut program = program(
            "codex",
            &[("PATH", "/bin"), ("OPENAI_API_KEY", "k"), ("SECRET", "s"), ("HOME", "person"), ("EXTRA", "e")],
        );
        program.pass = vec!["EXTRA".into()];
        program.args = vec!["-c".into(), "model=\"m\"".into()];
        let command = app_server(&program, Path::new("codex"), Path::new("agent"));
        let get = |name: &str| command.env.get(OsStr::new(name)).map(|value| value.to_string_lossy().into_owned());
        assert_eq!(get("SECRET"), None);
        assert_eq!(get("HOME").as_deref(), Some("agent"));
        assert_eq!(get("CODEX_HOME").as_deref(), Some("agent/codex"));
        assert_eq!((get("OPENAI_API_KEY").as_deref(), get("EXTRA").as_deref()), (Some("k"), Some("e")));
        let args: Vec<String> = command.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        assert_eq!(
            args.join(" "),
            "app-server -c analytics.enabled=false -c check_for_update_on_startup=false \
             -c features.plugins=false -c features.apps=false \
             -c shell_environment_policy.ignore_default_excludes=false \
             -c cli_auth_credentials_store=\"ephemeral\" -c model=\"m\""
        );
    }

    #[test]
    fn another_address_of_the_api_is_a_setting() {
        let program = program("codex", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]);
        let command = app_server(&program, Path::new("codex"), Path::new("agent"));
        assert!(command.args.iter().any(|arg| arg == "openai_base_url=\"http://127.0.0.1:1/v1\""), "{command:?}");
    }

    #[test]
    fn a_key_is_used_where_there_is_no_login() {
        let agent = tempfile::tempdir().unwrap();
        let program = program("codex", &[("OPENAI_API_KEY", "open"), ("CODEX_API_KEY", "own")]);
        assert_eq!(api_key(&program, agent.path()).as_deref(), Some("own"));
        std::fs::create_dir(agent.path().join("codex")).unwrap();
        std::fs::write(agent.path().join("codex/auth.json"), "{}").unwrap();
        assert_eq!(api_key(&program, agent.path()), None);
    }

    #[test]
    fn the_real_program_behind_the_packages_script_is_found() {
        let root = tempfile::tempdir().unwrap();
        let scope = root.path().join("node_modules/@openai");
        let (script, link) = (scope.join("codex/bin/codex.js"), root.path().join("codex"));
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::write(&script, "").unwrap();
        std::os::unix::fs::symlink(&script, &link).unwrap();
        assert_eq!(native(&link), link, "nothing is vendored");
        let binary = scope.join("codex-linux-x64/vendor/some-target/bin/codex");
        std::fs::create_dir_all(binary.parent().unwrap()).unwrap();
        std::fs::write(&binary, "").unwrap();
        assert_eq!(native(&link), binary.canonicalize().unwrap());
        let other = scope.join("codex-linux-arm64/vendor/other-target/bin/codex");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "").unwrap();
        assert_eq!(native(&link), link, "which of the two it is, the script knows");
        assert_eq!(native(&binary), binary);
    }
}

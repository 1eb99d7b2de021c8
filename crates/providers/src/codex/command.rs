//! The command line and environment of `codex app-server`. Pure, except that it checks which files exist.

use super::home::{self, CodexHome};
use crate::{
    gateway::{GatewayAccess, ModelWire},
    program::AgentProgram,
};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};
use workbench::{process::ProcessSpec, project_sandbox::SandboxSpec};

/// The model API that the program calls.
pub const WIRES: [ModelWire; 1] = [ModelWire::OPENAI];

/// Holds the token for the gateway. Codex hides variables with such a name from the agent's commands.
pub const TOKEN_VARIABLE: &str = "GATEWAY_TOKEN";

/// Variables passed on to Codex in addition to those of every program.
pub const PASSED: [&str; 6] = [
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
    "CODEX_CA_CERTIFICATE",
];

/// Without the first four, Codex contacts its vendor's hosts and takes seconds to exit. The last one hides variables
/// that look like secrets from the agent's commands.
const SETTINGS: [&str; 5] = [
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",
    "features.apps=false",
    "shell_environment_policy.ignore_default_excludes=false",
];

/// Returns the command that starts Codex for the agent with this home folder.
pub fn app_server(program: &AgentProgram, found: &Path, home: &Path) -> ProcessSpec {
    let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    if let Some(url) = variable(program, "OPENAI_BASE_URL") {
        // Codex ignores the variable itself. A JSON string is a valid TOML string.
        settings.push(format!("openai_base_url={}", serde_json::Value::from(url)));
    }
    if api_key(program, home).is_some() {
        // Codex must not store the key on disk.
        settings.push("cli_auth_credentials_store=\"ephemeral\"".to_owned());
    }
    let mut args: Vec<OsString> = vec!["app-server".into()];
    args.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
    args.extend(program.args.iter().map(OsString::from));
    let folder = home::folder(home);
    // No color: its stderr is shown in error messages, not on a terminal.
    let own = [("CODEX_HOME", folder.as_os_str()), ("HOME", home.as_os_str()), ("NO_COLOR", OsStr::new("1"))];
    let environment = program.environment(&PASSED, &own);
    ProcessSpec { program: native(found), args, env: environment, folder, sandbox: None }
}

/// Returns the command that starts Codex inside of a sandbox, where it finds the model API at the gateway.
pub fn app_server_inside(
    program: &AgentProgram,
    found: &Path,
    home: &CodexHome,
    sandbox: &Arc<SandboxSpec>,
    access: &GatewayAccess,
) -> ProcessSpec {
    let mut settings: Vec<String> = SETTINGS.iter().map(|setting| (*setting).to_owned()).collect();
    // A provider of its own: Codex tries a WebSocket first with the built-in one.
    settings.push("model_provider=\"greenroom\"".to_owned());
    settings.push(format!(
        "model_providers.greenroom={{name=\"greenroom\",base_url=\"{}\",wire_api=\"responses\",env_key=\"{TOKEN_VARIABLE}\"}}",
        ModelWire::OPENAI.guest_url()
    ));
    let mut args: Vec<OsString> = vec!["app-server".into()];
    args.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
    args.extend(program.args.iter().map(OsString::from));
    let home = home.folder_inside();
    let folder = home::folder(&home);
    let own = [
        ("CODEX_HOME", folder.as_os_str()),
        ("HOME", home.as_os_str()),
        ("NO_COLOR", OsStr::new("1")),
        (TOKEN_VARIABLE, OsStr::new(access.reveal())),
    ];
    let env = program.environment_inside(sandbox, &[], &own);
    ProcessSpec { program: native(found), args, env, folder, sandbox: Some(Arc::clone(sandbox)) }
}

/// The API key for the login request. Codex does not read it from the environment.
pub fn api_key(program: &AgentProgram, home: &Path) -> Option<String> {
    if home::has_login(home) {
        return None;
    }
    ["CODEX_API_KEY", "OPENAI_API_KEY"].into_iter().find_map(|name| variable(program, name))
}

pub fn version(program: &AgentProgram, found: &Path) -> ProcessSpec {
    ProcessSpec {
        program: native(found),
        args: vec!["--version".into()],
        env: program.environment(&[], &[]),
        folder: PathBuf::from("/"),
        sandbox: None,
    }
}

fn variable(program: &AgentProgram, name: &str) -> Option<String> {
    let value = program.environment.get(OsStr::new(name))?.to_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// The `codex` of the npm package is a script that starts the binary; using the binary saves a process and Node.
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
    // If there are several platforms, the script chooses the right one.
    if binaries.len() == 1 { binaries.pop() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{api_key, app_server, native};
    use crate::codex::tests::program;
    use std::{ffi::OsStr, path::Path};

    #[test]
    fn invariant_17_environment_only_allowed_variables_are_passed_on() {
        let mut program = program(
            "codex",
            &[("PATH", "/bin"), ("OPENAI_API_KEY", "k"), ("SECRET", "s"), ("HOME", "person"), ("EXTRA", "e")],
        );
        program.allowed_variables = vec!["EXTRA".into()];
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
    fn custom_api_address_is_passed_as_a_setting() {
        let program = program("codex", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]);
        let command = app_server(&program, Path::new("codex"), Path::new("agent"));
        assert!(command.args.iter().any(|arg| arg == "openai_base_url=\"http://127.0.0.1:1/v1\""), "{command:?}");
    }

    #[test]
    fn api_key_is_used_without_a_login() {
        let agent = tempfile::tempdir().unwrap();
        let program = program("codex", &[("OPENAI_API_KEY", "open"), ("CODEX_API_KEY", "own")]);
        assert_eq!(api_key(&program, agent.path()).as_deref(), Some("own"));
        std::fs::create_dir(agent.path().join("codex")).unwrap();
        std::fs::write(agent.path().join("codex/auth.json"), "{}").unwrap();
        assert_eq!(api_key(&program, agent.path()), None);
    }

    #[test]
    fn finds_the_binary_behind_the_package_script() {
        let root = tempfile::tempdir().unwrap();
        let scope = root.path().join("node_modules/@openai");
        let (script, link) = (scope.join("codex/bin/codex.js"), root.path().join("codex"));
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::write(&script, "").unwrap();
        std::os::unix::fs::symlink(&script, &link).unwrap();
        assert_eq!(native(&link), link, "there is no binary");
        let binary = scope.join("codex-linux-x64/vendor/some-target/bin/codex");
        std::fs::create_dir_all(binary.parent().unwrap()).unwrap();
        std::fs::write(&binary, "").unwrap();
        assert_eq!(native(&link), binary.canonicalize().unwrap());
        let other = scope.join("codex-linux-arm64/vendor/other-target/bin/codex");
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "").unwrap();
        assert_eq!(native(&link), link, "with two binaries, the script decides");
        assert_eq!(native(&binary), binary);
    }
}

//! Settings and rules for Gemini that files in the workspace cannot override.
//!
//! Gemini merges the workspace's `.gemini/settings.json` over the user's settings, and reads variables from
//! `.gemini/.env`; both could start programs without approval or send the API key elsewhere. Only system settings have
//! priority over them, and only if they are writable by root alone. If they are not, or if the workspace has settings
//! that they do not cover, Gemini is started with the workspace untrusted. It then has no MCP servers and skills, and
//! the room gets a status message.

use super::preset::{HomeLayout, Preset};
use crate::{AgentWorkspace, host_tools};
use domain::agent::{PolicyDecision, ToolPolicy};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// An additional instruction file for Gemini. The usual file is not used, because Gemini writes to it.
pub const INSTRUCTIONS: &str = "GREENROOM.md";
const SYSTEM_SETTINGS: &str = "greenroom-settings.json";
/// Larger settings files are not read.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The path of the settings that override the workspace's settings.
pub fn system_settings(home: &Path) -> PathBuf {
    home.join(".gemini").join(SYSTEM_SETTINGS)
}

/// The settings for Gemini: no telemetry, no updates, and a login method that matches the credentials.
pub fn settings(environment: &BTreeMap<OsString, OsString>, home: &Path, workspace: &AgentWorkspace) -> Value {
    let is_set = |name: &str| environment.get(OsStr::new(name)).is_some_and(|value| !value.is_empty());
    let auth = if is_set("GEMINI_API_KEY") {
        Some("gemini-api-key")
    } else if is_set("GOOGLE_GENAI_USE_VERTEXAI") || is_set("GOOGLE_API_KEY") {
        Some("vertex-ai")
    } else if home.join(".gemini/oauth_creds.json").exists() {
        Some("oauth-personal")
    } else if is_set("GOOGLE_CLOUD_PROJECT") && is_set("GOOGLE_CLOUD_LOCATION") {
        Some("vertex-ai")
    } else {
        None
    };
    let servers = workspace.mcp_servers.iter().map(|server| server.name.as_str());
    let servers: Vec<&str> = servers.chain([host_tools::SERVER_NAME]).collect();
    let mut settings = json!({
        "security": {"auth": {}, "folderTrust": {"enabled": false}, "disableYoloMode": true},
        // The default retries silently for minutes.
        "general": {
            "maxAttempts": 3,
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "defaultApprovalMode": "default",
            // Loading a session leaves an empty file with its name, and the next cleanup removes all files of that
            // name.
            "sessionRetention": {"enabled": false}
        },
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "ide": {"enabled": false},
        "hooksConfig": {"enabled": false},
        // Commands that would run at each start.
        "tools": {"discoveryCommand": "", "callCommand": "", "sandbox": false},
        "mcp": {"allowed": servers, "serverCommand": ""},
        "context": {"fileName": ["GEMINI.md", "AGENTS.md", INSTRUCTIONS]},
        // A file in the workspace must not send the API key to another address.
        "advanced": {
            "ignoreLocalEnv": true,
            "excludedEnvVars": ["DEBUG", "DEBUG_MODE", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"]
        },
    });
    if let Some(auth) = auth {
        settings["security"]["auth"]["selectedType"] = json!(auth);
    }
    settings
}

/// Files in a workspace that would change Gemini's settings.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkspaceOverrides {
    /// The workspace has settings that ours cannot override, so it must not be trusted.
    pub restricted: bool,
    /// Variables that a file in the workspace would set. They are set to empty values, which Gemini does not replace.
    blanked: BTreeSet<String>,
}

impl WorkspaceOverrides {
    /// Blocking; reads small files. Our settings must already be written.
    pub fn of(preset: &Preset, workspace: &AgentWorkspace, home: &Path) -> Self {
        let mut found = Self::default();
        if preset.home != HomeLayout::Gemini {
            return found;
        }
        let settings = workspace.folder.join(".gemini/settings.json");
        if settings.symlink_metadata().is_ok() {
            // Inside of a sandbox no file is root's.
            found.restricted = workspace.sandbox.is_some()
                || !is_root_only(&system_settings(home))
                || !read(&settings).is_some_and(|text| is_covered(&text));
        }
        for folder in workspace.folder.ancestors().chain(home.ancestors()) {
            let file = folder.join(".gemini/.env");
            if file.symlink_metadata().is_ok() {
                match read(&file) {
                    Some(text) => found.blanked.extend(variables(&text)),
                    None => found.restricted = true,
                }
            }
        }
        found
    }

    pub fn apply(&self, environment: &mut BTreeMap<OsString, OsString>) {
        let always = ["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"];
        for name in always.into_iter().chain(self.blanked.iter().map(String::as_str)) {
            environment.entry(name.into()).or_default();
        }
        if self.restricted {
            environment.insert("GEMINI_CLI_TRUST_WORKSPACE".into(), "false".into());
        }
    }
}

fn read(file: &Path) -> Option<String> {
    let is_small = |found: fs::Metadata| found.is_file() && found.len() <= MAX_FILE_BYTES;
    file.metadata().ok().filter(|found| is_small(found.clone()))?;
    let mut text = String::new();
    fs::File::open(file).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Gemini's own condition for system settings: only root can write the file and all its parent folders.
fn is_root_only(file: &Path) -> bool {
    let Ok(resolved) = file.canonicalize() else { return false };
    let is_roots = |path: &Path| path.metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0);
    file.ancestors().chain(resolved.ancestors()).all(|path| path.as_os_str().is_empty() || is_roots(path))
}

/// Whether our settings override everything dangerous in these. Other keys could set another model address, or more
/// folders to read.
fn is_covered(settings: &str) -> bool {
    const COVERED: [&str; 15] = [
        "$schema",
        "mcpServers",
        "general",
        "output",
        "ui",
        "ide",
        "privacy",
        "telemetry",
        "context",
        "tools",
        "mcp",
        "security",
        "advanced",
        "hooksConfig",
        "hooks",
    ];
    match serde_json::from_str(settings) {
        Ok(Value::Object(settings)) => {
            settings.keys().all(|key| COVERED.contains(&key.as_str()))
                && settings.get("context").is_none_or(|context| context.get("includeDirectories").is_none())
        }
        // Gemini also accepts comments, which we cannot parse.
        _ => false,
    }
}

/// Returns every word that could be a variable name; too many rather than too few.
fn variables(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let before_sign = text.split(['=', ':']).map(move |before| before.trim_end());
    before_sign.filter_map(move |before| {
        let from =
            before.rfind(|c| !is_part(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        (from < before.len()).then(|| before[from..].to_owned())
    })
}

/// Gemini's built-in tools, by the names that policies use.
const BUILT_IN: [&str; 28] = [
    "activate_skill",
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "exit_plan_mode",
    "get_internal_docs",
    "glob",
    "google_web_search",
    "grep_search",
    "invoke_agent",
    "list_directory",
    "list_mcp_resources",
    "read_file",
    "read_many_files",
    "read_mcp_resource",
    "replace",
    "run_shell_command",
    "save_memory",
    "tracker_add_dependency",
    "tracker_create_task",
    "tracker_get_task",
    "tracker_list_tasks",
    "tracker_update_task",
    "tracker_visualize",
    "update_topic",
    "web_fetch",
    "write_file",
    "write_todos",
];

/// Returns rules with the highest priority; otherwise a file in the workspace could allow everything. The agent's
/// `deny` and `ask` patterns are included, because Gemini does not ask for tools that it considers safe, such as
/// reading or `echo`.
pub fn rules(tools: &ToolPolicy) -> String {
    const ASK: &str = r#"["run_shell_command", "write_file", "replace", "web_fetch", "save_memory", "mcp_*"]"#;
    // Gemini decides about tools that match no pattern.
    let listed = ToolPolicy { allow: vec!["*".into()], ..tools.clone() };
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let mut rules = format!("[[rule]]\ntoolName = {ASK}\ndecision = \"ask_user\"\npriority = 900\n");
    for (verdict, by_name, decision, priority) in
        [(PolicyDecision::Ask, &tools.ask, "ask_user", 950), (PolicyDecision::Deny, &tools.deny, "deny", 999)]
    {
        let further = by_name.iter().map(String::as_str).filter(is_name);
        let names: BTreeSet<&str> =
            BUILT_IN.into_iter().chain(further).filter(|name| listed.decide(name) == verdict).collect();
        for name in names {
            rules.push_str(&format!(
                "\n[[rule]]\ntoolName = \"{name}\"\ndecision = \"{decision}\"\npriority = {priority}\n"
            ));
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::{WorkspaceOverrides, is_covered, is_root_only, rules, system_settings, variables};
    use crate::acp::{preset::Preset, testing};
    use domain::agent::ToolPolicy;
    use std::{collections::BTreeMap, ffi::OsString, fs, os::unix::fs::PermissionsExt as _, path::Path};

    fn policy(ask: &[&str], deny: &[&str]) -> ToolPolicy {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolPolicy { allow: Vec::new(), ask: list(ask), deny: list(deny) }
    }

    #[test]
    fn policy_patterns_become_rules_by_name() {
        let rule = |name: &str, decision: &str, priority: u32| {
            format!("[[rule]]\ntoolName = \"{name}\"\ndecision = \"{decision}\"\npriority = {priority}\n")
        };
        assert_eq!(rules(&policy(&[], &[])).matches("[[rule]]").count(), 1, "reading needs no rule");
        let written = rules(&policy(&["read_*"], &["*_many_*", "mcp_shop_buy", "x\"]\ndecision = \"allow\""]));
        assert_eq!(written.matches("[[rule]]").count(), 5, "{written}");
        for (name, decision, priority) in [
            ("read_file", "ask_user", 950),
            ("read_mcp_resource", "ask_user", 950),
            ("read_many_files", "deny", 999),
            ("mcp_shop_buy", "deny", 999),
        ] {
            assert!(written.contains(&rule(name, decision, priority)), "{name}\n{written}");
        }
        assert!(rules(&policy(&[], &["*"])).contains(&rule("run_shell_command", "deny", 999)));
    }

    #[test]
    fn finds_variables_in_an_env_file() {
        let text = "# a comment\nA=1\n export B = 'x'\nC: y\n\"D\"=z\nGOOGLE.X-Y=1\r\n=nothing\né=1\nE='a\nF=b'";
        let found: Vec<String> = variables(text).collect();
        for name in ["A", "B", "C", "GOOGLE.X-Y", "E", "F"] {
            assert!(found.contains(&name.to_owned()), "{name} in {found:?}");
        }
    }

    #[test]
    fn settings_that_ours_do_not_override_are_not_covered() {
        assert!(is_covered(r#"{"mcpServers": {}, "hooks": {}, "tools": {"discoveryCommand": "x"}}"#));
        for wild in
            [r#"{"modelConfigs": {}}"#, "// a comment\n{}", "[]", r#"{"context": {"includeDirectories": ["/"]}}"#]
        {
            assert!(!is_covered(wild), "{wild}");
        }
    }

    #[test]
    fn file_writable_by_others_is_not_root_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings");
        assert!(!is_root_only(&file), "it does not exist");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(!is_root_only(&file));
        assert!(!is_root_only(Path::new("/dev/null")));
    }

    #[test]
    fn workspace_with_uncovered_settings_is_restricted() {
        let folder = tempfile::tempdir().unwrap();
        let (preset, workspace) = (Preset::named("gemini").unwrap(), testing::workspace(folder.path()));
        let home = folder.path().join("home");
        fs::create_dir_all(system_settings(&home).parent().unwrap()).unwrap();
        fs::write(system_settings(&home), "{}").unwrap();
        let seen = || {
            let mut environment: BTreeMap<OsString, OsString> = [("HTTPS_PROXY".into(), "ours".into())].into();
            WorkspaceOverrides::of(&preset, &workspace, &home).apply(&mut environment);
            environment
        };
        let get = |name: &str| seen().get(&OsString::from(name)).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(get("GEMINI_CLI_TRUST_WORKSPACE"), None);
        assert_eq!(get("GOOGLE_GEMINI_BASE_URL").as_deref(), Some(""));
        fs::create_dir_all(workspace.folder.join(".gemini")).unwrap();
        fs::write(workspace.folder.join(".gemini/.env"), "HTTPS_PROXY=theirs\nBASH_ENV=x\n").unwrap();
        assert_eq!((get("HTTPS_PROXY").as_deref(), get("BASH_ENV").as_deref()), (Some("ours"), Some("")));
        fs::write(workspace.folder.join(".gemini/settings.json"), r#"{"modelConfigs": {}}"#).unwrap();
        assert_eq!(get("GEMINI_CLI_TRUST_WORKSPACE").as_deref(), Some("false"));
    }
}

//! What Gemini is told before it starts: settings and rules that files in the workplace cannot change.
//!
//! Gemini merges the workplace's `.gemini/settings.json` over the settings of its user, and takes variables from
//! `.gemini/.env`; either starts programs unasked and sends the key elsewhere. Only system settings are above them, and
//! those count only when root alone can write them. Where they do not, or where the workplace says more than they cover,
//! Gemini is told not to trust the workplace, which costs it its MCP servers and skills; the room is told.

use super::preset::{Home, Preset};
use crate::{Place, host_tools};
use domain::agent::{ToolPolicy, Verdict};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs,
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// The file of instructions that Gemini reads besides the usual one, which it writes to itself.
pub const INSTRUCTIONS: &str = "GREENROOM.md";
const SYSTEM_SETTINGS: &str = "greenroom-settings.json";
/// A file of settings that is longer is nobody's honest one.
const LONGEST: u64 = 64 * 1024;

/// Where the settings are kept that count for more than the workplace's.
pub fn system_settings(home: &Path) -> PathBuf {
    home.join(".gemini").join(SYSTEM_SETTINGS)
}

/// Nobody is told what is done here, and nothing is updated.
pub fn settings(environment: &BTreeMap<OsString, OsString>, home: &Path, place: &Place) -> Value {
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
    let servers = place.mcp_servers.iter().map(|server| server.name.as_str());
    let servers: Vec<&str> = servers.chain([host_tools::SERVER]).collect();
    let mut settings = json!({
        "security": {"auth": {}, "folderTrust": {"enabled": false}, "disableYoloMode": true},
        // By itself it retries for minutes, in silence.
        "general": {
            "maxAttempts": 3,
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            "defaultApprovalMode": "default",
            // Loading a session leaves an empty file with its name, and the next start to clean up removes every file
            // of that name.
            "sessionRetention": {"enabled": false}
        },
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "ide": {"enabled": false},
        "hooksConfig": {"enabled": false},
        // Commands that would be run at each start.
        "tools": {"discoveryCommand": "", "callCommand": "", "sandbox": false},
        "mcp": {"allowed": servers, "serverCommand": ""},
        "context": {"fileName": ["GEMINI.md", "AGENTS.md", INSTRUCTIONS]},
        // A file in the workplace must not send the key to another address.
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

/// What lies in a workplace and would steer Gemini.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Surroundings {
    /// There is more than our settings can overrule: the workplace must not be trusted.
    pub restricted: bool,
    /// Variables that a file there would set. They are set to nothing before: a variable that is there is not replaced.
    silenced: BTreeSet<String>,
}

impl Surroundings {
    /// Blocking; reads small files. Our settings must have been written.
    pub fn of(preset: &Preset, place: &Place, home: &Path) -> Self {
        let mut found = Self::default();
        if preset.home != Home::Gemini {
            return found;
        }
        let settings = place.workplace.join(".gemini/settings.json");
        if settings.symlink_metadata().is_ok() {
            found.restricted =
                !is_honoured(&system_settings(home)) || !read(&settings).is_some_and(|text| is_covered(&text));
        }
        for folder in place.workplace.ancestors().chain(home.ancestors()) {
            let file = folder.join(".gemini/.env");
            if file.symlink_metadata().is_ok() {
                match read(&file) {
                    Some(text) => found.silenced.extend(variables(&text)),
                    None => found.restricted = true,
                }
            }
        }
        found
    }

    pub fn apply(&self, environment: &mut BTreeMap<OsString, OsString>) {
        let always = ["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"];
        for name in always.into_iter().chain(self.silenced.iter().map(String::as_str)) {
            environment.entry(name.into()).or_default();
        }
        if self.restricted {
            environment.insert("GEMINI_CLI_TRUST_WORKSPACE".into(), "false".into());
        }
    }
}

fn read(file: &Path) -> Option<String> {
    let is_small = |found: fs::Metadata| found.is_file() && found.len() <= LONGEST;
    file.metadata().ok().filter(|found| is_small(found.clone()))?;
    let mut text = String::new();
    fs::File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Gemini's own condition: nobody but root can write the file, nor any folder on the way to it.
fn is_honoured(file: &Path) -> bool {
    let Ok(resolved) = file.canonicalize() else { return false };
    let is_roots = |path: &Path| path.metadata().is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0);
    file.ancestors().chain(resolved.ancestors()).all(|path| path.as_os_str().is_empty() || is_roots(path))
}

/// Whether our settings overrule whatever in these could do harm. Others may name another address for a model, or more
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
        // Gemini takes comments too, and then we do not know what it says.
        _ => false,
    }
}

/// Every word that could be the name of a variable; rather too many than too few.
fn variables(text: &str) -> impl Iterator<Item = String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let before_sign = text.split(['=', ':']).map(move |before| before.trim_end());
    before_sign.filter_map(move |before| {
        let from =
            before.rfind(|c| !is_part(c)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        (from < before.len()).then(|| before[from..].to_owned())
    })
}

/// The tools that Gemini brings along, by the names that policies use.
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

/// Rules above all others, since a file in the workplace could allow everything unasked otherwise. What the agent's policy
/// denies or asks for is a rule here too: Gemini does not ask for what it holds to be safe, such as reading, or `echo`.
pub fn rules(tools: &ToolPolicy) -> String {
    const ASK: &str = r#"["run_shell_command", "write_file", "replace", "web_fetch", "save_memory", "mcp_*"]"#;
    // What is in no list is Gemini's to decide, not asked for.
    let listed = ToolPolicy { allow: vec!["*".into()], ..tools.clone() };
    let is_name =
        |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    let mut rules = format!("[[rule]]\ntoolName = {ASK}\ndecision = \"ask_user\"\npriority = 900\n");
    for (verdict, by_name, decision, priority) in
        [(Verdict::Ask, &tools.ask, "ask_user", 950), (Verdict::Deny, &tools.deny, "deny", 999)]
    {
        let further = by_name.iter().map(String::as_str).filter(is_name);
        let names: BTreeSet<&str> =
            BUILT_IN.into_iter().chain(further).filter(|name| listed.verdict(name) == verdict).collect();
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
    use super::{Surroundings, is_covered, is_honoured, rules, system_settings, variables};
    use crate::acp::{preset::Preset, testing};
    use domain::agent::ToolPolicy;
    use std::{collections::BTreeMap, ffi::OsString, fs, os::unix::fs::PermissionsExt as _, path::Path};

    fn policy(ask: &[&str], deny: &[&str]) -> ToolPolicy {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolPolicy { allow: Vec::new(), ask: list(ask), deny: list(deny) }
    }

    #[test]
    fn a_policy_with_patterns_becomes_rules_by_name() {
        let rule = |name: &str, decision: &str, priority: u32| {
            format!("[[rule]]\ntoolName = \"{name}\"\ndecision = \"{decision}\"\npriority = {priority}\n")
        };
        assert_eq!(rules(&policy(&[], &[])).matches("[[rule]]").count(), 1, "reading is free");
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
    fn variables_that_a_file_would_set_are_found() {
        let text = "# a comment\nA=1\n export B = 'x'\nC: y\n\"D\"=z\nGOOGLE.X-Y=1\r\n=nothing\né=1\nE='a\nF=b'";
        let found: Vec<String> = variables(text).collect();
        for name in ["A", "B", "C", "GOOGLE.X-Y", "E", "F"] {
            assert!(found.contains(&name.to_owned()), "{name} in {found:?}");
        }
    }

    #[test]
    fn settings_that_ours_do_not_overrule_are_not_trusted() {
        assert!(is_covered(r#"{"mcpServers": {}, "hooks": {}, "tools": {"discoveryCommand": "x"}}"#));
        for wild in
            [r#"{"modelConfigs": {}}"#, "// a comment\n{}", "[]", r#"{"context": {"includeDirectories": ["/"]}}"#]
        {
            assert!(!is_covered(wild), "{wild}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_is_not_honoured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings");
        assert!(!is_honoured(&file), "it is not there");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(!is_honoured(&file));
        assert!(!is_honoured(Path::new("/dev/null")));
    }

    #[test]
    fn a_workplace_that_says_more_than_is_covered_is_restricted() {
        let folder = tempfile::tempdir().unwrap();
        let (preset, place) = (Preset::named("gemini").unwrap(), testing::place(folder.path()));
        let home = folder.path().join("home");
        fs::create_dir_all(system_settings(&home).parent().unwrap()).unwrap();
        fs::write(system_settings(&home), "{}").unwrap();
        let seen = || {
            let mut environment: BTreeMap<OsString, OsString> = [("HTTPS_PROXY".into(), "ours".into())].into();
            Surroundings::of(&preset, &place, &home).apply(&mut environment);
            environment
        };
        let get = |name: &str| seen().get(&OsString::from(name)).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(get("GEMINI_CLI_TRUST_WORKSPACE"), None);
        assert_eq!(get("GOOGLE_GEMINI_BASE_URL").as_deref(), Some(""));
        fs::create_dir_all(place.workplace.join(".gemini")).unwrap();
        fs::write(place.workplace.join(".gemini/.env"), "HTTPS_PROXY=theirs\nBASH_ENV=x\n").unwrap();
        assert_eq!((get("HTTPS_PROXY").as_deref(), get("BASH_ENV").as_deref()), (Some("ours"), Some("")));
        fs::write(place.workplace.join(".gemini/settings.json"), r#"{"modelConfigs": {}}"#).unwrap();
        assert_eq!(get("GEMINI_CLI_TRUST_WORKSPACE").as_deref(), Some("false"));
    }
}

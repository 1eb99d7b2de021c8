//! How Claude Code is started: flags, environment and the file that names its MCP servers. Pure.

use crate::{Place, host_tools, program::Program, turn::SeenSkill};
use domain::mcp::{Server, Transport};
use serde_json::{Value, json};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};
use workbench::process::Command;

/// Everything that is fixed once the process runs. When it changes, the process is replaced; the model is not part of
/// it, because that can be changed while it runs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fixed {
    pub program: PathBuf,
    pub home: PathBuf,
    pub workplace: PathBuf,
    pub system_prompt: Option<String>,
    /// One that was edited is seen by the next process only.
    pub skills: Vec<SeenSkill>,
    pub mcp: String,
    /// In the agent's own folder, because it may hold secrets, which have no place on a command line (invariant 17).
    pub mcp_file: PathBuf,
}

/// Where the program keeps its settings and sessions.
pub(super) fn config_folder(home: &Path) -> PathBuf {
    home.join("claude")
}

impl Fixed {
    pub fn of(place: &Place, program: PathBuf) -> Self {
        Self {
            program,
            home: place.home.clone(),
            workplace: place.workplace.clone(),
            system_prompt: place.agent.spec.system_prompt.clone().filter(|prompt| !prompt.trim().is_empty()),
            skills: SeenSkill::all(&place.skills),
            mcp: mcp_config(&place.mcp_servers).to_string(),
            mcp_file: place.home.join(format!("mcp-{}.json", place.room_id)),
        }
    }

    pub fn command(&self, program: &Program, model: Option<&str>, resume: Option<&str>) -> Command {
        let mut args: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        // With `=`, so that a value can never be taken for a flag.
        args.push(joined("--mcp-config=", self.mcp_file.as_os_str()));
        // So that the workplace's instructions are read, although its settings are not.
        args.push(joined("--add-dir=", self.workplace.as_os_str()));
        args.push(format!("--allowedTools=mcp__{}", host_tools::SERVER).into());
        args.extend(model.map(|model| format!("--model={model}").into()));
        args.extend(resume.map(|session| format!("--resume={session}").into()));
        args.extend(program.args.iter().map(OsString::from));
        Command {
            program: self.program.clone(),
            args,
            env: environment(program, &self.home),
            folder: self.workplace.clone(),
        }
    }
}

fn joined(flag: &str, value: &OsStr) -> OsString {
    let mut joined = OsString::from(flag);
    joined.push(value);
    joined
}

const FLAGS: [&str; 10] = [
    "--print",
    "--input-format=stream-json",
    "--output-format=stream-json",
    // Without it the output format is refused.
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool=stdio",
    // Whatever a settings file in the workplace says.
    "--permission-mode=default",
    // The agent's own, in its own folder. Those of the workplace could start programs unasked, or send the key elsewhere:
    // whoever writes a file there would decide that.
    "--setting-sources=user",
    "--strict-mcp-config",
    // These begin turns by themselves later, which nobody asked for and no run pays for; and they do not ask.
    "--disallowedTools=ScheduleWakeup,Monitor,Workflow,CronCreate",
];

/// How to reach the model's API: passed where the server has them.
const LOGIN: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Passed only to those who chose that cloud: its keys open more doors than the model's.
const BEDROCK: (&str, &[&str]) = (
    "CLAUDE_CODE_USE_BEDROCK",
    &[
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "ANTHROPIC_BEDROCK_BASE_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
    ],
);
const VERTEX: (&str, &[&str]) = (
    "CLAUDE_CODE_USE_VERTEX",
    &[
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "ANTHROPIC_VERTEX_BASE_URL",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "CLOUD_ML_REGION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT",
    ],
);

const SETTINGS: [(&str, &str); 9] = [
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    // The default of ten takes minutes.
    ("CLAUDE_CODE_MAX_RETRIES", "4"),
    // Tools of MCP servers are offered to the model as they are, not behind a search.
    ("ENABLE_TOOL_SEARCH", "false"),
    // A command in the background outlives its turn, and its end begins a turn that nobody asked for.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
    // The instructions in folders that are added.
    ("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1"),
];

pub(super) fn environment(program: &Program, home: &Path) -> std::collections::BTreeMap<OsString, OsString> {
    let mut names: Vec<&str> = LOGIN.to_vec();
    for (switch, keys) in [BEDROCK, VERTEX] {
        if program.environment.contains_key(OsStr::new(switch)) {
            names.push(switch);
            names.extend(keys);
        }
    }
    let config = config_folder(home);
    let mut set: Vec<(&str, &OsStr)> = SETTINGS.iter().map(|(name, value)| (*name, OsStr::new(value))).collect();
    set.push(("HOME", home.as_os_str()));
    set.push(("CLAUDE_CONFIG_DIR", config.as_os_str()));
    program.environment(&names, &set)
}

fn mcp_config(servers: &[Server]) -> Value {
    let mut entries = serde_json::Map::new();
    for server in servers {
        let entry = match &server.config.transport {
            Transport::Stdio { command, args, env } => {
                json!({"type": "stdio", "command": command, "args": args, "env": env})
            }
            remote @ (Transport::Http { url, headers } | Transport::Sse { url, headers }) => {
                json!({"type": remote.kind(), "url": url, "headers": headers})
            }
        };
        entries.insert(server.name.clone(), entry);
    }
    // Last, so that no server can take the name of ours.
    entries.insert(host_tools::SERVER.to_owned(), json!({"type": "sdk", "name": host_tools::SERVER}));
    json!({"mcpServers": entries})
}

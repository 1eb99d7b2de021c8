//! The command line, environment and MCP configuration of Claude Code. Pure.

use crate::{
    AgentWorkspace,
    gateway::{self, ModelWire},
    host_tools::{self, HostToolAgent, HostToolDefinition},
    program::{self, AgentProgram},
};
use domain::{
    agent::Thinking,
    mcp::{McpTransport, NamedMcpServer, server_pattern},
    provider_settings::WorkspaceProviders,
};
use serde_json::{Value, json};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};
use workbench::{process::ProcessSpec, project_sandbox::SandboxSpec, skills::SkillFolder};

/// The model API that the program calls.
pub(super) const WIRES: [ModelWire; 1] = [ModelWire::ANTHROPIC];

/// Settings that cannot change while the process runs: if they do, the process is replaced. The model is not included,
/// because it can be changed at run time.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ClaudeLaunchSettings {
    pub program: PathBuf,
    pub home: PathBuf,
    pub workspace: PathBuf,
    pub system_prompt: Option<String>,
    pub effort: Option<Thinking>,
    /// A skill that was edited is picked up by the next process only.
    pub skills: Vec<SkillFolder>,
    /// The program lists them once.
    pub host_tools: Vec<HostToolDefinition>,
    /// With [`gateway::TOKEN_PLACE`] where the token of the process belongs.
    pub mcp_config: String,
    /// A file in the agent's own folder, because secrets must not be on a command line (invariant 17).
    pub mcp_file: PathBuf,
    /// The folder of the agent's skills in this room, in the format of a plugin: the agent's own Claude folder is shared by
    /// all rooms, and skills of two rooms must not meet.
    pub skills_folder: PathBuf,
    pub mcp_servers: Vec<NamedMcpServer>,
    /// The workspace's own key and address.
    pub provider_settings: WorkspaceProviders,
    pub sandbox: Option<Arc<SandboxSpec>>,
}

/// The folder in which the program keeps its settings and sessions.
pub(super) fn config_folder(home: &Path) -> PathBuf {
    home.join("claude")
}

impl ClaudeLaunchSettings {
    pub fn of(workspace: &AgentWorkspace, program: PathBuf) -> Self {
        Self {
            program,
            home: workspace.home.clone(),
            workspace: workspace.folder.clone(),
            system_prompt: workspace.agent.spec.system_prompt.clone().filter(|prompt| !prompt.trim().is_empty()),
            effort: workspace.agent.spec.thinking(),
            skills: workspace.skills.clone(),
            host_tools: workspace.host_tools.offered(&HostToolAgent::with_program(workspace.clone())),
            mcp_config: match &workspace.sandbox {
                Some(_) => mcp_config_json(&servers_inside(&workspace.mcp_servers)).to_string(),
                None => mcp_config_json(&workspace.mcp_servers).to_string(),
            },
            mcp_file: workspace.home.join(format!("mcp-{}.json", workspace.room_id)),
            skills_folder: workspace.home.join("skills").join(workspace.room_id.to_string()),
            mcp_servers: workspace.mcp_servers.clone(),
            provider_settings: workspace.provider_settings.only(&WIRES.map(|wire| wire.settings)),
            sandbox: workspace.sandbox.clone(),
        }
    }

    pub fn command(&self, program: &AgentProgram, model: Option<&str>, resume: Option<&str>) -> ProcessSpec {
        let mut args: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        // With `=`, so that a value is never parsed as a flag.
        args.push(joined("--mcp-config=", self.path_inside(&self.mcp_file).as_os_str()));
        // Makes the program read the workspace's instructions, although it ignores the workspace's settings.
        args.push(joined("--add-dir=", self.path_inside(&self.workspace).as_os_str()));
        if !self.skills.is_empty() {
            args.push(joined("--plugin-dir=", self.path_inside(&self.skills_folder).as_os_str()));
        }
        args.push(format!("--allowedTools={}", server_pattern(host_tools::SERVER_NAME)).into());
        if self.sandbox.is_some() {
            // A sandbox cannot be built inside of another one.
            args.push("--settings={\"sandbox\":{\"enabled\":false}}".into());
        }
        args.extend(model.map(|model| format!("--model={model}").into()));
        args.extend(self.effort.map(|effort| format!("--effort={}", effort.as_str()).into()));
        args.extend(resume.map(|session| format!("--resume={session}").into()));
        args.extend(program.args.iter().map(OsString::from));
        ProcessSpec {
            program: self.program.clone(),
            args,
            env: match &self.sandbox {
                Some(sandbox) => environment_inside(program, sandbox, &self.path_inside(&self.home)),
                None => environment(program, &self.home),
            },
            folder: self.path_inside(&self.workspace),
            sandbox: self.sandbox.clone(),
        }
    }

    fn path_inside(&self, path: &Path) -> PathBuf {
        program::path_inside(self.sandbox.as_deref(), path)
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
    // Overrides any settings file in the workspace.
    "--permission-mode=default",
    // Only the agent's own settings. Settings in the workspace could start programs without approval or send the API
    // key elsewhere, and anyone who can write a file there would control them.
    "--setting-sources=user",
    "--strict-mcp-config",
    // These start turns later, outside of any run, and do not ask for permission.
    "--disallowedTools=ScheduleWakeup,Monitor,Workflow,CronCreate",
];

/// Access to the model's API; passed on if set in the server's environment.
const LOGIN_VARIABLES: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Passed on only if this cloud is selected, because its keys give access to more than the model.
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

const SET_VARIABLES: [(&str, &str); 9] = [
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    // The default of ten takes minutes.
    ("CLAUDE_CODE_MAX_RETRIES", "4"),
    // Offer MCP tools to the model directly, not through a search tool.
    ("ENABLE_TOOL_SEARCH", "false"),
    // A background command outlives its turn, and its end would start another turn.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("CLAUDE_CODE_DISABLE_CRON", "1"),
    // Read the instructions in folders added with `--add-dir`.
    ("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "1"),
];

pub(super) fn login_variables(program: &AgentProgram) -> Vec<&'static str> {
    let mut names = LOGIN_VARIABLES.to_vec();
    for (switch, keys) in [BEDROCK, VERTEX] {
        if program.environment.contains_key(OsStr::new(switch)) {
            names.push(switch);
            names.extend(keys);
        }
    }
    names
}

pub(super) fn environment(program: &AgentProgram, home: &Path) -> std::collections::BTreeMap<OsString, OsString> {
    let names = login_variables(program);
    let config = config_folder(home);
    let mut set: Vec<(&str, &OsStr)> = SET_VARIABLES.iter().map(|(name, value)| (*name, OsStr::new(value))).collect();
    set.push(("HOME", home.as_os_str()));
    set.push(("CLAUDE_CONFIG_DIR", config.as_os_str()));
    program.environment(&names, &set)
}

/// `home` as the program sees it. The addresses and tokens of model APIs are added when it starts.
fn environment_inside(
    program: &AgentProgram,
    sandbox: &SandboxSpec,
    home: &Path,
) -> std::collections::BTreeMap<OsString, OsString> {
    let config = config_folder(home);
    let mut set: Vec<(&str, &OsStr)> = SET_VARIABLES.iter().map(|(name, value)| (*name, OsStr::new(value))).collect();
    set.push(("HOME", home.as_os_str()));
    set.push(("CLAUDE_CONFIG_DIR", config.as_os_str()));
    program.environment_inside(sandbox, &["ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"], &set)
}

fn servers_inside(servers: &[NamedMcpServer]) -> Vec<NamedMcpServer> {
    servers.iter().filter_map(|server| gateway::server_inside(server, gateway::TOKEN_PLACE)).collect()
}

fn mcp_config_json(servers: &[NamedMcpServer]) -> Value {
    let mut entries = serde_json::Map::new();
    for server in servers {
        let entry = match &server.config.transport {
            McpTransport::Stdio { command, args, env } => {
                json!({"type": "stdio", "command": command, "args": args, "env": env})
            }
            remote @ (McpTransport::Http { url, headers } | McpTransport::Sse { url, headers }) => {
                json!({"type": remote.kind(), "url": url, "headers": headers})
            }
        };
        entries.insert(server.name.clone(), entry);
    }
    // Inserted last, so that no other server can replace the host tools.
    entries.insert(host_tools::SERVER_NAME.to_owned(), json!({"type": "sdk", "name": host_tools::SERVER_NAME}));
    json!({"mcpServers": entries})
}

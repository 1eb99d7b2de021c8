//! `[agents]`, `[claude_code]`, `[codex]`, `[acp]`, `[mcp]`: the agents' programs and workspaces.

use super::{AppConfigError, path, reader::ConfigReader};
use domain::{name::Name, owner::Owner};
use providers::LoginGrants;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};
use workbench::egress::EgressRule;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentsSection {
    /// One folder for all rooms, instead of one per room in the data folder.
    pub workspace: Option<PathBuf>,
    /// The MCP server file; `mcp.json` in the data folder by default.
    pub mcp_servers: Option<PathBuf>,
    /// Whose agents may use logins and keys of the server.
    pub lend_login_to: LoginGrants,
}

/// How a program is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramSection {
    pub command: String,
    pub args: Vec<String>,
    pub pass_env: Vec<String>,
    pub share_login: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaudeCodeSection {
    pub starting: ProgramSection,
    pub processes: usize,
    pub idle: Duration,
    pub spares: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodexSection {
    pub starting: ProgramSection,
    pub instances: usize,
    pub idle: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcpSection {
    /// The operator's own agents, and other command lines for built-in presets.
    pub agents: Vec<AcpAgentEntry>,
    pub pass_env: Vec<String>,
    pub share_login: bool,
    pub processes: usize,
    pub idle: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpSection {
    /// Environment variables that MCP server settings may use.
    pub variables: Vec<String>,
    pub idle: Duration,
    /// What MCP servers of others than the operator may be at, besides public addresses.
    pub egress_allow: Vec<EgressRule>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcpAgentEntry {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
}

const A_PATH: &str = "empty, or the path of a folder that exists";
const A_COMMAND: &str = "the name or path of a program";
const ARGUMENTS: &str = "a list of arguments";
const EGRESS: &str = "a list of addresses, networks such as 10.0.0.0/8, and host names";
const VARIABLES: &str = "a list of names of environment variables";
const AGENTS: &str = "a list of entries NAME = COMMAND LINE, with NAME of a-z, 0-9, _ and -, each name once and none of \
                      scripted, claude_code, codex, anthropic, openai, openai_responses and google";
/// Providers that are not ACP agents. They have their own sections.
pub(super) const NON_ACP_PROVIDERS: [&str; 7] =
    ["scripted", "claude_code", "codex", "anthropic", "openai", "openai_responses", "google"];

impl AgentsSection {
    pub(super) fn read(from: &ConfigReader, working_dir: &Path) -> Result<Self, AppConfigError> {
        let optional_path = |text: &str| match text {
            "" => Some(None),
            text => path(text).map(|path| Some(working_dir.join(path))),
        };
        let folder = |text: &str| optional_path(text).filter(|path| path.as_ref().is_none_or(|path| path.is_dir()));
        Ok(Self {
            workspace: from.parsed("agents.workspace", A_PATH, folder)?,
            mcp_servers: from.parsed("agents.mcp_servers", "empty, or the path of a file", optional_path)?,
            lend_login_to: login_grants(&from.list(
                "agents.lend_login_to",
                "names of workspaces, or only *",
                grantee,
            )?),
        })
    }
}

/// A workspace, or `*`, which is `None`.
fn grantee(text: &str) -> Option<Option<Owner>> {
    match text {
        "*" => Some(None),
        name => Name::parse(name).ok().map(|name| Some(Owner::new(name))),
    }
}

fn login_grants(granted: &[Option<Owner>]) -> LoginGrants {
    if granted.is_empty() {
        return LoginGrants::Nobody;
    }
    granted.iter().cloned().collect::<Option<_>>().map_or(LoginGrants::Everyone, LoginGrants::Workspaces)
}

impl ProgramSection {
    fn read(from: &ConfigReader, section: &str) -> Result<Self, AppConfigError> {
        let key = |name: &str| format!("{section}.{name}");
        Ok(Self {
            command: from.parsed(&key("command"), A_COMMAND, command)?,
            args: from.list(&key("args"), ARGUMENTS, argument)?,
            pass_env: from.list(&key("pass_env"), VARIABLES, variable)?,
            share_login: from.boolean(&key("share_login"))?,
        })
    }
}

impl ClaudeCodeSection {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        Ok(Self {
            starting: ProgramSection::read(from, "claude_code")?,
            processes: from.integer("claude_code.processes", 1..=1000)?,
            idle: from.seconds("claude_code.idle_seconds", 1..=86_400)?,
            spares: from.integer("claude_code.spares", 0..=100)?,
        })
    }
}

impl CodexSection {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        Ok(Self {
            starting: ProgramSection::read(from, "codex")?,
            instances: from.integer("codex.instances", 1..=100)?,
            idle: from.seconds("codex.idle_seconds", 1..=86_400)?,
        })
    }
}

impl AcpSection {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        Ok(Self {
            agents: from.checked_list("acp.agents", AGENTS, acp_agent, |agents| {
                let names: BTreeSet<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
                names.len() == agents.len() && NON_ACP_PROVIDERS.iter().all(|name| !names.contains(name))
            })?,
            pass_env: from.list("acp.pass_env", VARIABLES, variable)?,
            share_login: from.boolean("acp.share_login")?,
            processes: from.integer("acp.processes", 1..=1000)?,
            idle: from.seconds("acp.idle_seconds", 1..=86_400)?,
        })
    }
}

impl McpSection {
    pub(super) fn read(from: &ConfigReader) -> Result<Self, AppConfigError> {
        Ok(Self {
            variables: from.list("mcp.variables", VARIABLES, variable)?,
            egress_allow: from.list("mcp.egress_allow", EGRESS, |text| text.parse().ok())?,
            idle: from.seconds("mcp.idle_seconds", 1..=86_400)?,
        })
    }
}

fn command(text: &str) -> Option<String> {
    let usable = !text.trim().is_empty() && !text.contains(['\0', '\n']);
    usable.then(|| text.to_owned())
}

fn argument(text: &str) -> Option<String> {
    (!text.contains('\0')).then(|| text.to_owned())
}

pub(super) fn variable(text: &str) -> Option<String> {
    domain::mcp::may_be_allowed(text).then(|| text.to_owned())
}

fn acp_agent(text: &str) -> Option<AcpAgentEntry> {
    let (name, line) = text.split_once('=')?;
    let name = name.trim();
    let mut words = shlex::split(line)?.into_iter();
    let command = command(&words.next()?)?;
    is_provider_name(name).then(|| AcpAgentEntry { name: name.to_owned(), command, args: words.collect() })
}

pub(super) fn is_provider_name(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(letters)
}

#[cfg(test)]
mod tests {
    use super::{acp_agent, variable};

    #[test]
    fn an_agent_is_a_name_and_a_command_line() {
        let agent = acp_agent("mine = /opt/my agent/bin").unwrap();
        assert_eq!((agent.name.as_str(), agent.command.as_str(), agent.args.len()), ("mine", "/opt/my", 1));
        let agent = acp_agent("mine='/opt/my agent' --acp \"two words\"").unwrap();
        assert_eq!((agent.command.as_str(), agent.args), ("/opt/my agent", vec!["--acp".into(), "two words".into()]));
        for wrong in ["mine", "= x", "Mine = x", "mine = ", "mine = 'x"] {
            assert_eq!(acp_agent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn invariant_17_secrets_stay_greenrooms_own_settings_cannot_be_passed_on() {
        assert_eq!(variable("OPENAI_API_KEY").as_deref(), Some("OPENAI_API_KEY"));
        for refused in ["", "A=B", "GREENROOM_STORE__DATABASE", "greenroom_token"] {
            assert_eq!(variable(refused), None, "{refused}");
        }
    }
}

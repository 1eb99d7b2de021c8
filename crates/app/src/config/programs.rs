//! `[agents]`, `[claude_code]`, `[codex]`, `[acp]`, `[mcp]`: the programs that answer, and where they work.

use super::{Error, path, reader::Reader};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agents {
    /// One folder for all rooms, instead of one per room in the data folder.
    pub workspace: Option<PathBuf>,
    /// The file that says which MCP servers there are; `mcp.json` in the data folder when not named.
    pub mcp_servers: Option<PathBuf>,
}

/// How a program is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Starting {
    pub command: String,
    pub args: Vec<String>,
    pub pass_env: Vec<String>,
    pub share_login: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaudeCode {
    pub starting: Starting,
    pub processes: usize,
    pub idle: Duration,
    pub spares: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Codex {
    pub starting: Starting,
    pub instances: usize,
    pub idle: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acp {
    /// The operator's own, and other command lines for known ones.
    pub agents: Vec<AcpAgent>,
    pub pass_env: Vec<String>,
    pub share_login: bool,
    pub processes: usize,
    pub idle: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mcp {
    /// Those that settings of MCP servers may name.
    pub variables: Vec<String>,
    pub idle: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AcpAgent {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
}

const A_PATH: &str = "empty, or the path of a folder that exists";
const A_COMMAND: &str = "the name or path of a program";
const ARGUMENTS: &str = "a list of arguments";
const VARIABLES: &str = "a list of names of environment variables";
const AGENTS: &str = "a list of entries NAME = COMMAND LINE, with NAME of a-z, 0-9, _ and -, each name once and none of \
                      scripted, claude_code, codex, anthropic and openai";
/// They are no ACP agents, and what is set for them stands in sections of their own.
pub(super) const OTHERS: [&str; 5] = ["scripted", "claude_code", "codex", "anthropic", "openai"];

impl Agents {
    pub(super) fn read(from: &Reader, working_dir: &Path) -> Result<Self, Error> {
        let place = |text: &str| match text {
            "" => Some(None),
            text => path(text).map(|path| Some(working_dir.join(path))),
        };
        let folder = |text: &str| place(text).filter(|path| path.as_ref().is_none_or(|path| path.is_dir()));
        Ok(Self {
            workspace: from.parsed("agents.workspace", A_PATH, folder)?,
            mcp_servers: from.parsed("agents.mcp_servers", "empty, or the path of a file", place)?,
        })
    }
}

impl Starting {
    fn read(from: &Reader, section: &str) -> Result<Self, Error> {
        let key = |name: &str| format!("{section}.{name}");
        Ok(Self {
            command: from.parsed(&key("command"), A_COMMAND, command)?,
            args: from.list(&key("args"), ARGUMENTS, argument)?,
            pass_env: from.list(&key("pass_env"), VARIABLES, variable)?,
            share_login: from.yes_or_no(&key("share_login"))?,
        })
    }
}

impl ClaudeCode {
    pub(super) fn read(from: &Reader) -> Result<Self, Error> {
        Ok(Self {
            starting: Starting::read(from, "claude_code")?,
            processes: from.integer("claude_code.processes", 1..=1000)?,
            idle: from.seconds("claude_code.idle_seconds", 1..=86_400)?,
            spares: from.integer("claude_code.spares", 0..=100)?,
        })
    }
}

impl Codex {
    pub(super) fn read(from: &Reader) -> Result<Self, Error> {
        Ok(Self {
            starting: Starting::read(from, "codex")?,
            instances: from.integer("codex.instances", 1..=100)?,
            idle: from.seconds("codex.idle_seconds", 1..=86_400)?,
        })
    }
}

impl Acp {
    pub(super) fn read(from: &Reader) -> Result<Self, Error> {
        Ok(Self {
            agents: from.checked_list("acp.agents", AGENTS, acp_agent, |agents| {
                let names: BTreeSet<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
                names.len() == agents.len() && OTHERS.iter().all(|name| !names.contains(name))
            })?,
            pass_env: from.list("acp.pass_env", VARIABLES, variable)?,
            share_login: from.yes_or_no("acp.share_login")?,
            processes: from.integer("acp.processes", 1..=1000)?,
            idle: from.seconds("acp.idle_seconds", 1..=86_400)?,
        })
    }
}

impl Mcp {
    pub(super) fn read(from: &Reader) -> Result<Self, Error> {
        Ok(Self {
            variables: from.list("mcp.variables", VARIABLES, variable)?,
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
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Our own settings hold the database's password and more (invariant 17).
    let ours = text.to_ascii_uppercase().starts_with("GREENROOM");
    (!text.is_empty() && text.chars().all(letters) && !ours).then(|| text.to_owned())
}

fn acp_agent(text: &str) -> Option<AcpAgent> {
    let (name, line) = text.split_once('=')?;
    let name = name.trim();
    let mut words = shlex::split(line)?.into_iter();
    let command = command(&words.next()?)?;
    is_provider_name(name).then(|| AcpAgent { name: name.to_owned(), command, args: words.collect() })
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
    fn invariant_17_secrets_stay_our_own_settings_cannot_be_passed_on() {
        assert_eq!(variable("OPENAI_API_KEY").as_deref(), Some("OPENAI_API_KEY"));
        for refused in ["", "A=B", "GREENROOM_STORE__DATABASE", "greenroom_token"] {
            assert_eq!(variable(refused), None, "{refused}");
        }
    }
}

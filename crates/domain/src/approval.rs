//! Answers to approvals: who gave them, and what they allow from now on. Pure.
//!
//! "Always allow" remembers what the person saw: this exact input, a pattern that the request showed, or the whole tool.

use crate::{
    actor::{Actor, Credential},
    ids::UserId,
    name::Name,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::IpAddr;

/// How much of an allowed call is remembered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RememberScope {
    /// The tool with exactly this input.
    Exact,
    /// Calls that match the `pattern` of the request.
    Pattern,
    /// The tool with any input.
    Tool,
}

/// `remember` in an answer: how much, or `true`, which means the whole tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum RememberChoice {
    Scope(RememberScope),
    /// `true`: the whole tool, as in clients from before the scopes. `false`: nothing.
    Whole(bool),
}

impl Default for RememberChoice {
    fn default() -> Self {
        Self::Whole(false)
    }
}

impl RememberChoice {
    pub fn scope(self) -> Option<RememberScope> {
        match self {
            Self::Scope(scope) => Some(scope),
            Self::Whole(whole) => whole.then_some(RememberScope::Tool),
        }
    }
}

/// Who decided, by which credential, and from where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DecisionAuthor {
    pub user_id: Option<UserId>,
    pub name: Name,
    /// `local_key`, `no_auth`, `token`, `browser_session`, `agent` or `system`.
    #[schema(examples("browser_session"))]
    pub credential: String,
    /// The address of the client, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
}

impl DecisionAuthor {
    pub fn new(actor: &Actor) -> Self {
        let credential = match actor.credential {
            Credential::LocalKey => "local_key",
            Credential::NoAuth => "no_auth",
            Credential::Token(_) => "token",
            Credential::BrowserSession { .. } => "browser_session",
            Credential::Agent(_) => "agent",
            Credential::System => "system",
        };
        let (user_id, name) = (actor.user_id(), actor.name().clone());
        Self { user_id, name, credential: credential.to_owned(), address: actor.address }
    }
}

/// Calls of a tool that need no approval any more.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RememberedRule {
    pub tool: String,
    pub calls: RememberedCalls,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RememberedCalls {
    /// With any input.
    All,
    /// With exactly this input, as JSON.
    Exact(String),
    Pattern(CommandPattern),
}

/// Commands that begin with some words, and are otherwise like the one that was approved: with other plain arguments, such
/// as paths, but with no option that the person has not seen. Options can run programs (`git grep -O`, `go test -exec`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CommandPattern {
    /// The field of the input with the command.
    field: String,
    prefix: String,
    /// The words behind the prefix that are not plain: options, assignments, quoted words.
    seen: Vec<String>,
    /// The other fields, as JSON: they decide where and how the command runs.
    rest: String,
}

/// The fields in which tools take a command line.
const COMMAND_FIELDS: [&str; 2] = ["command", "cmd"];
/// Fields that say nothing about what is done.
const DESCRIPTIVE_FIELDS: [&str; 4] = ["description", "timeout", "timeout_ms", "timeout_seconds"];
/// They run another command, so their own name says nothing. Without the digits of a version: `python3.12`.
const WRAPPERS: [&str; 46] = [
    "awk", "bash", "builtin", "bun", "bunx", "busybox", "chroot", "command", "dash", "deno", "doas", "env", "eval",
    "exec", "find", "fish", "gawk", "ionice", "ksh", "lua", "mawk", "nice", "node", "nodejs", "nohup", "npx",
    "parallel", "perl", "php", "pipx", "python", "ruby", "setsid", "sh", "source", "ssh", "stdbuf", "su", "sudo",
    "time", "timeout", "uvx", "watch", "xargs", "yarn", "zsh",
];
/// Subcommands that run another command.
const RUNNERS: [&str; 7] = ["dlx", "eval", "exec", "foreach", "run", "shell", "x"];
/// Programs that only read, and have a pattern without a subcommand.
const READERS: [&str; 16] = [
    "basename", "cat", "cmp", "cut", "df", "dirname", "du", "grep", "head", "ls", "pwd", "realpath", "stat", "tail",
    "wc", "which",
];
/// Characters with which a command line can contain another command.
const SHELL_SYNTAX: [char; 14] = [';', '&', '|', '`', '$', '(', ')', '{', '}', '<', '>', '\\', '\n', '\r'];
/// A longer input is not remembered exactly.
const MAX_EXACT_BYTES: usize = 16 * 1024;

impl CommandPattern {
    /// The pattern of a call, if its input has a simple command: the program and its subcommand, or a program that only
    /// reads.
    pub fn of(input: &Value) -> Option<Self> {
        let input = input.as_object()?;
        let field = COMMAND_FIELDS.into_iter().find(|field| input.get(*field).is_some_and(Value::is_string))?;
        let mut words = words_of(input[field].as_str()?)?;
        let program = words.next()?;
        let name = program.rsplit('/').next().unwrap_or_default();
        let without_version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if WRAPPERS.contains(&without_version) || !is_plain(program) {
            return None;
        }
        let mut rest: Vec<&str> = words.collect();
        let is_subcommand =
            |word: &str| word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(is_word_character);
        let prefix = match rest.first() {
            _ if READERS.contains(&name) => program.to_owned(),
            Some(subcommand) if is_subcommand(subcommand) && !RUNNERS.contains(subcommand) => {
                format!("{program} {}", rest.remove(0))
            }
            _ => return None,
        };
        let mut seen: Vec<String> = rest.into_iter().filter(|word| !is_plain(word)).map(str::to_owned).collect();
        seen.sort();
        seen.dedup();
        Some(Self { field: field.to_owned(), prefix, seen, rest: rest_of(input, field) })
    }

    fn matches(&self, input: &Value) -> bool {
        let Some(input) = input.as_object() else { return false };
        let Some(mut words) = input.get(&self.field).and_then(Value::as_str).and_then(words_of) else { return false };
        // Word by word, so that more spaces between two words make no difference.
        self.prefix.split(' ').all(|word| words.next() == Some(word))
            && words.all(|word| is_plain(word) || self.seen.iter().any(|seen| seen == word))
            && rest_of(input, &self.field) == self.rest
    }

    /// `git status --short:*`
    fn label(&self) -> String {
        let words: Vec<&str> = std::iter::once(&self.prefix).chain(&self.seen).map(String::as_str).collect();
        format!("{}:*", words.join(" "))
    }
}

/// The words of a command line as a shell separates them. `None` if it can contain another command, or a character that
/// separates words for people and not for a shell.
fn words_of(command: &str) -> Option<impl Iterator<Item = &str>> {
    let misleads =
        |c: char| SHELL_SYNTAX.contains(&c) || (c.is_control() && c != '\t') || (c.is_whitespace() && !c.is_ascii());
    (!command.contains(misleads)).then(|| command.split([' ', '\t']).filter(|word| !word.is_empty()))
}

/// Neither an option nor an assignment nor anything that a shell or a program reads in another way.
fn is_plain(word: &str) -> bool {
    !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphanumeric() || "_./,:@+-".contains(c))
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_')
}

fn rest_of(input: &Map<String, Value>, field: &str) -> String {
    let is_rest = |key: &str| key != field && !DESCRIPTIVE_FIELDS.contains(&key);
    let rest = input.iter().filter(|(key, _)| is_rest(key)).map(|(key, value)| (key.clone(), value.clone()));
    Value::Object(rest.collect()).to_string()
}

impl RememberedRule {
    /// The rule for a call; `None` if such a call cannot be remembered in this way.
    pub fn new(tool: &str, input: &Value, scope: RememberScope) -> Option<Self> {
        let calls = match scope {
            RememberScope::Tool => RememberedCalls::All,
            RememberScope::Exact => {
                RememberedCalls::Exact(Some(input.to_string()).filter(|text| text.len() <= MAX_EXACT_BYTES)?)
            }
            RememberScope::Pattern => RememberedCalls::Pattern(CommandPattern::of(input)?),
        };
        Some(Self { tool: tool.to_owned(), calls })
    }

    pub fn matches(&self, tool: &str, input: &Value) -> bool {
        self.tool == tool
            && match &self.calls {
                RememberedCalls::All => true,
                RememberedCalls::Exact(text) => serde_json::from_str::<Value>(text).is_ok_and(|seen| seen == *input),
                RememberedCalls::Pattern(pattern) => pattern.matches(input),
            }
    }

    pub fn scope(&self) -> RememberScope {
        match self.calls {
            RememberedCalls::All => RememberScope::Tool,
            RememberedCalls::Exact(_) => RememberScope::Exact,
            RememberedCalls::Pattern(_) => RememberScope::Pattern,
        }
    }

    /// The rule for people: `Bash`, `Bash(git status:*)`, or `Bash({"command":"ls"})`.
    pub fn label(&self) -> String {
        match &self.calls {
            RememberedCalls::All => self.tool.clone(),
            RememberedCalls::Exact(text) => format!("{}({text})", self.tool),
            RememberedCalls::Pattern(pattern) => format!("{}({})", self.tool, pattern.label()),
        }
    }

    /// The stored name of the scope, and what it needs to be read again.
    pub fn to_stored(&self) -> (&'static str, String) {
        match &self.calls {
            RememberedCalls::All => ("tool", String::new()),
            RememberedCalls::Exact(text) => ("exact", text.clone()),
            RememberedCalls::Pattern(pattern) => ("pattern", serde_json::to_string(pattern).unwrap_or_default()),
        }
    }

    /// `None` for a rule that this version cannot read: its calls are asked for again.
    pub fn from_stored(tool: String, scope: &str, detail: String) -> Option<Self> {
        let calls = match scope {
            "tool" => RememberedCalls::All,
            "exact" => RememberedCalls::Exact(detail),
            "pattern" => RememberedCalls::Pattern(serde_json::from_str(&detail).ok()?),
            _ => return None,
        };
        Some(Self { tool, calls })
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandPattern, RememberChoice, RememberScope, RememberedRule};
    use serde_json::{Value, json};

    fn rule(input: &Value, scope: RememberScope) -> Option<RememberedRule> {
        RememberedRule::new("Bash", input, scope)
    }

    #[test]
    fn m12_a_pattern_allows_the_same_command_and_nothing_behind_it() {
        let seen = json!({"command": "git status --short", "description": "Look"});
        let pattern = rule(&seen, RememberScope::Pattern).unwrap();
        assert_eq!(pattern.label(), "Bash(git status --short:*)");
        for (command, allowed) in [
            ("git status", true),
            ("git  status --short src/main.rs", true),
            ("git\tstatus", true),
            ("git status -sb", false),
            ("git status '-O/tmp/evil'", false),
            ("git status SHELL=/tmp/evil", false),
            ("git\u{a0}status", false),
            ("git status\u{b}x", false),
            ("git status\u{2003}x", false),
            ("git statusx", false),
            ("git push", false),
            ("git status; rm -rf /", false),
            ("git status && id", false),
            ("git status\nid", false),
            ("git status `id`", false),
            ("git status $(id)", false),
            ("git status > /etc/passwd", false),
            ("/tmp/git status", false),
            ("FOO=1 git status", false),
        ] {
            assert_eq!(pattern.matches("Bash", &json!({"command": command})), allowed, "{command}");
        }
        assert!(!pattern.matches("Other", &json!({"command": "git status"})));
        let elsewhere = json!({"command": "git status", "dangerouslyDisableSandbox": true});
        assert!(!pattern.matches("Bash", &elsewhere), "the other fields are part of what the person saw");
        assert!(
            !pattern.matches("Bash", &json!({"command": ["git", "status"]})) && !pattern.matches("Bash", &json!(7))
        );
    }

    #[test]
    fn m12_a_command_that_can_hide_another_one_has_no_pattern() {
        for command in [
            "sudo ls",
            "sh -c id",
            "/bin/bash -c id",
            "env ls",
            "xargs rm",
            "A=1 ls",
            "ls; id",
            "ls | sh",
            "ls $X",
            "",
            "'ls'",
            "-x",
            "find . -delete",
            "command -v node",
            "git --no-pager log -3",
            "uv run pytest -q",
            "source venv/bin/activate",
            "python3.12 manage.py check",
            "npx -y prettier",
            "stdbuf -oL make",
            "gawk -f x.awk f",
            "tar -tf a.tar",
            "sed -n 1,5p f",
            "./build.sh --fast",
            "docker exec web ls",
        ] {
            assert_eq!(CommandPattern::of(&json!({"command": command})), None, "{command}");
        }
        assert_eq!(CommandPattern::of(&json!({"path": "/etc"})), None);
        let npm = rule(&json!({"cmd": "npm test"}), RememberScope::Pattern).unwrap();
        assert_eq!(npm.label(), "Bash(npm test:*)");
        assert_eq!(rule(&json!({"cmd": "ls -l"}), RememberScope::Pattern).unwrap().label(), "Bash(ls -l:*)");
        let tests = rule(&json!({"cmd": "go test ./..."}), RememberScope::Pattern).unwrap();
        assert!(tests.matches("Bash", &json!({"cmd": "go test ./store"})));
        assert!(!tests.matches("Bash", &json!({"cmd": "go test -exec /tmp/evil ./..."})));
    }

    #[test]
    fn m12_exact_and_tool_rules_match_what_they_say() {
        let (seen, other) = (json!({"command": "ls", "n": 1}), json!({"command": "ls", "n": 2}));
        let exact = rule(&seen, RememberScope::Exact).unwrap();
        assert!(exact.matches("Bash", &json!({"n": 1, "command": "ls"})) && !exact.matches("Bash", &other));
        assert!(rule(&seen, RememberScope::Tool).unwrap().matches("Bash", &other));
        assert_eq!(rule(&json!("x".repeat(20_000)), RememberScope::Exact), None);
        for scope in [RememberScope::Exact, RememberScope::Pattern, RememberScope::Tool] {
            let made = rule(&seen, scope).unwrap();
            let (name, detail) = made.to_stored();
            assert_eq!(serde_json::to_value(scope).unwrap(), name);
            assert_eq!(RememberedRule::from_stored("Bash".into(), name, detail), Some(made));
        }
        assert_eq!(RememberedRule::from_stored("Bash".into(), "later", String::new()), None);
    }

    #[test]
    fn m12_true_still_means_the_whole_tool() {
        for (sent, scope) in [
            (json!(true), Some(RememberScope::Tool)),
            (json!(false), None),
            (json!("exact"), Some(RememberScope::Exact)),
            (json!("pattern"), Some(RememberScope::Pattern)),
            (json!("tool"), Some(RememberScope::Tool)),
        ] {
            assert_eq!(serde_json::from_value::<RememberChoice>(sent).unwrap().scope(), scope);
        }
        assert!(serde_json::from_value::<RememberChoice>(json!("all")).is_err());
    }
}

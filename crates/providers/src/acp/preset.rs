//! The agents that are known: how each is started, and where it differs from the protocol's letter.
//!
//! What is here was seen with the program itself or stands in its own documentation; an operator's own agent is made with
//! [`Preset::custom`].

use super::calls::Naming;
use crate::Kept;

/// One agent program. A table, not code: what an agent needs beyond it is a field here.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// The word that agents name the provider by.
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    /// Variables that are set for it.
    pub set: &'static [(&'static str, &'static str)],
    /// Variables of the server's environment that it may see.
    pub pass: &'static [&'static str],
    pub model: ModelChoice,
    pub home: Home,
    /// Files below the person's home that hold a login, and may be lent.
    pub login: &'static [&'static str],
    /// The mode to switch a session to, where the usual one does not ask us before it acts.
    pub mode: Option<&'static str>,
    /// How to log in by the protocol, where the agent demands that; one of the methods that it names.
    pub auth: Option<String>,
    /// Where below the workplace it looks for skills.
    pub skills: Option<&'static str>,
    pub naming: Naming,
    pub load: Load,
    /// What an interrupted turn leaves in the agent's own history.
    pub kept_when_stopped: Kept,
    /// What a turn that failed at the model's API leaves there.
    pub kept_when_failed: Kept,
    /// Whether a turn that ends among tool calls leaves a history that the model's API refuses.
    pub spoiled_by_tools: bool,
    /// Whether a turn without a single token is one in which the model failed, whatever the agent calls it.
    pub counts_all: bool,
    pub thinking: bool,
    pub install: String,
    pub log_in: String,
}

/// How the model is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelChoice {
    /// On the command line.
    Flag(&'static str),
    /// In the session, if the agent offers that.
    Session,
}

/// What is written into the agent's own folder, which is its `HOME`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    Plain,
    Gemini,
}

/// Whether a session is found again by a new process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// When the agent says that it can.
    Declared,
    /// Only some time after the session was made. Gemini names a session's file after the minute in which it was made,
    /// and opens a file of the present minute before it looks for the old one: in the same minute that is the same
    /// file, and loading destroys it.
    NotFresh,
}

const SKILLS: Option<&str> = Some(".agents/skills");
const NOTHING: &[&str] = &[];
const MODEL_KEYS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
];

impl Preset {
    /// Every agent that is known by name.
    pub fn all() -> Vec<Self> {
        vec![gemini(), claude_agent(), codex(), opencode(), goose(), qwen(), copilot(), cursor(), vibe()]
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|preset| preset.name == name)
    }

    /// An operator's own agent.
    pub fn custom(name: &str, command: &str, args: &[String]) -> Self {
        Self {
            args: args.to_vec(),
            install: format!("install {command}, or correct the command line"),
            log_in: "Log in with the agent's own program.".to_owned(),
            ..basic(name, command, &[])
        }
    }
}

/// An agent of which nothing but its command line is known.
fn basic(name: &str, command: &str, args: &[&str]) -> Preset {
    Preset {
        name: name.to_owned(),
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        set: &[("NO_COLOR", "1")],
        pass: NOTHING,
        model: ModelChoice::Session,
        home: Home::Plain,
        login: NOTHING,
        mode: None,
        auth: None,
        skills: None,
        naming: Naming::Field,
        load: Load::Declared,
        // The worst case: what was kept after all is told a second time, and nothing is lost.
        kept_when_stopped: Kept::Nothing,
        kept_when_failed: Kept::Nothing,
        spoiled_by_tools: false,
        counts_all: false,
        thinking: true,
        install: format!("install {command}"),
        log_in: String::new(),
    }
}

fn gemini() -> Preset {
    Preset {
        // Without NO_RELAUNCH it starts itself a second time, and that process outlives an interrupt.
        set: &[("GEMINI_CLI_NO_RELAUNCH", "1"), ("NO_COLOR", "1"), ("NO_BROWSER", "1")],
        pass: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_VERTEX_BASE_URL",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        model: ModelChoice::Flag("-m"),
        home: Home::Gemini,
        login: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"],
        // Others ask less often.
        mode: Some("default"),
        skills: SKILLS,
        naming: Naming::CallId,
        load: Load::NotFresh,
        // The call stays in its history, without a response.
        spoiled_by_tools: true,
        // An answer that breaks off, is empty or is blocked ends the turn as if all were well.
        counts_all: true,
        install: "npm install -g @google/gemini-cli".into(),
        log_in: "Set GEMINI_API_KEY, or run `gemini` once and log in.".into(),
        ..basic("gemini", "gemini", &["--acp"])
    }
}

fn claude_agent() -> Preset {
    Preset {
        set: &[
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
        pass: &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
        login: &[".claude/.credentials.json"],
        mode: Some("default"),
        skills: Some(".claude/skills"),
        kept_when_stopped: Kept::PromptAndAnswer,
        kept_when_failed: Kept::Prompt,
        install: "npm install -g @agentclientprotocol/claude-agent-acp".into(),
        log_in: "Set ANTHROPIC_API_KEY, or run `claude` once and log in.".into(),
        ..basic("claude-agent-acp", "claude-agent-acp", &[])
    }
}

fn codex() -> Preset {
    Preset {
        set: &[("NO_BROWSER", "1")],
        pass: &["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL"],
        login: &[".codex/auth.json"],
        skills: SKILLS,
        // The usual mode has a model review what the agent does, and does not ask us.
        mode: Some("read-only"),
        // The name is in some messages of a call and missing in others, the request for permission among them.
        naming: Naming::Kind,
        kept_when_stopped: Kept::Prompt,
        kept_when_failed: Kept::Prompt,
        install: "npm install -g @agentclientprotocol/codex-acp".into(),
        log_in: "Set OPENAI_API_KEY, or run `codex login`.".into(),
        ..basic("codex-acp", "codex-acp", &[])
    }
}

fn opencode() -> Preset {
    Preset {
        // It allows itself everything unless it is told to ask.
        set: &[("OPENCODE_PERMISSION", r#"{"*":"ask"}"#), ("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("NO_COLOR", "1")],
        pass: MODEL_KEYS,
        login: &[".local/share/opencode/auth.json"],
        skills: SKILLS,
        install: "npm install -g opencode-ai".into(),
        log_in: "Run `opencode auth login`, or set the key of your model's vendor.".into(),
        ..basic("opencode", "opencode", &["acp"])
    }
}

fn goose() -> Preset {
    Preset {
        // It acts without asking unless it is told to ask.
        set: &[("GOOSE_MODE", "approve"), ("NO_COLOR", "1")],
        pass: &[
            "GOOSE_PROVIDER",
            "GOOSE_MODEL",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GOOGLE_API_KEY",
            "OPENROUTER_API_KEY",
            "OLLAMA_HOST",
        ],
        login: &[".config/goose/config.yaml"],
        skills: SKILLS,
        install: "see https://block.github.io/goose for how to install goose".into(),
        log_in: "Run `goose configure`, or set GOOSE_PROVIDER, GOOSE_MODEL and the key of your model's vendor.".into(),
        ..basic("goose", "goose", &["acp"])
    }
}

fn qwen() -> Preset {
    Preset {
        pass: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"],
        login: &[".qwen/oauth_creds.json", ".qwen/settings.json"],
        // Made from Gemini CLI; its sessions are treated with the same care.
        load: Load::NotFresh,
        install: "npm install -g @qwen-code/qwen-code".into(),
        log_in: "Run `qwen` once and log in, or set OPENAI_API_KEY and OPENAI_BASE_URL.".into(),
        ..basic("qwen", "qwen", &["--acp"])
    }
}

fn copilot() -> Preset {
    Preset {
        pass: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        skills: SKILLS,
        install: "npm install -g @github/copilot".into(),
        log_in: "Set COPILOT_GITHUB_TOKEN to a token that may make Copilot requests.".into(),
        ..basic("copilot", "copilot", &["--acp"])
    }
}

fn cursor() -> Preset {
    Preset {
        pass: &["CURSOR_API_KEY"],
        skills: SKILLS,
        install: "see https://cursor.com/docs/cli for how to install cursor-agent".into(),
        log_in: "Set CURSOR_API_KEY.".into(),
        ..basic("cursor", "cursor-agent", &["acp"])
    }
}

fn vibe() -> Preset {
    Preset {
        pass: &["MISTRAL_API_KEY"],
        install: "see https://docs.mistral.ai for how to install vibe-acp".into(),
        log_in: "Set MISTRAL_API_KEY.".into(),
        ..basic("vibe", "vibe-acp", &[])
    }
}

#[cfg(test)]
mod tests {
    use super::{Load, Preset};
    use std::collections::HashSet;

    #[test]
    fn every_agent_has_a_name_of_its_own_and_says_how_to_get_it() {
        let all = Preset::all();
        let names: HashSet<&str> = all.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for preset in &all {
            assert!(!preset.install.is_empty() && !preset.log_in.is_empty(), "{}", preset.name);
            assert_eq!(Preset::named(&preset.name).as_ref(), Some(preset));
        }
        assert_eq!(Preset::named("nobody"), None);
        assert_eq!(Preset::named("gemini").map(|gemini| gemini.load), Some(Load::NotFresh));
    }

    #[test]
    fn an_agent_of_the_operators_own() {
        let preset = Preset::custom("mine", "node", &["my agent.js".into()]);
        assert_eq!((preset.name.as_str(), preset.command.as_str()), ("mine", "node"));
        assert_eq!(preset.args, ["my agent.js"]);
    }
}

//! The known agents: how each is started, and where it deviates from the protocol.
//!
//! All values were observed with the program itself or are from its documentation. Agents of an operator are created
//! with [`Preset::custom`].

use super::tool_calls::ToolNaming;
use crate::{SavedInSession, gateway::ModelWire};

/// One agent program. Peculiarities of an agent are fields here, not code elsewhere.
#[derive(Clone, PartialEq, Debug)]
pub struct Preset {
    /// The provider name in agent settings.
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    /// Environment variables that are set for the program.
    pub set_variables: &'static [(&'static str, &'static str)],
    /// Variables of the server's environment that are passed on.
    pub allowed_variables: &'static [&'static str],
    pub model: ModelChoice,
    pub home: HomeLayout,
    /// Login files below the user's home folder that may be shared.
    pub login_files: &'static [&'static str],
    /// The mode to switch a session to, if the default mode does not request permissions.
    pub mode: Option<&'static str>,
    /// The authentication method to use, if the agent requires a login through the protocol.
    pub auth: Option<String>,
    /// The skills folder in the workspace.
    pub skills: Option<&'static str>,
    pub naming: ToolNaming,
    pub load: SessionLoadPolicy,
    /// What an interrupted turn leaves in the agent's session.
    pub kept_when_stopped: SavedInSession,
    /// What a turn with an API failure leaves in the agent's session.
    pub kept_when_failed: SavedInSession,
    /// Whether an interrupted tool call leaves a session that the model's API rejects.
    pub tool_interrupt_breaks_session: bool,
    /// Whether a successful turn with zero tokens means that the model failed.
    pub zero_tokens_is_failure: bool,
    pub thinking: bool,
    pub install: String,
    pub log_in: String,
}

/// How the model is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelChoice {
    /// On the command line.
    Flag(&'static str),
    /// In the session, if the agent supports it.
    Session,
}

/// The files written to the agent's own folder, which is its `HOME`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HomeLayout {
    Plain,
    Gemini,
}

/// When a new process may load an existing session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionLoadPolicy {
    /// Whenever the agent reports support for it.
    WhenSupported,
    /// Only some time after the session was created. Gemini puts the current minute into the file name of a session and
    /// creates a new file before it looks for the old one: in the same minute, this is the same file, and loading
    /// destroys it.
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
    /// All known agents.
    pub fn all() -> Vec<Self> {
        vec![gemini(), claude_agent(), codex(), opencode(), goose(), qwen(), copilot(), cursor(), vibe()]
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|preset| preset.name == name)
    }

    /// What people call the agent.
    pub fn label(&self) -> &str {
        match self.name.as_str() {
            "gemini" => "Gemini CLI",
            "claude-agent-acp" => "Claude Agent (ACP)",
            "codex-acp" => "Codex (ACP)",
            "opencode" => "OpenCode",
            "goose" => "Goose",
            "qwen" => "Qwen Code",
            "copilot" => "GitHub Copilot CLI",
            "cursor" => "Cursor CLI",
            "vibe" => "Mistral Vibe",
            name => name,
        }
    }

    /// The model APIs that the program finds by variables, so that it can use the gateway.
    pub fn wires(&self) -> Vec<ModelWire> {
        let uses = |wire: &ModelWire| wire.key_variables().any(|name| self.allowed_variables.contains(&name));
        ModelWire::ALL.into_iter().filter(uses).collect()
    }

    /// An agent of the operator.
    pub fn custom(name: &str, command: &str, args: &[String]) -> Self {
        Self {
            args: args.to_vec(),
            install: format!("install {command}, or correct the command line"),
            log_in: "Log in with the agent's own program.".to_owned(),
            ..basic(name, command, &[])
        }
    }
}

/// An agent of which only the command line is known.
fn basic(name: &str, command: &str, args: &[&str]) -> Preset {
    Preset {
        name: name.to_owned(),
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        set_variables: &[("NO_COLOR", "1")],
        allowed_variables: NOTHING,
        model: ModelChoice::Session,
        home: HomeLayout::Plain,
        login_files: NOTHING,
        mode: None,
        auth: None,
        skills: None,
        naming: ToolNaming::Field,
        load: SessionLoadPolicy::WhenSupported,
        // The safe default: something may be sent twice, but nothing is lost.
        kept_when_stopped: SavedInSession::Nothing,
        kept_when_failed: SavedInSession::Nothing,
        tool_interrupt_breaks_session: false,
        zero_tokens_is_failure: false,
        thinking: true,
        install: format!("install {command}"),
        log_in: String::new(),
    }
}

fn gemini() -> Preset {
    Preset {
        // Without NO_RELAUNCH it starts itself again, and that process outlives an interrupt.
        set_variables: &[("GEMINI_CLI_NO_RELAUNCH", "1"), ("NO_COLOR", "1"), ("NO_BROWSER", "1")],
        allowed_variables: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "GOOGLE_VERTEX_BASE_URL",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        model: ModelChoice::Flag("--model"),
        home: HomeLayout::Gemini,
        login_files: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"],
        // The other modes request fewer permissions.
        mode: Some("default"),
        skills: SKILLS,
        naming: ToolNaming::CallId,
        load: SessionLoadPolicy::NotFresh,
        // The call stays in the session without a result.
        tool_interrupt_breaks_session: true,
        // A turn ends successfully even if the answer is cut off, empty or blocked.
        zero_tokens_is_failure: true,
        install: "npm install -g @google/gemini-cli".into(),
        log_in: "Set GEMINI_API_KEY, or run `gemini` once and log in.".into(),
        ..basic("gemini", "gemini", &["--acp"])
    }
}

fn claude_agent() -> Preset {
    Preset {
        set_variables: &[
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
        allowed_variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        login_files: &[".claude/.credentials.json"],
        mode: Some("default"),
        skills: Some(".claude/skills"),
        kept_when_stopped: SavedInSession::PromptAndAnswer,
        kept_when_failed: SavedInSession::Prompt,
        install: "npm install -g @agentclientprotocol/claude-agent-acp".into(),
        log_in: "Set ANTHROPIC_API_KEY, or run `claude` once and log in.".into(),
        ..basic("claude-agent-acp", "claude-agent-acp", &[])
    }
}

fn codex() -> Preset {
    Preset {
        set_variables: &[("NO_BROWSER", "1")],
        allowed_variables: &["OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL"],
        login_files: &[".codex/auth.json"],
        skills: SKILLS,
        // In the default mode, a model reviews the agent's actions, and permissions are not requested.
        mode: Some("read-only"),
        // The name is missing in some messages of a call, including the permission request.
        naming: ToolNaming::Kind,
        kept_when_stopped: SavedInSession::Prompt,
        kept_when_failed: SavedInSession::Prompt,
        install: "npm install -g @agentclientprotocol/codex-acp".into(),
        log_in: "Set OPENAI_API_KEY, or run `codex login`.".into(),
        ..basic("codex-acp", "codex-acp", &[])
    }
}

fn opencode() -> Preset {
    Preset {
        // By default, everything is allowed.
        set_variables: &[
            ("OPENCODE_PERMISSION", r#"{"*":"ask"}"#),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("NO_COLOR", "1"),
        ],
        allowed_variables: MODEL_KEYS,
        login_files: &[".local/share/opencode/auth.json"],
        skills: SKILLS,
        install: "npm install -g opencode-ai".into(),
        log_in: "Run `opencode auth login`, or set the key of your model's vendor.".into(),
        ..basic("opencode", "opencode", &["acp"])
    }
}

fn goose() -> Preset {
    Preset {
        // By default, no permissions are requested.
        set_variables: &[("GOOSE_MODE", "approve"), ("NO_COLOR", "1")],
        allowed_variables: &[
            "GOOSE_PROVIDER",
            "GOOSE_MODEL",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GOOGLE_API_KEY",
            "OPENROUTER_API_KEY",
            "OLLAMA_HOST",
        ],
        login_files: &[".config/goose/config.yaml"],
        skills: SKILLS,
        install: "see https://block.github.io/goose for how to install goose".into(),
        log_in: "Run `goose configure`, or set GOOSE_PROVIDER, GOOSE_MODEL and the key of your model's vendor.".into(),
        ..basic("goose", "goose", &["acp"])
    }
}

fn qwen() -> Preset {
    Preset {
        allowed_variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"],
        login_files: &[".qwen/oauth_creds.json", ".qwen/settings.json"],
        // A fork of Gemini CLI, so its sessions have the same limitation.
        load: SessionLoadPolicy::NotFresh,
        install: "npm install -g @qwen-code/qwen-code".into(),
        log_in: "Run `qwen` once and log in, or set OPENAI_API_KEY and OPENAI_BASE_URL.".into(),
        ..basic("qwen", "qwen", &["--acp"])
    }
}

fn copilot() -> Preset {
    Preset {
        allowed_variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        skills: SKILLS,
        install: "npm install -g @github/copilot".into(),
        log_in: "Set COPILOT_GITHUB_TOKEN to a token that may make Copilot requests.".into(),
        ..basic("copilot", "copilot", &["--acp"])
    }
}

fn cursor() -> Preset {
    Preset {
        allowed_variables: &["CURSOR_API_KEY"],
        skills: SKILLS,
        install: "see https://cursor.com/docs/cli for how to install cursor-agent".into(),
        log_in: "Set CURSOR_API_KEY.".into(),
        ..basic("cursor", "cursor-agent", &["acp"])
    }
}

fn vibe() -> Preset {
    Preset {
        allowed_variables: &["MISTRAL_API_KEY"],
        install: "see https://docs.mistral.ai for how to install vibe-acp".into(),
        log_in: "Set MISTRAL_API_KEY.".into(),
        ..basic("vibe", "vibe-acp", &[])
    }
}

#[cfg(test)]
mod tests {
    use super::{Preset, SessionLoadPolicy};
    use std::collections::HashSet;

    #[test]
    fn presets_have_unique_names_and_install_advice() {
        let all = Preset::all();
        let names: HashSet<&str> = all.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for preset in &all {
            assert!(!preset.install.is_empty() && !preset.log_in.is_empty(), "{}", preset.name);
            assert_eq!(Preset::named(&preset.name).as_ref(), Some(preset));
        }
        assert_eq!(Preset::named("nobody"), None);
        assert_eq!(Preset::named("gemini").map(|gemini| gemini.load), Some(SessionLoadPolicy::NotFresh));
    }

    #[test]
    fn custom_preset_has_the_given_command_line() {
        let preset = Preset::custom("mine", "node", &["my agent.js".into()]);
        assert_eq!((preset.name.as_str(), preset.command.as_str()), ("mine", "node"));
        assert_eq!(preset.args, ["my agent.js"]);
    }
}

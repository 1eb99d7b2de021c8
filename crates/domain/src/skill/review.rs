//! What an imported skill asks for. All of it is off until a person has read and accepted it. Pure.

use super::{FileEntry, FilePath, SkillSpec};
use serde::Serialize;
use serde_json::Value;

/// Endings of files that run as programs, with or without the executable bit.
const SCRIPT_ENDINGS: [&str; 15] =
    ["bash", "bat", "cjs", "cmd", "exe", "fish", "js", "mjs", "pl", "ps1", "py", "rb", "sh", "ts", "zsh"];

/// What a skill asks for beyond its instructions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, utoipa::ToSchema)]
#[schema(as = SkillRequests)]
pub struct SkillRequests {
    /// Tools that run without an approval when a person invokes the skill. `*` means every tool.
    pub tools: Vec<String>,
    pub mcp_servers: Vec<RequestedServer>,
    /// Files that run as programs.
    #[schema(value_type = Vec<String>)]
    pub scripts: Vec<FilePath>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct RequestedServer {
    pub name: String,
    /// The command line that it starts, or the address that it connects to.
    pub target: String,
}

impl SkillRequests {
    pub fn of(spec: &SkillSpec, files: &[FileEntry]) -> Self {
        let server = |(name, entry): (&String, &Value)| RequestedServer { name: name.clone(), target: target(entry) };
        Self {
            tools: spec.tools.allow.clone(),
            mcp_servers: spec.mcp_servers.iter().map(server).collect(),
            scripts: files
                .iter()
                .filter(|file| is_script(&file.path, file.executable))
                .map(|file| file.path.clone())
                .collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a file of a skill runs as a program.
pub fn is_script(path: &FilePath, executable: bool) -> bool {
    let path = path.as_str().to_ascii_lowercase();
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    executable || path.starts_with("scripts/") || path.starts_with("bin/") || SCRIPT_ENDINGS.contains(&ending)
}

fn target(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let arguments = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    match text("command") {
        Some(command) => std::iter::once(command.as_str()).chain(arguments).collect::<Vec<_>>().join(" "),
        None => text("url").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::{RequestedServer, SkillRequests, is_script};
    use crate::skill::{FileEntry, SkillSpec};
    use serde_json::json;

    #[test]
    fn m3_everything_that_runs_or_is_allowed_is_listed() {
        let mut spec = SkillSpec::new("evil".parse().unwrap(), "d", "b");
        assert!(SkillRequests::of(&spec, &[]).is_empty());
        spec.tools.allow = vec!["*".into()];
        spec.tools.deny = vec!["x".into()];
        spec.mcp_servers.insert("a".into(), json!({"command": "sh", "args": ["-c", "id"]}));
        spec.mcp_servers.insert("b".into(), json!({"url": "https://evil"}));
        let file = |path: &str, executable| FileEntry { path: path.parse().unwrap(), bytes: 1, executable };
        let files = [file("notes.md", false), file("run.PY", false), file("scripts/x", false), file("tool", true)];
        let asked = SkillRequests::of(&spec, &files);
        assert_eq!(asked.tools, ["*"]);
        let server = |name: &str, target: &str| RequestedServer { name: name.into(), target: target.into() };
        assert_eq!(asked.mcp_servers, [server("a", "sh -c id"), server("b", "https://evil")]);
        let scripts: Vec<&str> = asked.scripts.iter().map(|path| path.as_str()).collect();
        assert_eq!(scripts, ["run.PY", "scripts/x", "tool"]);
        assert!(!is_script(&"data.json".parse().unwrap(), false));
    }
}

//! The parameters of threads and turns, and the session id of a thread.

use super::command::TOKEN_VARIABLE;
use crate::{
    AgentWorkspace, gateway,
    host_tools::{HostToolAgent, HostToolDefinition},
};
use domain::mcp::{McpTransport, NamedMcpServer};
use serde_json::{Map, Value, json};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Codex asks for every command and patch; the agent's policy in the engine decides.
const APPROVAL_POLICY: &str = "untrusted";
const SANDBOX: &str = "workspace-write";
/// Inside of a sandbox Codex cannot build its own, and asks all the same.
const SANDBOX_INSIDE: &str = "danger-full-access";

/// The common parameters of `thread/start` and `thread/resume`; a resumed thread does not keep them.
fn common(workspace: &AgentWorkspace) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("cwd".into(), json!(workspace.path_inside(&workspace.folder).to_string_lossy()));
    params.insert("approvalPolicy".into(), json!(APPROVAL_POLICY));
    params.insert("approvalsReviewer".into(), json!("user"));
    params.insert("sandbox".into(), json!(if workspace.sandbox.is_some() { SANDBOX_INSIDE } else { SANDBOX }));
    if let Some(model) = &workspace.agent.spec.model {
        params.insert("model".into(), json!(model));
    }
    if let Some(prompt) = &workspace.agent.spec.system_prompt {
        params.insert("developerInstructions".into(), json!(prompt));
    }
    let mut config = Map::new();
    if !workspace.mcp_servers.is_empty() {
        let entry = |server: &NamedMcpServer| match workspace.sandbox {
            Some(_) => mcp_inside(server),
            None => mcp(server),
        };
        let servers: Map<_, _> = workspace
            .mcp_servers
            .iter()
            .filter_map(|server| Some((server_key(&server.name), entry(server)?)))
            .collect();
        config.insert("mcp_servers".into(), Value::Object(servers));
    }
    let projects = match &workspace.sandbox {
        Some(_) => json!({(sandbox_workspace(workspace)): {"trust_level": "untrusted"}}),
        None => untrusted_projects(&workspace.folder),
    };
    config.insert("projects".into(), projects);
    params.insert("config".into(), Value::Object(config));
    params
}

fn sandbox_workspace(workspace: &AgentWorkspace) -> String {
    workspace.path_inside(&workspace.folder).to_string_lossy().into_owned()
}

/// Marks the workspace as untrusted. Codex trusts writable workspaces by default, and their `.codex` folder could then
/// start MCP servers and allow commands, controlled by anyone who can write a file there. Codex looks up trust by the
/// folder and by its repository, with the given and with the resolved path.
fn untrusted_projects(workspace: &Path) -> Value {
    let mut projects = Map::new();
    for path in [Some(workspace.to_owned()), fs::canonicalize(workspace).ok()].into_iter().flatten() {
        let roots = path.ancestors().filter(|folder| folder.join(".git").symlink_metadata().is_ok());
        for folder in roots.map(Path::to_owned).chain(repository_of_worktree(&path)).chain([path.clone()]) {
            projects.insert(folder.to_string_lossy().into_owned(), json!({"trust_level": "untrusted"}));
        }
    }
    Value::Object(projects)
}

/// Returns the repository of a Git worktree, in which `.git` is a file with the path of the repository.
fn repository_of_worktree(path: &Path) -> Option<PathBuf> {
    let file = path.ancestors().map(|folder| folder.join(".git")).find(|git| git.is_file())?;
    let text = read_start(&file, 4096)?;
    let git = file.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim());
    let git = fs::canonicalize(git).ok()?;
    git.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == ".git"))?.parent().map(Path::to_owned)
}

/// The same limit that Codex itself has for instructions.
const MAX_INSTRUCTION_BYTES: u64 = 32 * 1024;

fn read_start(file: &Path, limit: u64) -> Option<String> {
    // Not a pipe, which would block, and not a device.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    fs::File::open(file).ok()?.take(limit).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Codex does not read the instructions of an untrusted workspace, so they are passed explicitly. A thread keeps those
/// that it was started with; they are not part of the fingerprint, because agents edit this file themselves.
fn instructions(workspace: &AgentWorkspace) -> Option<String> {
    let own = workspace.agent.spec.system_prompt.clone().filter(|text| !text.trim().is_empty());
    let file =
        read_start(&workspace.folder.join("AGENTS.md"), MAX_INSTRUCTION_BYTES).filter(|text| !text.trim().is_empty());
    let file =
        file.map(|text| format!("<workspace_instructions file=\"AGENTS.md\">\n{text}\n</workspace_instructions>"));
    match (own, file) {
        (Some(own), Some(file)) => Some(format!("{own}\n\n{file}")),
        (own, file) => own.or(file),
    }
}

/// Blocking; reads a small file.
pub fn start(workspace: &AgentWorkspace) -> Value {
    let mut params = common(workspace);
    if let Some(text) = instructions(workspace) {
        params.insert("developerInstructions".into(), json!(text));
    }
    let tool = |tool: HostToolDefinition| json!({"type": "function", "name": tool.name, "description": tool.description, "inputSchema": tool.schema});
    params.insert("dynamicTools".into(), host_tools(workspace).into_iter().map(tool).collect());
    Value::Object(params)
}

fn host_tools(workspace: &AgentWorkspace) -> Vec<HostToolDefinition> {
    workspace.host_tools.offered(&HostToolAgent::with_program(workspace.clone()))
}

/// The thread keeps the tools and instructions that it was started with.
pub fn resume(workspace: &AgentWorkspace, thread: &str) -> Value {
    let mut params = common(workspace);
    params.insert("threadId".into(), json!(thread));
    params.insert("excludeTurns".into(), json!(true));
    Value::Object(params)
}

/// Codex sends no reasoning unless a summary is requested.
pub fn turn(workspace: &AgentWorkspace, thread: &str, prompt: &str) -> Value {
    let mut params = json!({"threadId": thread, "input": input(prompt), "summary": "auto"});
    if let Some(model) = &workspace.agent.spec.model {
        params["model"] = json!(model);
    }
    if let Some(effort) = workspace.agent.spec.thinking() {
        params["effort"] = json!(effort.as_str());
    }
    params
}

pub fn input(text: &str) -> Value {
    json!([{"type": "text", "text": text, "text_elements": []}])
}

/// Replaces other characters, because Codex rejects the whole thread if a server name has them.
fn server_key(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Codex runs MCP tools without asking unless configured otherwise. Returns `None` if Codex does not support the
/// transport.
fn mcp(server: &NamedMcpServer) -> Option<Value> {
    const ASK: &str = "prompt";
    let mut entry = match &server.config.transport {
        McpTransport::Stdio { command, args, env } => {
            json!({"command": command, "args": args, "env": env, "default_tools_approval_mode": ASK})
        }
        McpTransport::Http { url, headers } => {
            json!({"url": url, "http_headers": headers, "default_tools_approval_mode": ASK})
        }
        McpTransport::Sse { .. } => {
            tracing::warn!(server = server.name, "Codex does not support MCP servers over SSE; skipping it");
            return None;
        }
    };
    if let Some(folder) = &server.config.folder {
        entry["cwd"] = json!(folder);
    }
    Some(entry)
}

/// The same inside of a sandbox: a remote server is at the gateway, and the token is in the program's environment.
fn mcp_inside(server: &NamedMcpServer) -> Option<Value> {
    let mut entry = mcp(&gateway::server_inside(server, gateway::TOKEN_PLACE)?)?;
    if let Some(entry) = entry.as_object_mut()
        && entry.remove("http_headers").is_some()
    {
        entry.insert("bearer_token_env_var".into(), json!(TOKEN_VARIABLE));
    }
    Some(entry)
}

/// A thread keeps the instructions and host tools that it was started with, even if it is resumed with others. So the
/// session id has the thread's id and a fingerprint of these settings; a thread with another fingerprint is not used
/// any more.
pub fn session_id(thread: &str, workspace: &AgentWorkspace) -> String {
    format!("{thread}:{:016x}", fingerprint(workspace))
}

/// Returns the thread of a session, and whether it was started with the agent's current settings.
pub fn thread_of<'a>(session: &'a str, workspace: &AgentWorkspace) -> (&'a str, bool) {
    match session.split_once(':') {
        Some((thread, marked)) => (thread, marked == format!("{:016x}", fingerprint(workspace))),
        None => (session, true),
    }
}

const FIRST_TOOLS: [&str; 2] = ["current_time", "ask_user"];

/// FNV-1a, because it is the same on every machine and in every version of Greenroom.
fn fingerprint(workspace: &AgentWorkspace) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let servers: Vec<Value> =
        workspace.mcp_servers.iter().filter_map(|server| Some(json!([server.name, mcp(server)?]))).collect();
    let mut settings = vec![json!(workspace.agent.spec.system_prompt), json!(servers)];
    // The tools that every thread has had from the start are left out, so that older threads stay valid.
    let tools = host_tools(workspace).into_iter().filter(|tool| !FIRST_TOOLS.contains(&tool.name.as_str()));
    let tools: Vec<Value> = tools.map(|tool| json!([tool.name, tool.description, tool.schema])).collect();
    if !tools.is_empty() {
        settings.push(json!(tools));
    }
    for byte in json!(settings).to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::{resume, session_id, start, thread_of, turn};
    use crate::{
        codex::tests::workspace,
        host_tools::{
            HostCall, HostTool, HostToolDefinition, HostToolFuture, HostTools,
            tools::{AskUser, CurrentTime},
        },
    };
    use domain::mcp::{McpTransport, NamedMcpServer};
    use serde_json::json;
    use std::{fs, path::Path, sync::Arc};

    #[test]
    fn thread_requires_approvals_and_has_the_host_tools() {
        let mut workspace = workspace(Path::new("home"));
        workspace.agent.spec.system_prompt = Some("Be brief.".into());
        workspace.mcp_servers = vec![
            NamedMcpServer::new(
                "my files",
                McpTransport::Stdio {
                    command: "node".into(),
                    args: vec!["files.js".into()],
                    env: [("A".to_owned(), "b".to_owned())].into(),
                },
            ),
            NamedMcpServer::new(
                "web",
                McpTransport::Http {
                    url: "http://127.0.0.1:1/mcp".into(),
                    headers: [("X-Key".to_owned(), "k".to_owned())].into(),
                },
            ),
            NamedMcpServer::new("old", McpTransport::Sse { url: "http://127.0.0.1:1/sse".into(), headers: [].into() }),
        ];
        let params = start(&workspace);
        assert_eq!(params["approvalPolicy"], "untrusted");
        assert_eq!(params["sandbox"], "workspace-write");
        assert_eq!(params["developerInstructions"], "Be brief.");
        let servers = &params["config"]["mcp_servers"];
        assert_eq!(
            servers["my_files"],
            json!({"command": "node", "args": ["files.js"], "env": {"A": "b"}, "default_tools_approval_mode": "prompt"})
        );
        assert_eq!(servers["web"]["http_headers"], json!({"X-Key": "k"}));
        assert_eq!(servers["web"]["default_tools_approval_mode"], "prompt");
        assert!(servers.get("old").is_none(), "SSE is not supported");
        let tools: Vec<&str> =
            params["dynamicTools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(tools, ["current_time", "ask_user"]);
        let again = resume(&workspace, "t");
        assert_eq!((&again["threadId"], &again["excludeTurns"]), (&json!("t"), &json!(true)));
        assert_eq!(again["approvalPolicy"], "untrusted", "a resumed thread does not keep it");
        assert!(again.get("dynamicTools").is_none());
    }

    #[test]
    fn workspace_and_its_repository_are_untrusted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut workspace = workspace(&root);
        workspace.folder = root.join("repository/below");
        fs::create_dir_all(&workspace.folder).unwrap();
        fs::create_dir_all(root.join("repository/.git")).unwrap();
        let untrusted = json!({"trust_level": "untrusted"});
        for params in [start(&workspace), resume(&workspace, "t")] {
            let projects = &params["config"]["projects"];
            for path in [workspace.folder.clone(), root.join("repository")] {
                assert_eq!(projects[path.to_str().unwrap()], untrusted, "{path:?} in {projects}");
            }
        }
        fs::create_dir_all(root.join("repository/.git/worktrees/tree")).unwrap();
        workspace.folder = root.join("tree");
        fs::create_dir(&workspace.folder).unwrap();
        fs::write(
            workspace.folder.join(".git"),
            format!("gitdir: {}/repository/.git/worktrees/tree\n", root.display()),
        )
        .unwrap();
        let projects = &start(&workspace)["config"]["projects"];
        assert_eq!(projects[root.join("repository").to_str().unwrap()], untrusted, "{projects}");
    }

    #[test]
    fn workspace_instructions_are_passed_and_limited() {
        let folder = tempfile::tempdir().unwrap();
        let mut workspace = workspace(folder.path());
        workspace.folder = folder.path().to_owned();
        assert!(start(&workspace).get("developerInstructions").is_none());
        let before = session_id("t", &workspace);
        fs::write(folder.path().join("AGENTS.md"), format!("Speak softly.{}END", " ".repeat(40_000))).unwrap();
        workspace.agent.spec.system_prompt = Some("Be brief.".into());
        let text = start(&workspace)["developerInstructions"].as_str().unwrap().to_owned();
        assert!(text.starts_with("Be brief.") && text.contains("Speak softly.") && !text.contains("END"), "{text}");
        workspace.agent.spec.system_prompt = None;
        assert_eq!(session_id("t", &workspace), before, "editing the file keeps the session");
    }

    #[test]
    fn model_is_sent_with_each_turn_if_set() {
        let mut workspace = workspace(Path::new("home"));
        assert!(turn(&workspace, "t", "hi").get("model").is_none() && start(&workspace).get("model").is_none());
        workspace.agent.spec.model = Some("m".into());
        assert_eq!((&turn(&workspace, "t", "hi")["model"], &start(&workspace)["model"]), (&json!("m"), &json!("m")));
    }

    /// The value of an earlier version: a conversation goes on after an update.
    #[test]
    fn fingerprint_without_further_host_tools_is_that_of_earlier_versions() {
        let mut workspace = workspace(Path::new("home"));
        assert_eq!(session_id("t", &workspace), "t:2d4c5f4c6b552c88");
        let tools = [Arc::new(CurrentTime) as Arc<dyn HostTool>, Arc::new(AskUser), Arc::new(Another)];
        workspace.host_tools = HostTools::new(tools).unwrap();
        assert!(!thread_of("t:2d4c5f4c6b552c88", &workspace).1, "an older thread does not have the tool");
        assert!(thread_of(&session_id("t", &workspace), &workspace).1);
        assert_eq!(start(&workspace)["dynamicTools"][2]["name"], "another");
    }

    struct Another;

    impl HostTool for Another {
        fn definition(&self) -> HostToolDefinition {
            HostToolDefinition::new("another", "A test.", HostToolDefinition::no_arguments())
        }

        fn call(&self, _: HostCall) -> HostToolFuture<'_> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn session_id_has_a_fingerprint_of_its_settings() {
        let mut workspace = workspace(Path::new("home"));
        let id = session_id("01a1-77", &workspace);
        assert_eq!(thread_of(&id, &workspace), ("01a1-77", true));
        assert_eq!(thread_of("01a1-77", &workspace), ("01a1-77", true), "a session without a fingerprint is accepted");
        workspace.agent.spec.model = Some("another".into());
        assert!(thread_of(&id, &workspace).1, "the model is sent with each turn");
        workspace.agent.spec.system_prompt = Some("Be loud.".into());
        assert!(!thread_of(&id, &workspace).1);
    }
}

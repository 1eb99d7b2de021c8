//! What a thread is started with, and how it is found again.

use crate::{Place, host_tools};
use domain::mcp::{Server, Transport};
use serde_json::{Map, Value, json};
use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

/// Commands and patches ask; who decides is the agent's policy, in the engine.
const APPROVAL: &str = "untrusted";
const SANDBOX: &str = "workspace-write";

/// What `thread/start` and `thread/resume` have in common; a resumed thread forgets it otherwise.
fn common(place: &Place) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("cwd".into(), json!(place.workplace.to_string_lossy()));
    params.insert("approvalPolicy".into(), json!(APPROVAL));
    params.insert("approvalsReviewer".into(), json!("user"));
    params.insert("sandbox".into(), json!(SANDBOX));
    if let Some(model) = &place.agent.spec.model {
        params.insert("model".into(), json!(model));
    }
    if let Some(prompt) = &place.agent.spec.system_prompt {
        params.insert("developerInstructions".into(), json!(prompt));
    }
    let mut config = Map::new();
    if !place.mcp_servers.is_empty() {
        let servers: Map<_, _> =
            place.mcp_servers.iter().filter_map(|server| Some((plain(&server.name), mcp(server)?))).collect();
        config.insert("mcp_servers".into(), Value::Object(servers));
    }
    config.insert("projects".into(), distrusted(&place.workplace));
    params.insert("config".into(), Value::Object(config));
    params
}

/// A workplace that may be written to is trusted by itself, and then its `.codex` starts MCP servers and allows commands:
/// whoever writes a file there would decide that. Codex looks for trust under the folder and under the repository that it
/// is part of, by the path it was given and by the resolved one.
fn distrusted(workplace: &Path) -> Value {
    let mut projects = Map::new();
    for path in [Some(workplace.to_owned()), fs::canonicalize(workplace).ok()].into_iter().flatten() {
        let roots = path.ancestors().filter(|folder| folder.join(".git").symlink_metadata().is_ok());
        for folder in roots.map(Path::to_owned).chain(repository_of_worktree(&path)).chain([path.clone()]) {
            projects.insert(folder.to_string_lossy().into_owned(), json!({"trust_level": "untrusted"}));
        }
    }
    Value::Object(projects)
}

/// The repository that a worktree belongs to: there `.git` is a file that says where the rest is.
fn repository_of_worktree(path: &Path) -> Option<PathBuf> {
    let file = path.ancestors().map(|folder| folder.join(".git")).find(|git| git.is_file())?;
    let text = read_start(&file, 4096)?;
    let git = file.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim());
    let git = fs::canonicalize(git).ok()?;
    git.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == ".git"))?.parent().map(Path::to_owned)
}

/// As much of the workplace's instructions as Codex itself would read.
const INSTRUCTIONS: u64 = 32 * 1024;

fn read_start(file: &Path, limit: u64) -> Option<String> {
    // Neither a pipe, which would be waited for, nor a device.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    fs::File::open(file).ok()?.take(limit).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Codex does not read the instructions of a workplace that it does not trust, so they are told. A thread keeps those that
/// it was started with; they are not part of its mark, since agents edit that file themselves.
fn instructions(place: &Place) -> Option<String> {
    let own = place.agent.spec.system_prompt.clone().filter(|text| !text.trim().is_empty());
    let file = read_start(&place.workplace.join("AGENTS.md"), INSTRUCTIONS).filter(|text| !text.trim().is_empty());
    let file =
        file.map(|text| format!("<workspace_instructions file=\"AGENTS.md\">\n{text}\n</workspace_instructions>"));
    match (own, file) {
        (Some(own), Some(file)) => Some(format!("{own}\n\n{file}")),
        (own, file) => own.or(file),
    }
}

/// Blocking; reads a small file.
pub fn start(place: &Place) -> Value {
    let mut params = common(place);
    if let Some(text) = instructions(place) {
        params.insert("developerInstructions".into(), json!(text));
    }
    let tool = |tool: &host_tools::Definition| json!({"type": "function", "name": tool.name, "description": tool.description, "inputSchema": (tool.schema)()});
    params.insert("dynamicTools".into(), host_tools::TOOLS.iter().map(tool).collect());
    Value::Object(params)
}

/// The thread keeps the tools and instructions it was started with.
pub fn resume(place: &Place, thread: &str) -> Value {
    let mut params = common(place);
    params.insert("threadId".into(), json!(thread));
    params.insert("excludeTurns".into(), json!(true));
    Value::Object(params)
}

/// Without a summary of the reasoning there is no thinking to be seen.
pub fn turn(place: &Place, thread: &str, prompt: &str) -> Value {
    let mut params = json!({"threadId": thread, "input": input(prompt), "summary": "auto"});
    if let (Some(model), Value::Object(params)) = (&place.agent.spec.model, &mut params) {
        params.insert("model".into(), json!(model));
    }
    params
}

pub fn input(text: &str) -> Value {
    json!([{"type": "text", "text": text, "text_elements": []}])
}

/// Codex refuses a whole thread for a server whose name has other characters.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Codex runs MCP tools unasked unless it is told to ask. `None`: it cannot use this one.
fn mcp(server: &Server) -> Option<Value> {
    const ASK: &str = "prompt";
    let mut entry = match &server.config.transport {
        Transport::Stdio { command, args, env } => {
            json!({"command": command, "args": args, "env": env, "default_tools_approval_mode": ASK})
        }
        Transport::Http { url, headers } => {
            json!({"url": url, "http_headers": headers, "default_tools_approval_mode": ASK})
        }
        Transport::Sse { .. } => {
            tracing::warn!(server = server.name, "codex takes no MCP server over SSE; it is left out");
            return None;
        }
    };
    if let Some(folder) = &server.config.folder {
        entry["cwd"] = json!(folder);
    }
    Some(entry)
}

/// A thread keeps the instructions it was started with, whatever it is resumed with. The id we hand out therefore names
/// both: the thread, and a mark of what it was started with; a thread with another mark is of no use any more.
pub fn session(thread: &str, place: &Place) -> String {
    format!("{thread}:{:016x}", mark(place))
}

/// The thread of a session, and whether it was started with what the agent has now.
pub fn thread_of<'a>(session: &'a str, place: &Place) -> (&'a str, bool) {
    match session.split_once(':') {
        Some((thread, marked)) => (thread, marked == format!("{:016x}", mark(place))),
        None => (session, true),
    }
}

/// FNV-1a: the same on every machine and in every version of ours, which is all that is asked of it.
fn mark(place: &Place) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let servers: Vec<Value> =
        place.mcp_servers.iter().filter_map(|server| Some(json!([server.name, mcp(server)?]))).collect();
    for byte in json!([place.agent.spec.system_prompt, servers]).to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::{resume, session, start, thread_of, turn};
    use crate::codex::tests::place;
    use domain::mcp::{Server, Transport};
    use serde_json::json;
    use std::{fs, path::Path};

    #[test]
    fn a_thread_asks_before_it_acts_and_has_our_tools() {
        let mut place = place(Path::new("home"));
        place.agent.spec.system_prompt = Some("Be brief.".into());
        place.mcp_servers = vec![
            Server::new(
                "my files",
                Transport::Stdio {
                    command: "node".into(),
                    args: vec!["files.js".into()],
                    env: [("A".to_owned(), "b".to_owned())].into(),
                },
            ),
            Server::new(
                "web",
                Transport::Http {
                    url: "http://127.0.0.1:1/mcp".into(),
                    headers: [("X-Key".to_owned(), "k".to_owned())].into(),
                },
            ),
            Server::new("old", Transport::Sse { url: "http://127.0.0.1:1/sse".into(), headers: [].into() }),
        ];
        let params = start(&place);
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
        assert!(servers.get("old").is_none(), "it takes none over SSE");
        let tools: Vec<&str> =
            params["dynamicTools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(tools, ["current_time", "ask_user"]);
        let again = resume(&place, "t");
        assert_eq!((&again["threadId"], &again["excludeTurns"]), (&json!("t"), &json!(true)));
        assert_eq!(again["approvalPolicy"], "untrusted", "it forgets it otherwise");
        assert!(again.get("dynamicTools").is_none());
    }

    #[test]
    fn a_workplace_and_the_repository_around_it_are_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let mut place = place(&root);
        place.workplace = root.join("repository/below");
        fs::create_dir_all(&place.workplace).unwrap();
        fs::create_dir_all(root.join("repository/.git")).unwrap();
        let untrusted = json!({"trust_level": "untrusted"});
        for params in [start(&place), resume(&place, "t")] {
            let projects = &params["config"]["projects"];
            for path in [place.workplace.clone(), root.join("repository")] {
                assert_eq!(projects[path.to_str().unwrap()], untrusted, "{path:?} in {projects}");
            }
        }
        fs::create_dir_all(root.join("repository/.git/worktrees/tree")).unwrap();
        place.workplace = root.join("tree");
        fs::create_dir(&place.workplace).unwrap();
        fs::write(place.workplace.join(".git"), format!("gitdir: {}/repository/.git/worktrees/tree\n", root.display()))
            .unwrap();
        let projects = &start(&place)["config"]["projects"];
        assert_eq!(projects[root.join("repository").to_str().unwrap()], untrusted, "{projects}");
    }

    #[test]
    fn the_instructions_of_the_workplace_are_told_and_limited() {
        let folder = tempfile::tempdir().unwrap();
        let mut place = place(folder.path());
        place.workplace = folder.path().to_owned();
        assert!(start(&place).get("developerInstructions").is_none());
        let before = session("t", &place);
        fs::write(folder.path().join("AGENTS.md"), format!("Speak softly.{}END", " ".repeat(40_000))).unwrap();
        place.agent.spec.system_prompt = Some("Be brief.".into());
        let told = start(&place)["developerInstructions"].as_str().unwrap().to_owned();
        assert!(told.starts_with("Be brief.") && told.contains("Speak softly.") && !told.contains("END"), "{told}");
        place.agent.spec.system_prompt = None;
        assert_eq!(session("t", &place), before, "an agent may edit that file and go on");
    }

    #[test]
    fn the_model_is_named_each_time_and_only_if_there_is_one() {
        let mut place = place(Path::new("home"));
        assert!(turn(&place, "t", "hi").get("model").is_none() && start(&place).get("model").is_none());
        place.agent.spec.model = Some("m".into());
        assert_eq!((&turn(&place, "t", "hi")["model"], &start(&place)["model"]), (&json!("m"), &json!("m")));
    }

    #[test]
    fn a_session_knows_what_it_was_started_with() {
        let mut place = place(Path::new("home"));
        let id = session("01a1-77", &place);
        assert_eq!(thread_of(&id, &place), ("01a1-77", true));
        assert_eq!(thread_of("01a1-77", &place), ("01a1-77", true), "without a mark it is taken as it is");
        place.agent.spec.model = Some("another".into());
        assert!(thread_of(&id, &place).1, "a model is named with each turn");
        place.agent.spec.system_prompt = Some("Be loud.".into());
        assert!(!thread_of(&id, &place).1);
    }
}

//! A host tool of your own: `workspace_size` tells an agent how much is in its working directory.
//!
//! `cargo run --example host_tool` starts an engine with this tool, on a new database in a temporary folder, lets the
//! scripted agent call it, and prints the answer. A server is started in the same way; see `crates/app/src/serve.rs`.

use anyhow::Context as _;
use domain::{actor::Actor, agent::AgentSpec, limits::Limits, name::Name, room::RoomPolicy};
use engine::{
    Engine, EngineConfig, Folders, McpVariables, Worker,
    commands::{NewPost, NewRoom},
};
use providers::{
    Provider, ProviderRegistry,
    host_tools::{HostCall, HostTool, HostToolDefinition, HostToolFuture, HostToolOutcome, HostTools, tools},
    scripted::ScriptedProvider,
};
use serde_json::json;
use std::{collections::BTreeMap, fs, io, path::Path, sync::Arc, time::Duration};
use store::{Backend, Store, StoreAccess, StoreConfig};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workbench::{
    mcp::{McpClientSettings, McpManager},
    process::Supervisor,
};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Counts the files in the agent's working directory.
struct WorkspaceSize;

impl HostTool for WorkspaceSize {
    fn definition(&self) -> HostToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {"extension": {"type": "string", "description": "Count only files with this extension."}},
            "additionalProperties": false
        });
        let description = "Returns how many files are in your working directory, and their size in bytes.";
        HostToolDefinition { is_read_only: true, ..HostToolDefinition::new("workspace_size", description, schema) }
    }

    fn call(&self, call: HostCall) -> HostToolFuture<'_> {
        Box::pin(async move {
            call.report("Counting files…").await;
            let folder = call.agent.workspace.folder.clone();
            let (extension, cancel) = (call.text("extension").map(str::to_owned), call.cancel.clone());
            // File access blocks, so it runs on a thread of its own; that thread looks at `cancel` itself.
            let counted = tokio::task::spawn_blocking(move || count(&folder, extension.as_deref(), &cancel));
            match counted.await {
                Ok(Ok((files, bytes))) => HostToolOutcome::success(format!("{files} files, {bytes} bytes")),
                Ok(Err(error)) => HostToolOutcome::error(format!("the working directory cannot be read: {error}")),
                Err(error) => HostToolOutcome::error(format!("the tool crashed: {error}")),
            }
        })
    }
}

fn count(folder: &Path, extension: Option<&str>, cancel: &CancellationToken) -> io::Result<(u64, u64)> {
    let (mut files, mut bytes, mut folders) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            if cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            // Does not follow links, so it stays in the folder.
            let (entry, path) = entry.map(|entry| (entry.metadata(), entry.path()))?;
            let found = entry?;
            let is_wanted = extension.is_none_or(|wanted| path.extension().is_some_and(|is| is == wanted));
            if found.is_dir() {
                folders.push(path);
            } else if found.is_file() && is_wanted {
                (files, bytes) = (files + 1, bytes + found.len());
            }
        }
    }
    Ok((files, bytes))
}

/// Starts an engine with the tools of Greenroom and this one, posts the message, and returns the agent's answer.
async fn answer_to(message: &str, data: &Path) -> anyhow::Result<String> {
    let mut host_tools = tools::all();
    host_tools.push(Arc::new(WorkspaceSize));
    let config = EngineConfig {
        concurrency: 1,
        concurrency_per_workspace: 1,
        unfinished_runs_per_workspace: 100,
        erase_after: Duration::from_secs(7 * 24 * 3600),
        workspace_limits: engine::WorkspaceLimits { rooms: 100, stored_bytes: 1 << 30 },
        lease: Duration::from_secs(15),
        limits: Limits::default(),
        stop_grace: Duration::from_secs(10),
        folders: Folders { data: data.to_owned(), shared_workspace: Some(data.join("workspace")) },
        mcp_servers: BTreeMap::new(),
        mcp_variables: McpVariables::default(),
        host_tools: HostTools::new(host_tools)?,
        projects: engine::ProjectServices::without_sandboxes(),
    };
    let database = StoreConfig {
        backend: Backend::Sqlite { file: data.join("greenroom.db") },
        read_connections: 1,
        tail_bytes: 1 << 20,
        secrets_file: data.join("secrets.key"),
        planted_bug: None,
    };
    let (mut tasks, store_cancel, worker_cancel) = (JoinSet::new(), CancellationToken::new(), CancellationToken::new());
    let store = Store::open(&database, StoreAccess::Server, &mut tasks, &store_cancel).await?;
    let providers = ProviderRegistry::new([Arc::new(ScriptedProvider) as Arc<dyn Provider>]);
    let mcp = McpManager::new(Supervisor::new("greenroom".into()), McpClientSettings::new(data.to_owned()));
    let engine = Engine::new(store.clone(), providers, mcp, config);
    let mut worker = JoinSet::new();
    worker.spawn(Worker::new(engine.clone()).run(worker_cancel.clone()));

    let me = Actor::local();
    let agent = engine.create_agent(&me, AgentSpec::new(Name::parse("counter")?, "scripted"), None).await?;
    let room = NewRoom {
        name: Name::parse("A room")?,
        agents: vec![agent.id],
        project_id: None,
        policy: RoomPolicy::for_new_room(),
    };
    let room = engine.create_room(&me, room, None).await?.id;
    let post = NewPost::new(message);
    let run = engine.post_message(&me, room, post, None).await?.runs.first().context("the agent answers")?.id;
    engine.wait_for_end(&me, run, ANSWER_TIMEOUT).await?;
    let history = store.history(&me.workspace, room, 0, None, 10).await?;
    let answer = history.messages.into_iter().next_back().context("the answer is in the room")?;

    worker_cancel.cancel();
    while worker.join_next().await.is_some() {}
    engine.close().await;
    store_cancel.cancel();
    while tasks.join_next().await.is_some() {}
    store.close().await;
    Ok(answer.text)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let data = tempfile::tempdir()?;
    fs::create_dir(data.path().join("workspace"))?;
    fs::write(data.path().join("workspace/notes.md"), "# Notes\n")?;
    println!("{}", answer_to("!call workspace_size", data.path()).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::answer_to;
    use std::fs;

    #[tokio::test]
    async fn an_agent_calls_the_tool() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir_all(data.path().join("workspace/more")).unwrap();
        fs::write(data.path().join("workspace/notes.md"), "12345678").unwrap();
        fs::write(data.path().join("workspace/more/a.txt"), "abc").unwrap();
        assert_eq!(answer_to("!call workspace_size", data.path()).await.unwrap(), "2 files, 11 bytes");
    }

    #[tokio::test]
    async fn the_tool_gets_its_arguments() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("workspace")).unwrap();
        fs::write(data.path().join("workspace/notes.md"), "12345678").unwrap();
        fs::write(data.path().join("workspace/a.txt"), "abc").unwrap();
        let message = "!call workspace_size {\"extension\":\"txt\"}";
        assert_eq!(answer_to(message, data.path()).await.unwrap(), "1 files, 3 bytes");
    }
}

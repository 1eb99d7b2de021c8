//! `greenroom agents`: lists the agents, and moves them between the server and a folder.

use super::{
    Exit, ServerArgs,
    client::{
        ApiClient,
        responses::{AgentFilesResponse, AgentImportResponse, AgentListResponse},
    },
    find::short_id,
};
use crate::terminal::table;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::agent_files::AGENT_FILES;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// How often `watch` looks at the folder.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Every agent of the folder is checked and stored.
const IMPORT_DEADLINE: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentsArgs {
    #[command(subcommand)]
    command: Option<AgentsCommand>,
    /// Show at most so many.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    /// Print them as JSON, one object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Subcommand, Debug)]
enum AgentsCommand {
    /// Write all agents into a folder: agent.toml, prompt.md and memory.md for each.
    Export(FolderArgs),
    /// Create or update the agents of a folder.
    Import(FolderArgs),
    /// Import a folder, and again whenever a file in it changes, until Ctrl-C.
    Watch(FolderArgs),
}

#[derive(Args, Debug)]
struct FolderArgs {
    /// A folder with a folder for each agent.
    folder: PathBuf,
    #[command(flatten)]
    connection: ServerArgs,
}

pub async fn run(arguments: &AgentsArgs) -> anyhow::Result<Exit> {
    match &arguments.command {
        None => list(arguments).await,
        Some(AgentsCommand::Export(export)) => write_folder(export).await,
        Some(AgentsCommand::Import(import)) => {
            let client = ApiClient::new(&import.connection)?;
            let files = read_folder(&import.folder)?;
            send(&client, &files).await
        }
        Some(AgentsCommand::Watch(watch)) => watch_folder(watch).await,
    }
}

async fn list(arguments: &AgentsArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&arguments.connection)?;
    if arguments.json {
        let list: Value = client.get("/api/agents", &[]).await?;
        let agents: Vec<Value> =
            list["agents"].as_array().into_iter().flatten().take(arguments.limit).cloned().collect();
        table::print_json(&agents.into())?;
        return Ok(Exit::Success);
    }
    let AgentListResponse { agents } = client.get("/api/agents", &[]).await?;
    let rows: Vec<Vec<String>> = agents
        .into_iter()
        .take(arguments.limit)
        .map(|agent| vec![short_id(agent.id.0), agent.name, agent.provider, agent.model.unwrap_or_default()])
        .collect();
    table::print_standard(&["id", "name", "provider", "model"], &rows)?;
    Ok(Exit::Success)
}

async fn write_folder(export: &FolderArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&export.connection)?;
    let AgentFilesResponse { files } = client.get("/api/agents/files", &[]).await?;
    for (path, text) in &files {
        // A server chooses the names; they must not lead out of the folder.
        let Some((folder, name)) = path.split_once('/').filter(|(folder, name)| is_plain(folder) && is_plain(name))
        else {
            anyhow::bail!("the server sent a file with the unexpected name {path:?}");
        };
        let folder = export.folder.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let file = folder.join(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    writeln!(io::stdout().lock(), "{} files are in {}", files.len(), export.folder.display())?;
    Ok(Exit::Success)
}

/// A name without separators that does not stand for another folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// The files of all agents in a folder, by `FOLDER/FILE`.
fn read_folder(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let Some(name) = entry.file_name().to_str().filter(|name| is_plain(name)).map(ToOwned::to_owned) else {
            continue;
        };
        for file in AGENT_FILES {
            let path = entry.path().join(file);
            match fs::read_to_string(&path) {
                Ok(text) => drop(files.insert(format!("{name}/{file}"), text)),
                Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            }
        }
    }
    Ok(files)
}

async fn send(client: &ApiClient, files: &BTreeMap<String, String>) -> anyhow::Result<Exit> {
    let AgentImportResponse { agents } =
        client.post("/api/agents/files", &json!({"files": files}), IMPORT_DEADLINE).await?;
    let mut out = io::stdout().lock();
    let mut exit = Exit::Success;
    for agent in agents {
        if agent.outcome == "refused" {
            exit = Exit::Failed;
        }
        let problem = agent.problem.map_or_else(String::new, |problem| format!(": {problem}"));
        writeln!(out, "{} {}, {} new notes{problem}", agent.folder, agent.outcome, agent.new_notes)?;
    }
    Ok(exit)
}

async fn watch_folder(watch: &FolderArgs) -> anyhow::Result<Exit> {
    let client = ApiClient::new(&watch.connection)?;
    let mut sent = BTreeMap::new();
    let mut interval = tokio::time::interval(WATCH_INTERVAL);
    loop {
        tokio::select! {
            stopped = tokio::signal::ctrl_c() => {
                stopped?;
                return Ok(Exit::Success);
            }
            _ = interval.tick() => {}
        }
        let files = read_folder(&watch.folder)?;
        let changed = changed_folders(&sent, &files);
        if !changed.is_empty() {
            send(&client, &changed).await?;
        }
        sent = files;
    }
}

/// The files of the folders in which a file is new or changed.
fn changed_folders(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let folder_of = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let changed: Vec<String> =
        now.iter().filter(|(path, text)| before.get(*path) != Some(*text)).map(|(path, _)| folder_of(path)).collect();
    let gone = before.keys().filter(|path| !now.contains_key(*path)).map(|path| folder_of(path));
    let changed: Vec<String> = changed.into_iter().chain(gone).collect();
    now.iter()
        .filter(|(path, _)| changed.contains(&folder_of(path)))
        .map(|(path, text)| (path.clone(), text.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::changed_folders;
    use std::collections::BTreeMap;

    #[test]
    fn only_the_folders_with_a_change_are_sent_again() {
        let files = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let before = files(&[("a/agent.toml", "1"), ("a/prompt.md", "p"), ("b/agent.toml", "1")]);
        assert!(changed_folders(&before, &before).is_empty());
        let prompt = files(&[("a/agent.toml", "1"), ("a/prompt.md", "q"), ("b/agent.toml", "1")]);
        assert_eq!(changed_folders(&before, &prompt), files(&[("a/agent.toml", "1"), ("a/prompt.md", "q")]));
        let removed = files(&[("a/agent.toml", "1"), ("b/agent.toml", "1")]);
        assert_eq!(changed_folders(&before, &removed), files(&[("a/agent.toml", "1")]));
        assert_eq!(changed_folders(&BTreeMap::new(), &before), before);
    }
}

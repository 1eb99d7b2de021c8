//! The servers that are measured: Greenroom, and small ones on the official SDKs.

use super::client::Tool;
use crate::{Bench, stack::Greenroom};
use anyhow::Context as _;
use serde_json::json;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use testkit::programs;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

const START: Duration = Duration::from_secs(60);

/// Greenroom's answer is read from its database; theirs is what they were sent. So theirs is the lighter work.
const LIST_AGENTS: Tool = Tool { name: "list_agents", arguments: || json!({}), answered_with: "scripted" };
const ECHO: Tool =
    Tool { name: "echo", arguments: || json!({"text": "what was said"}), answered_with: "what was said" };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reference {
    TypescriptV1,
    TypescriptV2,
    Python,
}

enum Process {
    Greenroom(Greenroom),
    Reference(Child),
}

/// One that runs. Dropping it kills it.
pub struct Contender {
    process: Process,
    pub address: SocketAddr,
    pub tool: Tool,
}

impl Contender {
    pub async fn greenroom(bench: &Bench) -> anyhow::Result<Self> {
        Self::greenroom_with(bench, &[]).await
    }

    pub async fn greenroom_with(bench: &Bench, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let launch = Greenroom::launch(&bench.binary, &bench.fresh("mcp"));
        let launch = environment.iter().fold(launch, |launch, (name, value)| launch.with(name, *value));
        let greenroom = Greenroom::started(&launch).await?;
        let address = greenroom.address;
        Ok(Self { process: Process::Greenroom(greenroom), address, tool: LIST_AGENTS })
    }

    pub async fn reference(reference: Reference, bench: &Bench) -> anyhow::Result<Self> {
        let servers = programs::McpServers::found();
        let folder = bench.folder.join("reference");
        let script = reference.script(&folder, &servers.modules)?;
        let program = match reference {
            Reference::TypescriptV1 | Reference::TypescriptV2 => &servers.node,
            Reference::Python => &servers.python,
        };
        let mut child = Command::new(program)
            .arg(script)
            .env("NODE_ENV", "production")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let line = timeout(START, lines.next_line()).await.context("it does not start")??;
        let line = line.with_context(|| format!("{reference:?} ended at once"))?;
        let address = line.strip_prefix("listening on ").context("it does not say where it listens")?.parse()?;
        Ok(Self { process: Process::Reference(child), address, tool: ECHO })
    }

    pub fn pid(&self) -> anyhow::Result<u32> {
        match &self.process {
            Process::Greenroom(it) => Ok(it.server.pid()),
            Process::Reference(it) => it.id().context("it ended"),
        }
    }
}

impl Reference {
    /// Writes the program into `folder`, where it finds the packages it names.
    fn script(self, folder: &Path, modules: &Path) -> anyhow::Result<PathBuf> {
        let (name, text) = match self {
            Self::TypescriptV1 => ("typescript_v1.mjs", include_str!("../../reference/typescript_v1.mjs")),
            Self::TypescriptV2 => ("typescript_v2.mjs", include_str!("../../reference/typescript_v2.mjs")),
            Self::Python => ("python.py", include_str!("../../reference/python.py")),
        };
        if !folder.exists() {
            std::fs::create_dir_all(folder)?;
            std::os::unix::fs::symlink(modules, folder.join("node_modules"))?;
        }
        let script = folder.join(name);
        std::fs::write(&script, text)?;
        Ok(script)
    }
}

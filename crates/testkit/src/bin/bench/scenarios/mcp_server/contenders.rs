//! The measured servers: Greenroom, and small servers built on the official SDKs.

use super::client::BenchTool;
use crate::{Bench, stack::GreenroomStack};
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

/// Greenroom reads its answer from the database; the reference servers only echo, which is less work.
const LIST_AGENTS: BenchTool = BenchTool { name: "list_agents", arguments: || json!({}), expected_text: "scripted" };
const ECHO: BenchTool =
    BenchTool { name: "echo", arguments: || json!({"text": "what was said"}), expected_text: "what was said" };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferenceServer {
    TypescriptV1,
    TypescriptV2,
    Python,
}

enum ContenderProcess {
    Greenroom(GreenroomStack),
    Reference(Child),
}

/// A running server. Dropping it kills the process.
pub struct Contender {
    process: ContenderProcess,
    pub address: SocketAddr,
    pub tool: BenchTool,
}

impl Contender {
    pub async fn greenroom(bench: &Bench) -> anyhow::Result<Self> {
        Self::greenroom_with(bench, &[]).await
    }

    pub async fn greenroom_with(bench: &Bench, environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        let launch = GreenroomStack::launch(&bench.binary, &bench.new_folder("mcp"));
        // All sessions are of one user.
        let launch = launch.with("GREENROOM_MCP_SERVER__MAX_SESSIONS_PER_USER", "1000000");
        let launch = environment.iter().fold(launch, |launch, (name, value)| launch.with(name, *value));
        let greenroom = GreenroomStack::start_with(&launch).await?;
        let address = greenroom.address;
        Ok(Self { process: ContenderProcess::Greenroom(greenroom), address, tool: LIST_AGENTS })
    }

    pub async fn reference(reference: ReferenceServer, bench: &Bench) -> anyhow::Result<Self> {
        let servers = programs::McpPrograms::from_env();
        let folder = bench.folder.join("reference");
        let script = reference.script(&folder, &servers.modules)?;
        let program = match reference {
            ReferenceServer::TypescriptV1 | ReferenceServer::TypescriptV2 => &servers.node,
            ReferenceServer::Python => &servers.python,
        };
        let mut child = Command::new(program)
            .arg(script)
            .env("NODE_ENV", "production")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let line = timeout(START, lines.next_line()).await.context("the reference server did not start in time")??;
        let line = line.with_context(|| format!("{reference:?} ended at once"))?;
        let address =
            line.strip_prefix("listening on ").context("the reference server did not print its address")?.parse()?;
        Ok(Self { process: ContenderProcess::Reference(child), address, tool: ECHO })
    }

    pub fn pid(&self) -> anyhow::Result<u32> {
        match &self.process {
            ContenderProcess::Greenroom(it) => Ok(it.server.pid()),
            ContenderProcess::Reference(it) => it.id().context("the reference server ended"),
        }
    }
}

impl ReferenceServer {
    /// Writes the program into `folder`, next to the packages that it imports.
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

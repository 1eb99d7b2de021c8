//! A manager with room to breathe: real servers take seconds to start on a busy machine.

use domain::mcp::{Server, Transport};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};
use testkit::programs::McpServers;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use workbench::{
    mcp::{CallOptions, CallResult, Manager, Settings},
    process::Supervisor,
};

pub const DEADLINE: Duration = Duration::from_secs(120);

/// Real servers are heavy, and the suite's scenarios have clocks of their own: one after the other.
pub static TURN: Mutex<()> = Mutex::const_new(());

pub struct Scene {
    _turn: MutexGuard<'static, ()>,
    pub manager: Manager,
    supervisor: Supervisor,
    pub folder: tempfile::TempDir,
    pub servers: McpServers,
}

impl Scene {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(folder.path().to_owned());
        settings.environment = BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), folder.path().into()),
        ]);
        settings.startup = DEADLINE;
        change(&mut settings);
        let supervisor = Supervisor::new(env!("CARGO_BIN_EXE_fake-mcp").into());
        let manager = Manager::new(supervisor.clone(), settings);
        Self { _turn: TURN.lock().await, manager, supervisor, folder, servers: McpServers::found() }
    }

    pub async fn call(&self, server: &Server, tool: &str, arguments: Value) -> CallResult {
        self.call_with(server, tool, arguments, CallOptions::default()).await
    }

    pub async fn call_with(&self, server: &Server, tool: &str, arguments: Value, options: CallOptions) -> CallResult {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let called = timeout(DEADLINE, self.manager.call(server, tool, arguments, options)).await.expect("in time");
        called.unwrap_or_else(|failure| panic!("{tool}: {failure}"))
    }

    pub async fn close(self) {
        timeout(DEADLINE, self.manager.close()).await.expect("it closes");
        timeout(DEADLINE, self.supervisor.all_gone()).await.expect("all are gone");
    }
}

pub fn stdio(program: &Path, args: &[&str]) -> Server {
    let command = program.to_str().unwrap().to_owned();
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Server::new("real", Transport::Stdio { command, args, env: BTreeMap::new() })
}

/// A server that is reached over HTTP, for as long as this lives.
pub struct Listening {
    pub port: u16,
    _child: Child,
    /// Kept open: a server that cannot write what it does ends.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Listening {
    /// `how` is one of server-everything's transports.
    pub async fn start(servers: &McpServers, how: &str) -> Self {
        let preload = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/loopback.cjs");
        let mut command = Command::new(&servers.node);
        command.arg("--require").arg(preload).arg(&servers.everything).arg(how);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = timeout(DEADLINE, async {
            loop {
                let line = lines.next_line().await.unwrap().expect("it listens before it ends");
                if let Some(port) = line.strip_prefix("port ") {
                    return port.parse().unwrap();
                }
            }
        });
        let port = port.await.expect("it listens");
        Self { port, _child: child, _output: lines }
    }
}

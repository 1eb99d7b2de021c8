//! A manager with long timeouts: real servers take seconds to start on a busy machine.

use domain::mcp::{McpTransport, NamedMcpServer};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};
use testkit::programs::McpPrograms;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::{Mutex, MutexGuard},
    time::timeout,
};
use workbench::{
    mcp::{CallOptions, McpCallResult, McpClientSettings, McpManager},
    process::Supervisor,
};

pub const DEADLINE: Duration = Duration::from_secs(120);

/// Runs the tests one at a time: real servers are heavy, and the suite's scenarios have their own timeouts.
pub static SERIAL: Mutex<()> = Mutex::const_new(());

pub struct McpFixture {
    _serial: MutexGuard<'static, ()>,
    pub manager: McpManager,
    supervisor: Supervisor,
    pub folder: tempfile::TempDir,
    pub servers: McpPrograms,
}

impl McpFixture {
    pub async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub async fn with(change: impl FnOnce(&mut McpClientSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = McpClientSettings::new(folder.path().to_owned());
        settings.environment = BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), folder.path().into()),
        ]);
        settings.startup_timeout = DEADLINE;
        change(&mut settings);
        let supervisor = Supervisor::new(env!("CARGO_BIN_EXE_fake-mcp").into());
        let manager = McpManager::new(supervisor.clone(), settings);
        Self { _serial: SERIAL.lock().await, manager, supervisor, folder, servers: McpPrograms::from_env() }
    }

    pub async fn call(&self, server: &NamedMcpServer, tool: &str, arguments: Value) -> McpCallResult {
        self.call_with(server, tool, arguments, CallOptions::default()).await
    }

    pub async fn call_with(
        &self,
        server: &NamedMcpServer,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> McpCallResult {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let called = timeout(DEADLINE, self.manager.call(server, tool, arguments, options))
            .await
            .expect("the call returns in time");
        called.unwrap_or_else(|failure| panic!("{tool}: {failure}"))
    }

    pub async fn close(self) {
        timeout(DEADLINE, self.manager.close()).await.expect("the manager closes");
        timeout(DEADLINE, self.supervisor.wait_until_all_ended()).await.expect("all processes end");
    }
}

pub fn stdio(program: &Path, args: &[&str]) -> NamedMcpServer {
    let command = program.to_str().unwrap().to_owned();
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    NamedMcpServer::new("real", McpTransport::Stdio { command, args, env: BTreeMap::new() })
}

/// A running HTTP server. Dropping it kills the process.
pub struct Listening {
    pub port: u16,
    _child: Child,
    /// Kept open: the server ends if it cannot write its log.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Listening {
    /// `transport` is one of server-everything's transports.
    pub async fn start(servers: &McpPrograms, transport: &str) -> Self {
        let preload = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/loopback.cjs");
        let mut command = Command::new(&servers.node);
        command.arg("--require").arg(preload).arg(&servers.everything).arg(transport);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = timeout(DEADLINE, async {
            loop {
                let line = lines.next_line().await.unwrap().expect("the server ended before it listened");
                if let Some(port) = line.strip_prefix("port ") {
                    return port.parse().unwrap();
                }
            }
        });
        let port = port.await.expect("the server listens");
        Self { port, _child: child, _output: lines }
    }
}

//! The MCP client manager against a fake server with the faults of real ones.

mod calls;
mod endings;
mod greetings;
mod inside;
mod lists;

use domain::mcp::{McpTransport, NamedMcpServer};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path, time::Duration};
use tokio::time::timeout;
use workbench::{
    mcp::{CallOptions, McpCallResult, McpClientSettings, McpFailure, McpManager},
    process::{BackoffLimits, Supervisor},
};

/// Longer than anything takes on a busy machine; nothing waits for it to pass.
const DEADLINE: Duration = Duration::from_secs(60);

struct McpFixture {
    manager: McpManager,
    supervisor: Supervisor,
    _folder: tempfile::TempDir,
}

impl McpFixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut McpClientSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = McpClientSettings::new(folder.path().to_owned());
        settings.environment = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]);
        settings.close_timeout = Duration::from_secs(8);
        // No backoff, except in the tests about backoff.
        settings.backoff = BackoffLimits { failures: 100, ..BackoffLimits::default() };
        change(&mut settings);
        let supervisor = Supervisor::new(env!("CARGO_BIN_EXE_fake-mcp").into());
        Self { manager: McpManager::new(supervisor.clone(), settings), supervisor, _folder: folder }
    }

    async fn call(&self, server: &NamedMcpServer, tool: &str, arguments: Value) -> Result<McpCallResult, McpFailure> {
        self.call_with(server, tool, arguments, CallOptions::default()).await
    }

    async fn call_with(
        &self,
        server: &NamedMcpServer,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<McpCallResult, McpFailure> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        timeout(DEADLINE, self.manager.call(server, tool, arguments, options)).await.expect("the call returns")
    }

    async fn text(&self, server: &NamedMcpServer, tool: &str) -> String {
        self.call(server, tool, json!({})).await.unwrap().text()
    }

    /// Closes the manager and waits until all processes have ended.
    async fn close(self) {
        timeout(DEADLINE, self.manager.close()).await.expect("the manager closes");
        timeout(DEADLINE, self.supervisor.wait_until_all_ended()).await.expect("all processes end");
    }
}

fn fake(mode: &str, detail: &str) -> NamedMcpServer {
    let command = env!("CARGO_BIN_EXE_fake-mcp").to_owned();
    NamedMcpServer::new(
        "fake",
        McpTransport::Stdio { command, args: vec![mode.into(), detail.into()], env: BTreeMap::new() },
    )
}

fn good() -> NamedMcpServer {
    fake("good", "")
}

fn within(millis: u64) -> CallOptions {
    CallOptions { deadline: Some(Duration::from_millis(millis)), ..CallOptions::default() }
}

fn nothing() -> Map<String, Value> {
    Map::new()
}

fn is_alive(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    Path::new(&format!("/proc/{process}")).exists() && !stat.contains(") Z ")
}

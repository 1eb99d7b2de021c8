//! The MCP client manager against a server that behaves badly in every way that real ones do.

mod calls;
mod endings;
mod greetings;
mod inside;
mod lists;

use domain::mcp::{Server, Transport};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, path::Path, time::Duration};
use tokio::time::timeout;
use workbench::{
    mcp::{CallOptions, CallResult, Failure, Manager, Settings},
    process::{Limits, Supervisor},
};

/// Longer than anything takes on a busy machine; nothing waits for it to pass.
const DEADLINE: Duration = Duration::from_secs(60);

struct Scene {
    manager: Manager,
    supervisor: Supervisor,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(folder.path().to_owned());
        settings.environment = BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]);
        settings.close = Duration::from_secs(8);
        // Rests are for the tests about rests.
        settings.backoff = Limits { failures: 100, ..Limits::default() };
        change(&mut settings);
        let supervisor = Supervisor::new(env!("CARGO_BIN_EXE_fake-mcp").into());
        Self { manager: Manager::new(supervisor.clone(), settings), supervisor, _folder: folder }
    }

    async fn call(&self, server: &Server, tool: &str, arguments: Value) -> Result<CallResult, Failure> {
        self.call_with(server, tool, arguments, CallOptions::default()).await
    }

    async fn call_with(
        &self,
        server: &Server,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<CallResult, Failure> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        timeout(DEADLINE, self.manager.call(server, tool, arguments, options)).await.expect("it comes back")
    }

    async fn text(&self, server: &Server, tool: &str) -> String {
        self.call(server, tool, json!({})).await.unwrap().text()
    }

    /// After that nothing runs any more that was started.
    async fn close(self) {
        timeout(DEADLINE, self.manager.close()).await.expect("it closes");
        timeout(DEADLINE, self.supervisor.all_gone()).await.expect("all are gone");
    }
}

fn fake(mode: &str, detail: &str) -> Server {
    let command = env!("CARGO_BIN_EXE_fake-mcp").to_owned();
    Server::new("fake", Transport::Stdio { command, args: vec![mode.into(), detail.into()], env: BTreeMap::new() })
}

fn good() -> Server {
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

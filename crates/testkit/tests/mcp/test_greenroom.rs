//! A Greenroom server and real MCP clients for the tests of its MCP endpoints.

use crate::fixture::SERIAL;
use reqwest::Method;
use serde_json::{Value, json};
use std::{ffi::OsStr, path::Path, process::Stdio, time::Duration};
use testkit::{
    client::TestClient,
    database::TestDatabase,
    programs::{self, McpPrograms},
    server::TestServer,
};
use tokio::{process::Command, sync::MutexGuard, time::timeout};

/// Clients start slowly on a busy machine.
const DEADLINE: Duration = Duration::from_secs(240);

pub struct TestGreenroom {
    _serial: MutexGuard<'static, ()>,
    server: TestServer,
    /// Set if requests need it.
    pub token: Option<String>,
    pub programs: McpPrograms,
    folder: tempfile::TempDir,
}

/// The exit code and output of a client.
#[derive(Debug)]
pub struct ClientOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TestGreenroom {
    /// Starts a server with the scripted agent. With accounts, requests need a token; else it runs with `--no-auth`.
    pub async fn open(has_accounts: bool) -> Self {
        let serial = SERIAL.lock().await;
        let mut server = match has_accounts {
            true => TestServer::start(TestDatabase::sqlite()).await,
            false => TestServer::start_without_auth(TestDatabase::sqlite()).await,
        };
        let mut token = None;
        if has_accounts {
            let all = json!({"name": "test", "scopes": ["read", "run", "approve", "admin"]});
            let made = server.api().request(Method::POST, "/api/tokens").json(&all);
            let made: Value = server.api().send(made).await.unwrap();
            let secret = made["token"].as_str().unwrap();
            server.use_token(secret);
            token = Some(secret.to_owned());
        }
        let folder = tempfile::tempdir().unwrap();
        Self { _serial: serial, server, token, programs: McpPrograms::from_env(), folder }
    }

    pub fn api(&self) -> &TestClient {
        self.server.api()
    }

    pub fn base(&self) -> &str {
        self.server.api().base_url()
    }

    /// The `greenroom mcp` command line, for clients that start a stdio server.
    pub fn bridge(&self) -> [String; 2] {
        [programs::greenroom().to_str().unwrap().to_owned(), "mcp".to_owned()]
    }

    /// Runs a client to its end in a clean environment.
    pub async fn run<S: AsRef<OsStr>>(&self, program: &Path, arguments: &[S]) -> ClientOutput {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.folder.path());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = timeout(DEADLINE, command.output()).await.expect("the client ends").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        ClientOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    pub async fn finish(self) {
        self.server.finish().await;
    }
}

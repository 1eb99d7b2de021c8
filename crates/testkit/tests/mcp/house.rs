//! A Greenroom of our own and real MCP clients that come to it: what the tests of its MCP doors share.

use crate::scene::TURN;
use reqwest::Method;
use serde_json::{Value, json};
use std::{ffi::OsStr, path::Path, process::Stdio, time::Duration};
use testkit::{
    client::Api,
    database::TestDatabase,
    programs::{self, McpServers},
    server::TestServer,
};
use tokio::{process::Command, sync::MutexGuard, time::timeout};

/// A client starts slowly on a busy machine, and some have a lot to do.
const DEADLINE: Duration = Duration::from_secs(240);

pub struct House {
    _turn: MutexGuard<'static, ()>,
    server: TestServer,
    /// Where accounts are on.
    pub token: Option<String>,
    pub programs: McpServers,
    folder: tempfile::TempDir,
}

/// What a client left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub side: String,
}

impl House {
    /// With the scripted agent that every server has; with accounts only those with a token come in.
    pub async fn open(has_accounts: bool) -> Self {
        let turn = TURN.lock().await;
        let mut server = TestServer::start(TestDatabase::sqlite()).await;
        let mut token = None;
        if has_accounts {
            let made = server.api().request(Method::POST, "/api/tokens").json(&json!({"name": "test"}));
            let made: Value = server.api().send(made).await.unwrap();
            let secret = made["token"].as_str().unwrap();
            server.use_token(secret);
            token = Some(secret.to_owned());
        }
        let folder = tempfile::tempdir().unwrap();
        Self { _turn: turn, server, token, programs: McpServers::found(), folder }
    }

    pub fn api(&self) -> &Api {
        self.server.api()
    }

    pub fn base(&self) -> &str {
        self.server.api().base()
    }

    /// Our own command as a server that clients start.
    pub fn bridge(&self) -> [String; 2] {
        [programs::greenroom().to_str().unwrap().to_owned(), "mcp".to_owned()]
    }

    /// Runs a client to its end, in an environment that holds nothing of ours.
    pub async fn run<S: AsRef<OsStr>>(&self, program: &Path, arguments: &[S]) -> Ended {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.folder.path());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = timeout(DEADLINE, command.output()).await.expect("the client ends").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { code: output.status.code(), out: text(output.stdout), side: text(output.stderr) }
    }

    pub async fn finish(self) {
        self.server.finish().await;
    }
}

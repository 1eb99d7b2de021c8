//! `greenroom mcp` as a stdio client uses it.

mod double;
mod endings;
mod restarts;
mod sessions;
mod stateless;
mod strange;

use crate::{DEADLINE, greenroom};
use double::Double;
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

const LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";

/// A client of a stdio MCP server.
pub struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
    _folder: tempfile::TempDir,
}

impl Mcp {
    pub fn start(server: &str) -> Self {
        Self::start_with(server, None)
    }

    pub fn start_with(server: &str, token: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = greenroom(folder.path(), &["mcp", "--server", server]);
        command.envs(token.map(|token| ("GREENROOM_TOKEN", token))).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, input, output: Some(BufReader::new(output).lines()), _folder: folder }
    }

    /// Starts a client and does the handshake.
    async fn initialized(double: &Double) -> Self {
        let mut mcp = Self::start(&double.url());
        mcp.initialize().await;
        mcp
    }

    pub async fn initialize(&mut self) {
        let params = json!({"protocolVersion": LEGACY, "capabilities": {"roots": {}}, "clientInfo": {"name": "test", "version": "7"}});
        self.write(&json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})).await;
        let response = self.read().await;
        assert_eq!(
            (&response["id"], &response["result"]["protocolVersion"]),
            (&json!("hello"), &json!(LEGACY)),
            "{response}"
        );
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    pub async fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    async fn write_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        timeout(DEADLINE, input.write_all(format!("{line}\n").as_bytes()))
            .await
            .expect("the command reads its input")
            .unwrap();
    }

    pub async fn ask(&mut self, id: u64, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    pub async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        self.ask(id, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}})).await;
    }

    /// Calls a tool with the revision without sessions.
    pub async fn call_modern(&mut self, id: u64, tool: &str, arguments: Value) {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": MODERN});
        self.ask(id, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta})).await;
    }

    /// Reads the next line, which must be a message.
    pub async fn read(&mut self) -> Value {
        let line =
            timeout(DEADLINE, self.output.as_mut().unwrap().next_line()).await.expect("the command writes output");
        let line = line.unwrap().expect("the command has not ended");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    pub async fn read_answer(&mut self, id: u64) -> Value {
        let answer = self.read().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Closes the input and returns the exit code, the remaining messages and stderr.
    pub async fn end(mut self) -> (Option<i32>, Vec<Value>, String) {
        drop(self.input.take());
        let mut left = Vec::new();
        if let Some(mut output) = self.output.take() {
            while let Some(line) = timeout(DEADLINE, output.next_line()).await.expect("the command ends").unwrap() {
                left.push(serde_json::from_str(&line).unwrap());
            }
        }
        let status = timeout(DEADLINE, self.child.wait()).await.expect("the command ends").unwrap();
        let mut notes = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut notes).await.unwrap();
        (status.code(), left, notes)
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

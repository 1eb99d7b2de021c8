//! A fake MCP server over stdio. Its first argument selects a mode: correct, or one of the ways real servers fail.
//! Blocking and without a library, so that it can violate the protocol.
//!
//! `fake-mcp good` has tools that misbehave when called (`tools.rs`); the other modes misbehave before that
//! (`lists.rs`, and `initialize` here). Started with the keeper argument it is a keeper, so that tests need no other
//! binary.

mod lists;
mod tools;

use serde_json::{Value, json};
use std::{
    io::{BufRead as _, Write as _, stdin, stdout},
    process::ExitCode,
    time::Duration,
};
use workbench::process::keeper;

pub struct FakeMcpServer {
    mode: String,
    /// The second argument, for modes that need one.
    detail: String,
    /// Prepared pages of a long tool list.
    pages: Vec<String>,
    /// Tools added at run time.
    extra: Vec<Value>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == keeper::SUBCOMMAND) {
        return keeper::main();
    }
    let argument = |at: usize| arguments.get(at).cloned().unwrap_or_default();
    let mut server = FakeMcpServer { mode: argument(0), detail: argument(1), pages: Vec::new(), extra: Vec::new() };
    match server.mode.as_str() {
        "exit" => {
            eprintln!("fatal: no configuration");
            return ExitCode::from(3);
        }
        "noise" => {
            send_line("Fake server 1.0 listening on stdio");
            send_line("{\"foo\":1}");
            send_line("[{\"jsonrpc\":\"2.0\"}]");
        }
        "many" => server.pages = lists::pages(server.detail.parse().unwrap_or(5000)),
        "deaf" => tools::ignore_signals(),
        _ => {}
    }
    eprintln!("fake-mcp {} is up", server.mode);
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        server.handle_message(&message);
    }
    if server.mode == "deaf" {
        std::thread::sleep(Duration::from_secs(3600));
    }
    ExitCode::SUCCESS
}

impl FakeMcpServer {
    fn handle_message(&mut self, message: &Value) {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            self.handle_notification(message);
            return;
        };
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => self.initialize(id, message),
            "server/discover" if self.mode == "modern" => respond(
                id,
                json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "2"}},
                }),
            ),
            "ping" => respond(id, json!({})),
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => self.call(id, &message["params"]),
            // Some real servers ignore unknown methods, so the client waits forever.
            _ if self.mode == "mute" => {}
            method => respond_error(id, -32601, &format!("no method {method}")),
        }
    }

    fn initialize(&self, id: &Value, message: &Value) {
        let version = match self.mode.as_str() {
            "silent" => return,
            "modern" => {
                respond_error(id, -32022, "initialize is not supported");
                return;
            }
            "version" => json!(self.detail),
            _ => message["params"]["protocolVersion"].clone(),
        };
        respond(
            id,
            json!({
                "protocolVersion": version,
                "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                "serverInfo": {"name": "fake", "version": "1"},
                "instructions": "Be kind to it.",
            }),
        );
    }

    fn handle_notification(&mut self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            // Tests find this in the log.
            notify(
                "notifications/message",
                json!({"level": "info", "data": format!("cancelled {}", message["params"]["requestId"])}),
            );
        }
    }
}

pub fn respond(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

pub fn respond_error(id: &Value, code: i64, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": {"by": "fake"}}}));
}

pub fn notify(method: &str, params: Value) {
    send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

pub fn send(message: &Value) {
    send_line(&message.to_string());
}

/// Ignores failures: the client has disconnected, and the input ends next.
pub fn send_line(line: &str) {
    let mut output = stdout().lock();
    drop(output.write_all(line.as_bytes()).and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush()));
}

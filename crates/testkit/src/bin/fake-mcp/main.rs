//! An MCP server over stdio that behaves as told by its first argument: well, or in one of the ways in which real ones
//! go wrong. Blocking and without a library, so that it can break every rule.
//!
//! `fake-mcp good` has tools that misbehave when they are called (`tools.rs`); the other modes misbehave before that
//! (`lists.rs`, and `greet` here). Started with the keeper's word it is a keeper, so that tests need no other binary.

mod lists;
mod tools;

use serde_json::{Value, json};
use std::{
    io::{BufRead as _, Write as _, stdin, stdout},
    process::ExitCode,
    time::Duration,
};
use workbench::process::keeper;

pub struct Server {
    mode: String,
    /// What some modes need to know more.
    detail: String,
    /// Of the list, where there are many.
    pages: Vec<String>,
    /// Tools that were added while it ran.
    extra: Vec<Value>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == keeper::WORD) {
        return keeper::main();
    }
    let argument = |at: usize| arguments.get(at).cloned().unwrap_or_default();
    let mut server = Server { mode: argument(0), detail: argument(1), pages: Vec::new(), extra: Vec::new() };
    match server.mode.as_str() {
        "exit" => {
            eprintln!("fatal: no configuration");
            return ExitCode::from(3);
        }
        "noise" => {
            say_raw("Fake server 1.0 listening on stdio");
            say_raw("{\"foo\":1}");
            say_raw("[{\"jsonrpc\":\"2.0\"}]");
        }
        "many" => server.pages = lists::pages(server.detail.parse().unwrap_or(5000)),
        "deaf" => tools::ignore_signals(),
        _ => {}
    }
    eprintln!("fake-mcp {} is up", server.mode);
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        server.hear(&message);
    }
    if server.mode == "deaf" {
        std::thread::sleep(Duration::from_secs(3600));
    }
    ExitCode::SUCCESS
}

impl Server {
    fn hear(&mut self, message: &Value) {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            self.told(message);
            return;
        };
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => self.greet(id, message),
            "server/discover" if self.mode == "modern" => answer(
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
            "ping" => answer(id, json!({})),
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => self.call(id, &message["params"]),
            // Real ones do this, and the one who asked waits for ever.
            _ if self.mode == "mute" => {}
            method => refuse(id, -32601, &format!("no method {method}")),
        }
    }

    fn greet(&self, id: &Value, message: &Value) {
        let version = match self.mode.as_str() {
            "silent" => return,
            "modern" => {
                refuse(id, -32022, "initialize is not supported");
                return;
            }
            "version" => json!(self.detail),
            _ => message["params"]["protocolVersion"].clone(),
        };
        answer(
            id,
            json!({
                "protocolVersion": version,
                "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                "serverInfo": {"name": "fake", "version": "1"},
                "instructions": "Be kind to it.",
            }),
        );
    }

    fn told(&mut self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            // Where tests find it.
            notify(
                "notifications/message",
                json!({"level": "info", "data": format!("cancelled {}", message["params"]["requestId"])}),
            );
        }
    }
}

pub fn answer(id: &Value, result: Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

pub fn refuse(id: &Value, code: i64, message: &str) {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": {"by": "fake"}}}));
}

pub fn notify(method: &str, params: Value) {
    say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

pub fn say(message: &Value) {
    say_raw(&message.to_string());
}

/// Nobody listens any more when this fails, and the end of the input says so next.
pub fn say_raw(line: &str) {
    let mut output = stdout().lock();
    drop(output.write_all(line.as_bytes()).and_then(|()| output.write_all(b"\n")).and_then(|()| output.flush()));
}

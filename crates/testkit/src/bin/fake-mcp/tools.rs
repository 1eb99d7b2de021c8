//! The tools of the fake server, one for each way a call can go.

use crate::{FakeMcpServer, notify, respond, respond_error, send, send_line};
use serde_json::{Value, json};
use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

const NAMES: [&str; 19] = [
    "echo",
    "add",
    "crash",
    "hang",
    "steps",
    "string_error",
    "refuse",
    "fail",
    "huge",
    "huge_late_id",
    "image",
    "odd_content",
    "empty",
    "noise",
    "environment",
    "grandchild",
    "change",
    "log",
    "sleep",
];

pub fn all() -> Vec<Value> {
    NAMES
        .map(|name| json!({"name": name, "description": format!("does {name}"), "inputSchema": {"type": "object"}}))
        .into()
}

fn text(id: &Value, text: impl ToString) {
    respond(id, json!({"content": [{"type": "text", "text": text.to_string()}], "resultType": "complete"}));
}

impl FakeMcpServer {
    pub fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "echo" => text(id, arguments["text"].as_str().unwrap_or_default()),
            "add" => {
                let sum = arguments["a"].as_i64().unwrap_or_default() + arguments["b"].as_i64().unwrap_or_default();
                respond(id, json!({"content": [], "structuredContent": {"sum": sum}}));
            }
            "crash" => {
                eprintln!("panic: out of cheese");
                std::process::exit(9);
            }
            "hang" => {}
            "sleep" => {
                thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default()));
                text(id, "awake");
            }
            "steps" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=3 {
                    let words = format!("step {step}");
                    notify(
                        "notifications/progress",
                        json!({"progressToken": token, "progress": step, "total": 3, "message": words}),
                    );
                }
                text(id, "done");
            }
            "string_error" => send(&json!({"jsonrpc": "2.0", "id": id, "error": "boom"})),
            "refuse" => respond_error(id, -32602, "no such thing"),
            "fail" => respond(id, json!({"content": [{"type": "text", "text": "it did not work"}], "isError": true})),
            "huge" => text(id, "x".repeat(18 * 1024 * 1024)),
            "huge_late_id" => {
                let words = "x".repeat(18 * 1024 * 1024);
                send_line(&format!(
                    "{{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{words}\"}}]}},\"jsonrpc\":\"2.0\",\"id\":{id}}}"
                ));
            }
            "image" => respond(
                id,
                json!({"content": [
                    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
                    {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}},
                    {"type": "resource_link", "uri": "file:///b.txt", "name": "b"},
                ]}),
            ),
            "odd_content" => respond(id, json!({"content": [{"type": "hologram", "beam": 1}]})),
            "empty" => respond(id, json!({})),
            "noise" => {
                send_line("debug: about to answer");
                text(id, "with noise");
            }
            "environment" => {
                let folder = std::env::current_dir().unwrap_or_default();
                #[expect(clippy::disallowed_methods, reason = "this is what the tool is for")]
                let variables: Value =
                    std::env::vars().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
                respond(
                    id,
                    json!({"content": [], "structuredContent": {"env": variables, "folder": folder, "id": std::process::id()}}),
                );
            }
            "grandchild" => {
                let mut sleep = Command::new("/bin/sh");
                sleep.args(["-c", "setsid sleep 3600 & echo $!; wait"]).stdin(Stdio::null()).stdout(Stdio::piped());
                match sleep.spawn() {
                    Ok(mut child) => {
                        let mut line = String::new();
                        let output = child.stdout.take().map(std::io::BufReader::new);
                        drop(output.map(|mut output| std::io::BufRead::read_line(&mut output, &mut line)));
                        text(id, line.trim());
                    }
                    Err(error) => respond_error(id, -1, &error.to_string()),
                }
            }
            "change" => {
                self.extra.push(json!({"name": "fresh", "inputSchema": {"type": "object"}}));
                for _ in 0..5 {
                    notify("notifications/tools/list_changed", json!({}));
                }
                text(id, "changed");
            }
            "log" => {
                notify("notifications/message", json!({"level": "warning", "data": "the disk is nearly full"}));
                text(id, "logged");
            }
            "fresh" if !self.extra.is_empty() => text(id, "fresh"),
            other => respond_error(id, -32602, &format!("Unknown tool: {other}")),
        }
    }
}

/// Makes the process ignore SIGTERM.
pub fn ignore_signals() {
    // std cannot ignore a signal, so a tokio runtime in a background thread catches it.
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
                while terminate.recv().await.is_some() {}
            }
        });
    });
}

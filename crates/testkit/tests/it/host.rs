//! A minimal host: starts the fake CLI and exchanges lines with it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

/// Longer than anything takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub struct Host {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

pub fn transcripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts")
}

impl Host {
    pub fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_replay"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    /// Starts a transcript with flags of the real CLI around ours, as the server does.
    pub fn replay(name: &str, more: &[&str]) -> Self {
        let file = transcripts().join(format!("{name}.jsonl"));
        let mut arguments = vec!["-p", "--verbose", "--model", "some-model", "--replay", file.to_str().unwrap()];
        arguments.extend(more);
        Self::start(&arguments)
    }

    pub async fn send(&mut self, line: Value) {
        self.send_raw(&format!("{line}\n")).await;
    }

    pub async fn send_raw(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the input is open");
        timeout(DEADLINE, input.write_all(text.as_bytes())).await.expect("the CLI reads its input").unwrap();
    }

    /// Reads up to and including the next line end, or to the end of the output.
    pub async fn bytes(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        timeout(DEADLINE, self.output.read_until(b'\n', &mut line)).await.expect("the CLI writes output").unwrap();
        line
    }

    pub async fn line(&mut self) -> Value {
        let line = self.bytes().await;
        serde_json::from_slice(&line).unwrap_or_else(|_| panic!("not JSON: {:?}", String::from_utf8_lossy(&line)))
    }

    /// Reads lines up to and including the first match.
    pub async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().await;
            let found = fits(&line);
            lines.push(line);
            if found {
                return lines;
            }
        }
    }

    pub fn close(&mut self) {
        self.input = None;
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().expect("the CLI is running")).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Closes the input and returns the exit status and the rest of stdout and stderr.
    pub async fn finish(mut self) -> (ExitStatus, String, String) {
        self.close();
        let (mut rest, mut errors) = (String::new(), String::new());
        let read = async {
            self.output.read_to_string(&mut rest).await.unwrap();
            self.child.stderr.take().unwrap().read_to_string(&mut errors).await.unwrap();
            self.child.wait().await.unwrap()
        };
        let status = timeout(DEADLINE, read).await.expect("the CLI ends");
        (status, rest, errors)
    }

    /// Asserts exit code 97 with this reason.
    pub async fn finish_mismatched(self, why: &str) {
        let (status, _, errors) = self.finish().await;
        assert_eq!(status.code(), Some(97), "{errors}");
        assert!(errors.contains(why), "{errors}");
    }
}

pub fn user(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "uuid": format!("uuid of {text}")})
}

pub fn control(id: &str, subtype: &str) -> Value {
    json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}})
}

pub fn is_result(line: &Value) -> bool {
    line["type"] == "result"
}

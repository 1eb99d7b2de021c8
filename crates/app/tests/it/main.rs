//! Tests of the binary from outside. `endpoints` tests the whole server through its public endpoints, `web_contract` what the
//! web app relies on. The rest tests the command line (output, exit codes, resuming) with a double of the server that cuts connections.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod attached_files;
mod direct;
mod double;
mod endpoints;
mod faults;
mod help;
mod keeper;
mod mcp;
mod old_data;
mod outside_sources;
mod room_context;
mod run;
mod sandboxed;
mod simple;
mod version;
mod web_contract;

use std::{path::Path, process::Stdio, time::Duration};
use tokio::process::{Child, Command};

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// The binary, in an empty environment and an empty directory.
fn greenroom(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.args(arguments).current_dir(dir).env_clear().kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

struct CommandOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn output_of(child: Child) -> CommandOutput {
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.expect("the command ends").unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

async fn run(dir: &Path, arguments: &[&str]) -> CommandOutput {
    output_of(greenroom(dir, arguments).spawn().unwrap()).await
}

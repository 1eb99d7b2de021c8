//! The binary from outside. `doors` drives the whole server through its public doors. The rest is the command line: what
//! it prints, how it ends, and that it resumes, against a double of the server that cuts connections on purpose.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod direct;
mod doors;
mod double;
mod faults;
mod help;
mod keeper;
mod mcp;
mod run;
mod simple;

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

struct Ended {
    code: Option<i32>,
    out: String,
    side: String,
}

async fn ended(child: Child) -> Ended {
    let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await.expect("it ends").unwrap();
    Ended {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        side: String::from_utf8(output.stderr).unwrap(),
    }
}

async fn run(dir: &Path, arguments: &[&str]) -> Ended {
    ended(greenroom(dir, arguments).spawn().unwrap()).await
}

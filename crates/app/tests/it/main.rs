//! The binary from outside: what it prints, how it ends, and that it resumes. The server is a double that cuts
//! connections on purpose; the real one is tested where it is put together.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

mod double;
mod help;
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

//! Whether this machine has the program, and which version.

use super::command;
use crate::{Inspection, program::Program};
use std::{path::PathBuf, time::Duration};
use tokio::time::timeout;
use workbench::process::Command;

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn advice(program: &Program) -> String {
    format!(
        "Claude Code is not on this machine: there is no program {:?}. Install it with `npm install -g \
         @anthropic-ai/claude-code` (Node 22 or newer), or name its path in the configuration.",
        program.command
    )
}

pub(super) async fn inspect(program: Program) -> Inspection {
    let Some(path) = program.locate() else { return Inspection::Missing { advice: advice(&program) } };
    match timeout(PATIENCE, version(&program, path.clone())).await {
        Ok(Ok(version)) => Inspection::Ready { version, program: Some(path) },
        Ok(Err(problem)) => Inspection::Missing { advice: format!("{} does not run: {problem}", path.display()) },
        Err(_) => Inspection::Missing {
            advice: format!("{} does not tell its version within {} s", path.display(), PATIENCE.as_secs()),
        },
    }
}

/// `2.1.325 (Claude Code)` is what it prints.
async fn version(program: &Program, path: PathBuf) -> Result<Option<String>, String> {
    let folder = path.parent().map_or_else(|| PathBuf::from("."), PathBuf::from);
    let env = command::environment(program, &folder);
    let command = Command { program: path, args: vec!["--version".into()], env, folder };
    let mut child = program.supervisor.start(command).await.map_err(|error| error.to_string())?;
    drop(child.stdin);
    let line = child.stdout.next().await.map_err(|error| error.to_string())?;
    let words = child.handle.stderr().tail();
    match line {
        Some(line) => Ok(line.split_whitespace().next().map(str::to_owned)),
        None => Err(if words.is_empty() { "it prints nothing".to_owned() } else { words }),
    }
}

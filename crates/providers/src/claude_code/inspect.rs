//! Checks whether Claude Code is installed, and which version.

use super::command;
use crate::{Inspection, program::AgentProgram};
use std::{path::PathBuf, time::Duration};
use tokio::time::timeout;
use workbench::process::ProcessSpec;

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn advice(program: &AgentProgram) -> String {
    format!(
        "Claude Code is not installed: no program {:?} was found. Install it with `npm install -g \
         @anthropic-ai/claude-code` (Node 22 or newer), or set its path in the configuration.",
        program.command
    )
}

pub(super) async fn inspect(program: AgentProgram) -> Inspection {
    let Some(path) = program.locate() else { return Inspection::Missing { advice: advice(&program) } };
    match timeout(VERSION_TIMEOUT, version(&program, path.clone())).await {
        Ok(Ok(version)) => Inspection::Ready { version, program: Some(path) },
        Ok(Err(problem)) => Inspection::Missing { advice: format!("{} does not run: {problem}", path.display()) },
        Err(_) => Inspection::Missing {
            advice: format!("{} did not print its version within {} s", path.display(), VERSION_TIMEOUT.as_secs()),
        },
    }
}

/// The program prints `2.1.325 (Claude Code)`.
async fn version(program: &AgentProgram, path: PathBuf) -> Result<Option<String>, String> {
    let folder = path.parent().map_or_else(|| PathBuf::from("."), PathBuf::from);
    let env = command::environment(program, &folder);
    let command = ProcessSpec { program: path, args: vec!["--version".into()], env, folder, sandbox: None };
    let mut child = program.launcher.launch(command).await.map_err(|error| error.to_string())?;
    drop(child.stdin);
    let line = child.stdout.next().await.map_err(|error| error.to_string())?;
    let stderr = child.handle.stderr().text();
    match line {
        Some(line) => Ok(line.split_whitespace().next().map(str::to_owned)),
        None => Err(if stderr.is_empty() { "it printed nothing".to_owned() } else { stderr }),
    }
}

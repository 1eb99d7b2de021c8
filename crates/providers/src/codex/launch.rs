//! Starts the program. Tests replace this with a fake program.

use super::{command, home};
use crate::program::{self, AgentProgram};
use domain::run::{Receipt, RunError};
use std::{future::Future, path::Path, pin::Pin};
use tokio::io::AsyncWrite;
use workbench::process::{OutputLines, ProgramExit, ProgramHandle};

pub type CodexLaunchFuture = Pin<Box<dyn Future<Output = Result<LaunchedCodex, RunError>> + Send>>;

pub trait CodexLauncher: Send + Sync + 'static {
    /// Starts the program for the agent with this home folder.
    fn launch(&self, home: &Path) -> CodexLaunchFuture;
}

/// A running program that is not initialized yet.
pub struct LaunchedCodex {
    pub output: OutputLines,
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub process: Box<dyn CodexProcessHandle>,
    /// Sent to the program after initialization.
    pub api_key: Option<String>,
}

/// Controls a running program. Dropping it kills the program and all its descendants.
pub trait CodexProcessHandle: Send {
    /// Returns the end of its standard error.
    fn last_words(&self) -> String;
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = ProgramExit> + Send + '_>>;
    /// Stops the program; its input must already be closed.
    fn stop(self: Box<Self>) -> Pin<Box<dyn Future<Output = Receipt> + Send>>;
}

impl CodexProcessHandle for ProgramHandle {
    fn last_words(&self) -> String {
        self.stderr().text()
    }

    fn ended(&mut self) -> Pin<Box<dyn Future<Output = ProgramExit> + Send + '_>> {
        Box::pin(ProgramHandle::wait(self))
    }

    fn stop(self: Box<Self>) -> Pin<Box<dyn Future<Output = Receipt> + Send>> {
        Box::pin(ProgramHandle::stop(*self, program::STOP_PATIENCE))
    }
}

pub const INSTALL_ADVICE: &str =
    "Install Codex with `npm install -g @openai/codex`, or set its path in the configuration.";

impl CodexLauncher for AgentProgram {
    fn launch(&self, home: &Path) -> CodexLaunchFuture {
        let (program, home) = (self.clone(), home.to_owned());
        Box::pin(async move {
            let Some(found) = program.locate() else {
                let message = format!("No program {:?} was found. {INSTALL_ADVICE}", program.command);
                return Err(RunError::new("program_missing", message));
            };
            let prepared = tokio::task::spawn_blocking({
                let (program, home) = (program.clone(), home.clone());
                move || {
                    home::prepare(&home, &program)?;
                    Ok((command::app_server(&program, &found, &home), command::api_key(&program, &home)))
                }
            });
            let prepared: std::io::Result<_> = prepared.await.map_err(std::io::Error::other).and_then(|inner| inner);
            let (command, api_key) = prepared.map_err(|error| {
                RunError::new("program_crashed", format!("Cannot prepare the agent's Codex folder: {error}"))
            })?;
            let child = program.supervisor.start(command).await;
            let child =
                child.map_err(|error| RunError::new("program_crashed", format!("{error}. {INSTALL_ADVICE}")))?;
            Ok(LaunchedCodex {
                output: child.stdout,
                input: Box::new(child.stdin),
                process: Box::new(child.handle),
                api_key,
            })
        })
    }
}

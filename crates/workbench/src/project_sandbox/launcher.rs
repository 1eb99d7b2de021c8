//! Starts programs in the sandboxes that their specs name, and others as the supervisor does.

use super::{MountedProgram, SandboxLease, SandboxManager, SandboxSpec, sandboxed_program::SandboxedProgram};
use crate::process::{
    LaunchedProcess, Launcher, OutputLines, ProcessFuture, ProcessSpec, ProcessStartError, Supervisor,
};
use sandbox::{CommandIo, CommandSpec, LeftoverProcesses, SandboxCommand, SandboxError};
use std::{
    ffi::{OsStr, OsString},
    io::{self, pipe},
};
use tokio::net::unix::pipe::{Receiver, Sender};

#[derive(Clone)]
pub struct SandboxLauncher {
    pub sandboxes: SandboxManager,
    /// For programs without a sandbox.
    pub supervisor: Supervisor,
    /// The server's `PATH`, where the interpreters of scripts are.
    pub search_path: Option<OsString>,
}

impl Launcher for SandboxLauncher {
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>> {
        match &spec.sandbox {
            None => self.supervisor.launch(spec),
            Some(_) => Box::pin(async {
                let program = spec.program.display().to_string();
                self.launch_inside(spec).await.map_err(|failure| match failure {
                    LaunchFailure::Program(source) => ProcessStartError::Spawn { program, source },
                    LaunchFailure::Other(reason) => ProcessStartError::Refused { program, reason },
                })
            }),
        }
    }
}

enum LaunchFailure {
    /// The system could not start the program itself.
    Program(io::Error),
    Other(String),
}

impl LaunchFailure {
    fn other(error: impl std::fmt::Display) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<SandboxError> for LaunchFailure {
    fn from(error: SandboxError) -> Self {
        match error {
            SandboxError::Start { source, .. } => Self::Program(source),
            other => Self::other(other),
        }
    }
}

impl SandboxLauncher {
    /// Safe to drop at any point: a started command is killed with its handle.
    async fn launch_inside(&self, spec: ProcessSpec) -> Result<LaunchedProcess, LaunchFailure> {
        let sandbox = spec.sandbox.clone().ok_or_else(|| LaunchFailure::Other("it has no sandbox".into()))?;
        let command = self.command(spec)?;
        let (lease, pipes, command) = match self.run(&sandbox, &command).await {
            // It ended between the two steps; a new one is opened.
            Err(LaunchFailure::Other(reason)) if reason == SandboxError::Ended.to_string() => {
                self.run(&sandbox, &command).await?
            }
            other => other?,
        };
        let StandardPipes { stdin, stdout, stderr } = pipes;
        let handle = SandboxedProgram::new(command, lease, stderr);
        Ok(LaunchedProcess { stdin: Box::new(stdin), stdout: OutputLines::new(stdout), handle: Box::new(handle) })
    }

    async fn run(
        &self,
        sandbox: &SandboxSpec,
        command: &CommandSpec,
    ) -> Result<(SandboxLease, StandardPipes, Box<dyn SandboxCommand>), LaunchFailure> {
        let lease = self.sandboxes.open(sandbox).await.map_err(LaunchFailure::other)?;
        let (pipes, io) = StandardPipes::new().map_err(LaunchFailure::other)?;
        let running = lease.run(command.clone(), io).await?;
        Ok((lease, pipes, running))
    }

    /// The command as the sandbox gets it: text only, and the program's path inside.
    fn command(&self, spec: ProcessSpec) -> Result<CommandSpec, LaunchFailure> {
        let ProcessSpec { program, args, env, folder, sandbox: _ } = spec;
        let mounted = MountedProgram::find(&program, self.search_path.as_deref()).map_err(LaunchFailure::Program)?;
        let mut argv = vec![text(mounted.guest_path.as_os_str())?];
        for argument in &args {
            argv.push(text(argument)?);
        }
        let mut variables = std::collections::BTreeMap::new();
        for (name, value) in &env {
            variables.insert(text(name)?, text(value)?);
        }
        for folder in mounted.search_path.iter().rev() {
            let path = variables.entry("PATH".to_owned()).or_default();
            *path = format!("{}:{path}", folder.display());
        }
        let folder = text(folder.as_os_str())?;
        Ok(CommandSpec { argv, env: variables, folder, leftovers: LeftoverProcesses::End })
    }
}

fn text(value: &OsStr) -> Result<String, LaunchFailure> {
    value.to_str().map(str::to_owned).ok_or_else(|| {
        LaunchFailure::Other("its path, arguments and environment must be text to run in a sandbox".into())
    })
}

/// Our ends of a program's pipes.
struct StandardPipes {
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

impl StandardPipes {
    fn new() -> io::Result<(Self, CommandIo)> {
        let ((input, stdin), (stdout, output), (stderr, errors)) = (pipe()?, pipe()?, pipe()?);
        let ours = Self {
            stdin: Sender::from_owned_fd(stdin.into())?,
            stdout: Receiver::from_owned_fd(stdout.into())?,
            stderr: Receiver::from_owned_fd(stderr.into())?,
        };
        Ok((ours, CommandIo { stdin: input.into(), stdout: output.into(), stderr: errors.into() }))
    }
}

//! Starting and stopping, seen from the server.

use super::{Lines, Stderr};
use domain::run::Receipt;
use std::{collections::BTreeMap, ffi::OsString, io, path::PathBuf, process::Stdio, sync::Arc, time::Duration};
use tokio::{io::AsyncReadExt as _, process::ChildStdin, task::JoinSet};

/// What to start. The environment is exactly `env`: nothing of the server's own gets through (invariant 17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
    pub folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot start {program}: {reason}")]
    Refused { program: String, reason: String },
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// It is gone, but nobody saw how.
    Unknown,
}

/// How long each step of a stop may take before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// After its input was closed.
    pub input_closed: Duration,
    /// After SIGTERM. Then everything is killed.
    pub terminated: Duration,
}

/// Starts programs; one per server, cheap to clone.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<SupervisorInner>);

#[derive(Debug)]
struct SupervisorInner {
    keeper: PathBuf,
}

/// A program that runs: its pipes, and the handle that ends it.
pub struct Child {
    pub stdin: ChildStdin,
    pub stdout: Lines,
    pub handle: Handle,
}

/// Holds the kill domain. Dropping it kills everything in it at once.
#[derive(Debug)]
pub struct Handle {
    child: tokio::process::Child,
    stderr: Stderr,
    _readers: JoinSet<()>,
}

impl Supervisor {
    /// `keeper` is our own binary.
    pub fn new(keeper: PathBuf) -> Self {
        Self(Arc::new(SupervisorInner { keeper }))
    }

    pub async fn start(&self, command: Command) -> Result<Child, Error> {
        tracing::debug!(keeper = ?self.0.keeper, "not used yet");
        let program = command.program.display().to_string();
        let mut child = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .env_clear()
            .envs(&command.env)
            .current_dir(&command.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::Start { program: program.clone(), source })?;
        let (Some(stdin), Some(stdout), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::Refused { program, reason: "it has no pipes".into() });
        };
        let stderr = Stderr::default();
        let mut readers = JoinSet::new();
        let kept = stderr.clone();
        readers.spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut buffer).await {
                kept.push(&buffer[..count]);
            }
        });
        Ok(Child { stdin, stdout: Lines::new(stdout), handle: Handle { child, stderr, _readers: readers } })
    }
}

impl Handle {
    pub fn stderr(&self) -> &Stderr {
        &self.stderr
    }

    /// Waits until the program itself has ended. Cancel safe.
    pub async fn ended(&mut self) -> Ended {
        match self.child.wait().await {
            Ok(status) => status.code().map_or(Ended::Unknown, Ended::Code),
            Err(_) => Ended::Unknown,
        }
    }

    /// Ends everything in the domain and says what that took. The caller has closed the input (dropped `stdin`).
    pub async fn stop(mut self, patience: Patience) -> Receipt {
        if tokio::time::timeout(patience.input_closed, self.ended()).await.is_err() {
            tracing::debug!("killed: {:?}", self.child.kill().await);
        }
        Receipt::default()
    }
}

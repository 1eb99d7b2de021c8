//! Starts commands, and finds them again.

use super::{ProjectCommand, drive::DrivenCommand};
use crate::{
    project_sandbox::{SandboxLease, proxy_variables},
    sandboxes::{SandboxOpenError, Sandboxes},
};
use domain::{
    ids::CommandId,
    owner::Owner,
    project::{ProjectSpace, SpaceKey},
};
use sandbox::{CommandIo, CommandSpec, LeftoverProcesses, SandboxCommand, SandboxError};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, pipe},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{net::unix::pipe::Receiver, time::Instant};
use tokio_util::task::TaskTracker;

/// Commands of one workspace that are remembered after no process of them is left.
const MAX_REMEMBERED: usize = 100;
/// The broker kills within milliseconds; this allows for an overloaded machine.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRequest {
    /// A line for bash.
    pub line: String,
    /// `None`: it may run as long as its sandbox, and does not keep the sandbox open.
    pub timeout: Option<Duration>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProjectCommandError {
    #[error(transparent)]
    Sandbox(#[from] SandboxOpenError),
    #[error("{0} commands of this workspace have processes, the most there may be; stop one first")]
    TooMany(usize),
    #[error("the command could not be started: {0}")]
    Start(#[from] SandboxError),
    #[error("the command could not be started: {0}")]
    Io(#[from] io::Error),
}

/// All commands of this server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ProjectCommands(Arc<RegistryInner>);

#[derive(Debug)]
struct RegistryInner {
    sandboxes: Arc<dyn Sandboxes>,
    /// Commands of one workspace that may have processes at the same time.
    per_workspace: usize,
    commands: Mutex<BTreeMap<CommandId, Arc<ProjectCommand>>>,
    tasks: TaskTracker,
}

impl ProjectCommands {
    pub fn new(sandboxes: Arc<dyn Sandboxes>, per_workspace: usize) -> Self {
        let (commands, tasks) = (Mutex::default(), TaskTracker::new());
        Self(Arc::new(RegistryInner { sandboxes, per_workspace, commands, tasks }))
    }

    /// Takes one of the workspace's places for a command. Nothing runs yet.
    pub fn reserve(
        &self,
        space: &ProjectSpace,
        request: CommandRequest,
    ) -> Result<ReservedCommand, ProjectCommandError> {
        let CommandRequest { line, timeout } = request;
        let command = Arc::new(ProjectCommand::new(space, line));
        self.0.add(&command)?;
        Ok(ReservedCommand { registry: self.clone(), space: space.clone(), command, timeout, is_started: false })
    }

    /// Starts a command in the sandbox of a space, whose folder must exist.
    pub async fn start(
        &self,
        space: &ProjectSpace,
        request: CommandRequest,
    ) -> Result<Arc<ProjectCommand>, ProjectCommandError> {
        self.reserve(space, request)?.start().await
    }

    /// Finds a command of a space.
    pub fn find(&self, space: SpaceKey, id: CommandId) -> Option<Arc<ProjectCommand>> {
        self.0.lock().get(&id).filter(|command| command.space == space).cloned()
    }

    /// The commands of a space, the newest first.
    pub fn list(&self, space: SpaceKey) -> Vec<Arc<ProjectCommand>> {
        self.0.lock().values().rev().filter(|command| command.space == space).cloned().collect()
    }

    /// Kills a command with everything that it has started, and waits until nothing of it is left.
    pub async fn stop(&self, command: &ProjectCommand) {
        command.request_stop();
        if tokio::time::timeout(STOP_TIMEOUT, command.gone.cancelled()).await.is_err() {
            tracing::warn!(command = %command.id, "a command has not ended in time");
        }
    }

    /// Forgets the commands of a space that is deleted. Its sandbox was stopped before.
    pub fn forget(&self, space: SpaceKey) {
        self.0.lock().retain(|_, command| command.space != space);
    }
}

impl RegistryInner {
    fn add(&self, new: &Arc<ProjectCommand>) -> Result<(), ProjectCommandError> {
        let mut commands = self.lock();
        let of_workspace = |owner: &Owner| *owner == new.owner;
        let (with_processes, gone): (Vec<_>, Vec<_>) = commands
            .values()
            .filter(|command| of_workspace(&command.owner))
            .partition(|command| command.has_processes());
        if with_processes.len() >= self.per_workspace {
            return Err(ProjectCommandError::TooMany(self.per_workspace));
        }
        // Ids are sorted by time, so the first are the oldest.
        let excess = gone.len().saturating_sub(MAX_REMEMBERED - 1);
        let forgotten: Vec<CommandId> = gone.iter().take(excess).map(|command| command.id).collect();
        commands.retain(|id, _| !forgotten.contains(id));
        commands.insert(new.id, Arc::clone(new));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CommandId, Arc<ProjectCommand>>> {
        // Single inserts and removes, which no panic can leave half done.
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a command. Dropping it without [`Self::start`], or while that waits, gives it back.
#[derive(Debug)]
pub struct ReservedCommand {
    registry: ProjectCommands,
    space: ProjectSpace,
    command: Arc<ProjectCommand>,
    timeout: Option<Duration>,
    is_started: bool,
}

impl ReservedCommand {
    pub fn id(&self) -> CommandId {
        self.command.id
    }

    /// Starts the command. It runs on if nobody waits for it.
    pub async fn start(mut self) -> Result<Arc<ProjectCommand>, ProjectCommandError> {
        let (lease, running, output) = match self.run().await {
            // The sandbox ended between the two steps; a new one is opened.
            Err(ProjectCommandError::Start(SandboxError::Ended)) => self.run().await?,
            started => started?,
        };
        self.is_started = true;
        let command = Arc::clone(&self.command);
        let driven = DrivenCommand {
            command: Arc::clone(&command),
            running,
            output,
            lease: self.timeout.map(|_| lease),
            deadline: self.timeout.map(|timeout| Instant::now() + timeout),
        };
        self.registry.0.tasks.spawn(driven.drive());
        Ok(command)
    }

    async fn run(&self) -> Result<(SandboxLease, Box<dyn SandboxCommand>, Receiver), ProjectCommandError> {
        let lease = self.registry.0.sandboxes.open(&self.space).await?;
        // One pipe for both streams, so that their lines are in the order in which they were printed.
        let (reader, writer) = pipe()?;
        let stderr = writer.try_clone()?;
        let io = CommandIo { stdin: File::open("/dev/null")?.into(), stdout: writer.into(), stderr: stderr.into() };
        let output = Receiver::from_owned_fd(reader.into())?;
        let mut spec = CommandSpec {
            leftovers: LeftoverProcesses::Stay,
            ..CommandSpec::new(["bash", "-c", self.command.line.as_str()])
        };
        if !lease.spec().allowed_hosts.is_empty() {
            spec.env.extend(proxy_variables().map(|(name, value)| (name.to_owned(), value)));
        }
        let running = lease.run(spec, io).await?;
        Ok((lease, running, output))
    }
}

impl Drop for ReservedCommand {
    fn drop(&mut self) {
        if !self.is_started {
            self.registry.0.lock().remove(&self.command.id);
        }
    }
}

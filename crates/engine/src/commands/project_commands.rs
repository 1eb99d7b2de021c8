//! Runs commands in the sandbox of a project, on behalf of people. Agents do it with host tools; both use one registry.

use crate::{Engine, EngineError};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{CommandId, ProjectId},
    permission::Permission,
    project::{ProjectSpace, SpaceKey},
    project_command::CommandStatus,
    time::Timestamp,
};
use serde::Serialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use workbench::{
    project_commands::{CommandFollower, CommandRequest, CommandStep, OutputPart, ProjectCommand, ProjectCommandError},
    project_sandbox::SandboxManagerError,
    sandboxes::SandboxOpenError,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_TIMEOUT_SECONDS: u32 = 24 * 3600;
/// The kernel takes at most 128 KiB in one argument.
const MAX_COMMAND_BYTES: usize = 64 << 10;

#[derive(Debug, Clone)]
pub struct NewCommand {
    /// A line for bash.
    pub command: String,
    /// `None`: two minutes; in the background, as long as the sandbox runs.
    pub timeout_seconds: Option<u32>,
    pub background: bool,
}

/// A command of a project, without its output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ProjectCommandSummary)]
pub struct CommandSummary {
    pub id: CommandId,
    /// The line for bash.
    #[schema(examples("python3 -m pytest -q"))]
    pub command: String,
    #[serde(flatten)]
    pub status: CommandStatus,
    /// Whether processes of the command run: itself, or some that it has left behind, such as a dev server.
    pub has_processes: bool,
    /// When it was started.
    pub started_at: Timestamp,
    /// When the command itself ended; `null` before that.
    pub ended_at: Option<Timestamp>,
}

/// A command of a project, with its output after a position.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ProjectCommand)]
pub struct CommandView {
    #[serde(flatten)]
    pub summary: CommandSummary,
    /// Standard output and standard error, in the order in which they were printed: all of it after `after`, or its beginning
    /// and its end.
    pub output: String,
    /// Bytes that were left out; a line of the output says so at their place.
    pub omitted_bytes: u64,
    /// The end of the output so far. Send it as `after` to get what comes later.
    pub position: u64,
}

/// What happens to a command while a client follows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandUpdate {
    Output(OutputPart),
    Ended(CommandSummary),
}

/// A command that a client follows to its end.
#[derive(Debug)]
pub struct FollowedCommand(CommandFollower);

impl FollowedCommand {
    pub fn summary(&self) -> CommandSummary {
        CommandSummary::from(&**self.0.command())
    }

    /// Waits for output, or for the end of the command. Cancel safe.
    pub async fn next(&mut self) -> CommandUpdate {
        match self.0.next().await {
            CommandStep::Output(part) => CommandUpdate::Output(part),
            CommandStep::Ended(_) => CommandUpdate::Ended(self.summary()),
        }
    }
}

impl From<&ProjectCommand> for CommandSummary {
    fn from(command: &ProjectCommand) -> Self {
        Self {
            id: command.id,
            command: command.line.clone(),
            status: command.status(),
            has_processes: command.has_processes(),
            started_at: command.started_at,
            ended_at: command.ended_at(),
        }
    }
}

impl CommandView {
    fn new(command: &ProjectCommand, after: u64) -> Self {
        // The state first: a command that has ended prints no more, so its output is complete.
        let summary = CommandSummary::from(command);
        let OutputPart { text, omitted_bytes, next } = command.output(after);
        Self { summary, output: text, omitted_bytes, position: next }
    }
}

impl Engine {
    /// Starts a command. It runs on if the caller goes away, until its timeout.
    pub async fn start_project_command(
        &self,
        actor: &Actor,
        id: ProjectId,
        new: NewCommand,
    ) -> Result<FollowedCommand, EngineError> {
        let space = self.file_space(actor, Permission::Post, id).await?;
        let request = checked(new)?;
        // Creates the folder of the project, if nothing was in it yet.
        self.open_files(&space).await?;
        let reserved = self.config().projects.commands.reserve(&space, request).map_err(start_error)?;
        // Before it runs, and without its text, which may hold secrets.
        let entry = AuditEntry::new(actor, AuditAction::Start, AuditedObject::Command, reserved.id())
            .with_detail(json!({"project": id}));
        self.store().record_audit(entry).await?;
        Ok(FollowedCommand(reserved.start().await.map_err(start_error)?.follow(0)))
    }

    /// Follows a command from a position of its output on.
    pub async fn follow_project_command(
        &self,
        actor: &Actor,
        id: ProjectId,
        command: CommandId,
        after: u64,
    ) -> Result<FollowedCommand, EngineError> {
        Ok(FollowedCommand(self.find_command(actor, Permission::Read, id, command).await?.follow(after)))
    }

    pub async fn project_command(
        &self,
        actor: &Actor,
        id: ProjectId,
        command: CommandId,
        after: u64,
    ) -> Result<CommandView, EngineError> {
        Ok(CommandView::new(&*self.find_command(actor, Permission::Read, id, command).await?, after))
    }

    /// The commands of a project, the newest first.
    pub async fn project_commands(&self, actor: &Actor, id: ProjectId) -> Result<Vec<CommandSummary>, EngineError> {
        let owner = actor.require(Permission::Read)?;
        self.store().project(owner, id).await?;
        let commands = self.config().projects.commands.list(SpaceKey::Project(id));
        Ok(commands.iter().map(|command| CommandSummary::from(&**command)).collect())
    }

    /// Kills a command with everything that it has started.
    pub async fn stop_project_command(
        &self,
        actor: &Actor,
        id: ProjectId,
        command: CommandId,
    ) -> Result<(), EngineError> {
        let found = self.find_command(actor, Permission::Post, id, command).await?;
        let entry = AuditEntry::new(actor, AuditAction::Cancel, AuditedObject::Command, command)
            .with_detail(json!({"project": id}));
        self.store().record_audit(entry).await?;
        self.config().projects.commands.stop(&found).await;
        Ok(())
    }

    /// Starts the sandbox of a project, if it does not run.
    pub(super) async fn open_project_sandbox(&self, space: &ProjectSpace) -> Result<(), EngineError> {
        self.open_files(space).await?;
        self.config().projects.sandboxes.open(space).await.map(drop).map_err(sandbox_error)
    }

    async fn find_command(
        &self,
        actor: &Actor,
        permission: Permission,
        id: ProjectId,
        command: CommandId,
    ) -> Result<Arc<ProjectCommand>, EngineError> {
        let owner = actor.require(permission)?;
        self.store().project(owner, id).await?;
        self.config().projects.commands.find(SpaceKey::Project(id), command).ok_or(EngineError::NotFound)
    }
}

fn checked(new: NewCommand) -> Result<CommandRequest, EngineError> {
    let NewCommand { command: line, timeout_seconds, background } = new;
    if line.trim().is_empty() || line.len() > MAX_COMMAND_BYTES || line.contains('\0') {
        let detail =
            format!("command: send a line for bash, of at most {MAX_COMMAND_BYTES} bytes and without null bytes");
        return Err(EngineError::invalid_field("/command", detail));
    }
    if timeout_seconds.is_some_and(|seconds| !(1..=MAX_TIMEOUT_SECONDS).contains(&seconds)) {
        let detail = format!("timeout_seconds: send a number from 1 to {MAX_TIMEOUT_SECONDS}");
        return Err(EngineError::invalid_field("/timeout_seconds", detail));
    }
    let timeout = match timeout_seconds {
        Some(seconds) => Some(Duration::from_secs(seconds.into())),
        None => (!background).then_some(DEFAULT_TIMEOUT),
    };
    Ok(CommandRequest { line, timeout })
}

fn start_error(error: ProjectCommandError) -> EngineError {
    use ProjectCommandError as E;
    match error {
        E::TooMany(_) => EngineError::TooManyCommands(error.to_string()),
        E::Sandbox(error) => sandbox_error(error),
        E::Start(_) | E::Io(_) => EngineError::Unavailable(error.to_string()),
    }
}

fn sandbox_error(error: SandboxOpenError) -> EngineError {
    match error {
        // It says what the operator or the caller can do.
        SandboxOpenError::Unavailable(_) | SandboxOpenError::Manager(SandboxManagerError::Full(_)) => {
            EngineError::refused("", error.to_string())
        }
        SandboxOpenError::Manager(_) => EngineError::Unavailable(error.to_string()),
    }
}

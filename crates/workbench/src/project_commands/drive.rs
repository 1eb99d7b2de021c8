//! Reads the output of a running command until no process of it is left, and kills it where a limit says so.

use super::ProjectCommand;
use crate::project_sandbox::SandboxLease;
use domain::project_command::{CommandState, CommandStatus};
use sandbox::{CommandExit, SandboxCommand};
use std::{io, sync::Arc};
use tokio::{io::AsyncReadExt as _, net::unix::pipe::Receiver, time::Instant};

const BUFFER_BYTES: usize = 32 << 10;
/// A command that prints more is killed.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

pub(super) struct DrivenCommand {
    pub command: Arc<ProjectCommand>,
    pub running: Box<dyn SandboxCommand>,
    pub output: Receiver,
    /// Held until the command itself has ended: the sandbox is in use. A command without a timeout does not hold it, so that
    /// a forgotten service does not keep a sandbox open forever.
    pub lease: Option<SandboxLease>,
    pub deadline: Option<Instant>,
}

impl DrivenCommand {
    pub async fn drive(mut self) {
        if let Some(reason) = self.read_until_gone().await {
            if let Err(error) = self.running.kill().await {
                tracing::warn!(command = %self.command.id, %error, "a command could not be killed");
            }
            self.read_available();
            self.command.end(CommandStatus::of(reason));
        }
        self.command.gone.cancel();
    }

    /// Returns why what is left must be killed; `None` if nothing is left.
    async fn read_until_gone(&mut self) -> Option<CommandState> {
        let (mut buffer, mut is_open) = (vec![0; BUFFER_BYTES], true);
        loop {
            let is_running = self.command.status().is_running();
            let (running, output, deadline) = (&mut self.running, &mut self.output, self.deadline);
            let ended = async {
                match is_running {
                    true => running.wait().await,
                    false => running.wait_until_gone().await,
                }
            };
            let timeout = async {
                match deadline.filter(|_| is_running) {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let exit = tokio::select! {
                // In this order: a stop and a timeout also hold against a command that prints without end.
                biased;
                () = self.command.stop.cancelled() => return Some(CommandState::Stopped),
                () = timeout => return Some(CommandState::TimedOut),
                read = output.read(&mut buffer), if is_open => {
                    match read {
                        Ok(0) | Err(_) => is_open = false,
                        Ok(length) if self.command.push(&buffer[..length]) > MAX_OUTPUT_BYTES => {
                            return Some(CommandState::TooMuchOutput);
                        }
                        Ok(_) => {}
                    }
                    continue;
                }
                exit = ended => exit,
            };
            if !is_running {
                return None;
            }
            self.read_available();
            self.lease = None;
            self.command.end(match exit {
                CommandExit::Code(code) => CommandStatus::exited(code),
                CommandExit::Signal(signal) => CommandStatus::signaled(signal),
                CommandExit::SandboxEnded => CommandStatus::of(CommandState::SandboxEnded),
            });
        }
    }

    /// Reads what is in the pipe already. Processes that stay keep the pipe open, so it may have no end.
    fn read_available(&mut self) {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            match self.output.try_read(&mut buffer) {
                Ok(0) => return,
                Ok(length) if self.command.push(&buffer[..length]) > MAX_OUTPUT_BYTES => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

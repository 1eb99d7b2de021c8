//! A running sandbox on this machine.

use super::{
    connection::{BrokerAnswer, BrokerConnection},
    running_command::RunningCommand,
    start::StartedHelper,
};
use crate::{
    command::{CommandIo, CommandSpec, CommandUsage, LeftoverProcesses},
    driver::{ProjectSandbox, SandboxCommand, SandboxError, SandboxFuture},
    isolation::Isolation,
    protocol::{self, BrokerRequest},
};
use std::{
    io::{self, PipeWriter},
    net,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::task::TaskTracker;

const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Dropping it stops the sandbox and kills everything in it.
pub struct LocalSandbox {
    isolation: Isolation,
    connection: Arc<BrokerConnection>,
    lifeline: Mutex<Option<PipeWriter>>,
}

impl LocalSandbox {
    /// `tasks` gets the task that passes reports on and cleans up after the end.
    pub(super) fn new(helper: StartedHelper, isolation: Isolation, tasks: &TaskTracker) -> Self {
        let StartedHelper { mut process, socket, lifeline, cgroup, facts: _ } = helper;
        let connection = BrokerConnection::new(socket);
        let served = Arc::clone(&connection);
        tasks.spawn(async move {
            served.serve().await;
            // The helper ends after the last process of the sandbox. If waiting for it fails, it has been reaped.
            process.wait().await.ok();
            if let Some(cgroup) = cgroup {
                // One that cannot be removed is removed by the next server.
                tokio::task::spawn_blocking(move || cgroup.remove()).await.ok();
            }
            served.end();
        });
        Self { isolation, connection, lifeline: Mutex::new(Some(lifeline)) }
    }

    pub async fn run(&self, command: CommandSpec, io: CommandIo) -> Result<RunningCommand, SandboxError> {
        let program = command.argv.first().cloned().unwrap_or_default();
        let start_error = |source: io::Error| SandboxError::Start { program: program.clone(), source };
        let body = protocol::to_body(&command).map_err(start_error)?;
        let id = self.connection.next_id();
        let waits_for_leftovers = command.leftovers == LeftoverProcesses::End;
        // Exists before the request is sent, so that a dropped future kills the command too.
        let progress = self.connection.watch_command(id);
        let mut running = RunningCommand::new(id, waits_for_leftovers, progress, Arc::clone(&self.connection));
        let descriptors = [body.as_fd(), io.stdin.as_fd(), io.stdout.as_fd(), io.stderr.as_fd()];
        match self.connection.ask(id, &BrokerRequest::Run { id }, &descriptors).await? {
            BrokerAnswer::Started(process) => {
                running.set_process(process);
                Ok(running)
            }
            BrokerAnswer::NotStarted { errno, what } => {
                let source = io::Error::from_raw_os_error(errno);
                match what.as_str() {
                    "folder" => Err(SandboxError::Folder { program, folder: command.folder, source }),
                    _ => Err(SandboxError::Start { program, source }),
                }
            }
            _ => Err(SandboxError::Ended),
        }
    }

    pub async fn list(&self) -> Result<Vec<CommandUsage>, SandboxError> {
        let id = self.connection.next_id();
        match self.connection.ask(id, &BrokerRequest::List { id }, &[]).await? {
            BrokerAnswer::Listing(commands) => Ok(commands),
            _ => Err(SandboxError::Ended),
        }
    }

    async fn socket(&self, id: u64, port: u16, request: BrokerRequest) -> Result<OwnedFd, SandboxError> {
        match self.connection.ask(id, &request, &[]).await? {
            BrokerAnswer::Socket(Some(socket)) => Ok(socket),
            BrokerAnswer::NoSocket(errno) => {
                Err(SandboxError::Port { port, source: io::Error::from_raw_os_error(errno) })
            }
            _ => Err(SandboxError::Ended),
        }
    }

    pub async fn listen(&self, port: u16) -> Result<TcpListener, SandboxError> {
        let id = self.connection.next_id();
        let socket = self.socket(id, port, BrokerRequest::Listen { id, port }).await?;
        // Created in non-blocking mode by the broker.
        TcpListener::from_std(net::TcpListener::from(socket)).map_err(|source| SandboxError::Port { port, source })
    }

    /// Services listen on either address of localhost.
    pub async fn connect(&self, port: u16) -> Result<TcpStream, SandboxError> {
        match self.connect_to(port, false).await {
            Err(SandboxError::Port { source, .. }) if source.kind() == io::ErrorKind::ConnectionRefused => {
                self.connect_to(port, true).await
            }
            other => other,
        }
    }

    async fn connect_to(&self, port: u16, ipv6: bool) -> Result<TcpStream, SandboxError> {
        let id = self.connection.next_id();
        let socket = self.socket(id, port, BrokerRequest::Connect { id, port, ipv6 }).await?;
        let failed = |source: io::Error| SandboxError::Port { port, source };
        let stream = TcpStream::from_std(net::TcpStream::from(socket)).map_err(failed)?;
        let connected = timeout(CONNECT_TIMEOUT, stream.writable()).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(failed)?;
        match stream.take_error().map_err(failed)? {
            Some(error) => Err(failed(error)),
            None => Ok(stream),
        }
    }

    pub async fn stop(&self) -> Result<(), SandboxError> {
        drop(self.lifeline.lock().unwrap_or_else(PoisonError::into_inner).take());
        let seconds = STOP_TIMEOUT.as_secs();
        timeout(STOP_TIMEOUT, self.connection.wait_for_end()).await.map_err(|_| SandboxError::Timeout { seconds })
    }

    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }
}

impl ProjectSandbox for LocalSandbox {
    fn isolation(&self) -> &Isolation {
        self.isolation()
    }

    fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    fn run(
        &self,
        command: CommandSpec,
        io: CommandIo,
    ) -> SandboxFuture<'_, Result<Box<dyn SandboxCommand>, SandboxError>> {
        Box::pin(async { Ok(Box::new(self.run(command, io).await?) as Box<dyn SandboxCommand>) })
    }

    fn list(&self) -> SandboxFuture<'_, Result<Vec<CommandUsage>, SandboxError>> {
        Box::pin(self.list())
    }

    fn listen(&self, port: u16) -> SandboxFuture<'_, Result<TcpListener, SandboxError>> {
        Box::pin(self.listen(port))
    }

    fn connect(&self, port: u16) -> SandboxFuture<'_, Result<TcpStream, SandboxError>> {
        Box::pin(self.connect(port))
    }

    fn stop(&self) -> SandboxFuture<'_, Result<(), SandboxError>> {
        Box::pin(self.stop())
    }
}

//! The conversation with the broker of one sandbox: requests go out, reports come in and find those who wait for them.

use crate::{
    command::{CommandExit, CommandUsage},
    driver::SandboxError,
    protocol::{self, BrokerRequest, HelperReport},
    sys::socket,
};
use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{Notify, oneshot, watch},
    time::timeout,
};

/// The broker answers at once. If it does not, the machine is overloaded or the sandbox is ending.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Our end of the socket to the broker.
pub struct ControlSocket(AsyncFd<OwnedFd>);

impl ControlSocket {
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        nix::fcntl::fcntl(&socket, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
        Ok(Self(socket::watch(socket)?))
    }

    pub async fn send(&self, request: &BrokerRequest, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.0.async_io(Interest::WRITABLE, |socket| protocol::send(socket.as_fd(), request, descriptors)).await
    }

    /// `None` when the sandbox has ended.
    pub async fn receive(&self) -> io::Result<Option<(HelperReport, Vec<OwnedFd>)>> {
        self.0.async_io(Interest::READABLE, |socket| protocol::receive(socket.as_fd())).await
    }
}

/// How far a command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandProgress {
    Running,
    /// It has ended, but not all of its descendants have.
    Exited(CommandExit),
    Gone(CommandExit),
}

pub enum BrokerAnswer {
    /// The command's process, unless it has already ended.
    Started(Option<OwnedFd>),
    NotStarted {
        errno: i32,
        what: String,
    },
    Socket(Option<OwnedFd>),
    NoSocket(i32),
    Listing(Vec<CommandUsage>),
}

#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, oneshot::Sender<BrokerAnswer>>,
    commands: HashMap<u64, watch::Sender<CommandProgress>>,
    /// Commands whose handle was dropped.
    to_kill: Vec<u64>,
    has_ended: bool,
}

pub struct BrokerConnection {
    socket: ControlSocket,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
    has_work: Notify,
    ended: watch::Sender<bool>,
}

impl BrokerConnection {
    pub fn new(socket: ControlSocket) -> Arc<Self> {
        Arc::new(Self {
            socket,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            has_work: Notify::new(),
            ended: watch::Sender::new(false),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing that holds the lock can panic in the middle of a change.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Passes reports on until the sandbox has ended.
    pub async fn serve(&self) {
        loop {
            let received = tokio::select! {
                received = self.socket.receive() => received,
                () = self.has_work.notified() => {
                    self.kill_dropped().await;
                    continue;
                }
            };
            match received {
                Ok(Some((report, descriptors))) => self.route(report, descriptors),
                Ok(None) | Err(_) => break,
            }
        }
    }

    /// To be called when no process of the sandbox is left.
    pub fn end(&self) {
        let mut waiting = self.waiting();
        waiting.has_ended = true;
        waiting.answers.clear();
        for (_, command) in waiting.commands.drain() {
            command.send_modify(|progress| {
                *progress = match *progress {
                    CommandProgress::Running => CommandProgress::Gone(CommandExit::SandboxEnded),
                    CommandProgress::Exited(exit) | CommandProgress::Gone(exit) => CommandProgress::Gone(exit),
                }
            });
        }
        self.ended.send_replace(true);
    }

    pub async fn wait_for_end(&self) {
        // The sender is ours, so this cannot fail.
        self.ended.subscribe().wait_for(|ended| *ended).await.ok();
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    async fn kill_dropped(&self) {
        let dropped = std::mem::take(&mut self.waiting().to_kill);
        for command in dropped {
            // Fails only if the sandbox has ended, and the command with it.
            self.socket.send(&BrokerRequest::Kill { command }, &[]).await.ok();
        }
    }

    fn route(&self, report: HelperReport, mut descriptors: Vec<OwnedFd>) {
        let mut waiting = self.waiting();
        let mut answer = |id: u64, answer: BrokerAnswer| {
            if let Some(sender) = waiting.answers.remove(&id) {
                // Nobody waits any more if this fails.
                drop(sender.send(answer));
            }
        };
        match report {
            HelperReport::Started { id } => answer(id, BrokerAnswer::Started(descriptors.pop())),
            HelperReport::NotStarted { id, errno, what } => {
                answer(id, BrokerAnswer::NotStarted { errno, what });
                waiting.commands.remove(&id);
            }
            HelperReport::Socket { id } => answer(id, BrokerAnswer::Socket(descriptors.pop())),
            HelperReport::NoSocket { id, errno } => answer(id, BrokerAnswer::NoSocket(errno)),
            HelperReport::Listing { id, commands } => answer(id, BrokerAnswer::Listing(commands)),
            HelperReport::Exited { command, exit } => {
                if let Some(progress) = waiting.commands.get(&command) {
                    progress.send_replace(CommandProgress::Exited(exit));
                }
            }
            HelperReport::Gone { command } => {
                if let Some(progress) = waiting.commands.remove(&command) {
                    progress.send_modify(|progress| {
                        if let CommandProgress::Exited(exit) = *progress {
                            *progress = CommandProgress::Gone(exit);
                        }
                    });
                }
            }
            // Only the first report of a helper is one of these.
            HelperReport::Ready(_) | HelperReport::SetupFailed(_) => {}
        }
    }

    /// The progress of a command that is about to be started.
    pub fn watch_command(&self, id: u64) -> watch::Receiver<CommandProgress> {
        let (sender, receiver) = watch::channel(CommandProgress::Running);
        self.waiting().commands.insert(id, sender);
        receiver
    }

    pub fn kill_later(&self, command: u64) {
        let mut waiting = self.waiting();
        if !waiting.has_ended && waiting.commands.contains_key(&command) {
            waiting.to_kill.push(command);
            self.has_work.notify_one();
        }
    }

    pub async fn send(&self, request: &BrokerRequest) -> Result<(), SandboxError> {
        self.socket.send(request, &[]).await.map_err(|_| SandboxError::Ended)
    }

    pub async fn ask(
        &self,
        id: u64,
        request: &BrokerRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<BrokerAnswer, SandboxError> {
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.waiting();
            if waiting.has_ended {
                return Err(SandboxError::Ended);
            }
            waiting.answers.insert(id, sender);
        }
        self.socket.send(request, descriptors).await.map_err(|_| SandboxError::Ended)?;
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(answer) => answer.map_err(|_| SandboxError::Ended),
            Err(_) => Err(SandboxError::Timeout { seconds: ANSWER_TIMEOUT.as_secs() }),
        }
    }
}

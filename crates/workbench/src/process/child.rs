//! Starts programs, on the server's side. `handle` ends them.

use super::{
    OutputLines, ProgramHandle, StderrTail,
    cgroup::CgroupBase,
    domain_id::{self, KillDomainId, ServerInstance},
    keeper,
    keeper_protocol::{KeeperReport, Pipes, StartRequest},
    leftovers,
    process_table::ProcessEntry,
    watch::KeeperWatch,
};
use crate::project_sandbox::SandboxSpec;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    io::{self, pipe},
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::Notify,
    task::JoinSet,
    time::timeout,
};
use tokio_util::task::TaskTracker;

/// How long a start may take. A keeper needs a few milliseconds; this allows for an overloaded machine.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The program to start. Its environment is exactly `env`: nothing of the server's environment is inherited (invariant
/// 17); only the domain id is added, by which a lost process is found.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
    pub folder: PathBuf,
    /// The sandbox that the program runs in. `program` is still a path of this machine; everything else is as the program
    /// sees it. `None`: the program has the rights of the server.
    pub sandbox: Option<Arc<SandboxSpec>>,
}

impl fmt::Debug for ProcessSpec {
    /// Omits arguments and environment: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSpec")
            .field("program", &self.program)
            .field("folder", &self.folder)
            .field("sandbox", &self.sandbox.as_ref().map(|sandbox| &sandbox.key))
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ProcessStartError {
    #[error("cannot start {program}: {source}")]
    Spawn { program: String, source: io::Error },
    #[error("cannot start {program}: {reason}")]
    Refused { program: String, reason: String },
}

/// Starts programs; one per server, cheap to clone.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<SupervisorInner>);

#[derive(Debug)]
struct SupervisorInner {
    keeper: PathBuf,
    origin: Option<ServerInstance>,
    base: Option<CgroupBase>,
    /// One task per kill domain, until the domain is empty, even after its handle was dropped.
    watches: TaskTracker,
}

/// A running program: its pipes and the handle that ends it.
pub struct Child {
    pub stdin: ChildStdin,
    pub stdout: OutputLines,
    pub handle: ProgramHandle,
}

impl Supervisor {
    /// `keeper` is our own binary. Prefer `/proc/self/exe`: it stays the same when the file is replaced.
    pub fn new(keeper: PathBuf) -> Self {
        Self::with(keeper, CgroupBase::find())
    }

    /// Behaves as on a system without usable cgroups.
    pub fn without_cgroups(keeper: PathBuf) -> Self {
        Self::with(keeper, None)
    }

    fn with(keeper: PathBuf, base: Option<CgroupBase>) -> Self {
        Self(Arc::new(SupervisorInner { keeper, origin: ServerInstance::current(), base, watches: TaskTracker::new() }))
    }

    /// Returns whether each program gets its own cgroup.
    pub fn has_cgroups(&self) -> bool {
        self.0.base.is_some()
    }

    /// Ends processes left behind by servers that were killed together with their keepers. Call it when a server
    /// starts; it blocks while it reads the process table. Returns how many processes were ended.
    pub fn end_abandoned(&self) -> usize {
        self.0.origin.map_or(0, |origin| leftovers::end_abandoned(origin, self.0.base.as_ref()))
    }

    /// Returns how many kill domains started here still have processes.
    pub fn running(&self) -> usize {
        self.0.watches.len()
    }

    /// Waits until all kill domains are empty. Stop or drop their handles first.
    pub async fn wait_until_all_ended(&self) {
        self.0.watches.close();
        self.0.watches.wait().await;
    }

    pub async fn start(&self, command: ProcessSpec) -> Result<Child, ProcessStartError> {
        let program = command.program.display().to_string();
        match timeout(START_TIMEOUT, self.start_in_domain(command)).await {
            Ok(Ok(child)) => Ok(child),
            Ok(Err(StartFailure::Program(source))) => Err(ProcessStartError::Spawn { program, source }),
            Ok(Err(StartFailure::Other(reason))) => Err(ProcessStartError::Refused { program, reason }),
            Err(_) => Err(ProcessStartError::Refused {
                program,
                reason: format!("it did not start within {} s", START_TIMEOUT.as_secs()),
            }),
        }
    }

    /// Safe to drop at any point: that closes the lifeline, and the keeper ends.
    async fn start_in_domain(&self, mut command: ProcessSpec) -> Result<Child, StartFailure> {
        if command.sandbox.is_some() {
            return Err(StartFailure::Other("it belongs into a sandbox, and this launcher has none".into()));
        }
        let origin = self.0.origin.ok_or_else(|| StartFailure::Other("this system has no /proc".into()))?;
        let domain = origin.new_domain();
        command.env.insert(domain_id::DOMAIN_VARIABLE.into(), domain.to_string().into());
        command.folder = std::path::absolute(&command.folder).map_err(StartFailure::Program)?;
        if command.program.components().count() > 1 {
            command.program = std::path::absolute(&command.program).map_err(StartFailure::Program)?;
        }
        let leaf = self.0.base.as_ref().map(|base| base.leaf(&domain));
        let start = StartRequest { leaf: leaf.as_ref().map(|leaf| leaf.path().to_owned()), command };
        let start = start.encode().map_err(|reason| StartFailure::Other(reason.into()))?;

        let (lifeline, theirs) = Socket::pair().map_err(keeper_failure)?;
        let ((input, stdin), (stdout, output), (stderr, errors)) =
            (pipe().map_err(keeper_failure)?, pipe().map_err(keeper_failure)?, pipe().map_err(keeper_failure)?);
        Pipes { input: input.into(), output: output.into(), errors: errors.into() }
            .send(&lifeline)
            .map_err(keeper_failure)?;
        let keeper = start_keeper(&self.0.keeper, &domain, theirs).map_err(keeper_failure)?;
        lifeline.set_nonblocking(true).map_err(keeper_failure)?;
        let socket = UnixStream::from_std(lifeline.try_clone().map_err(keeper_failure)?).map_err(keeper_failure)?;
        let (reports, mut commands) = socket.into_split();
        let mut reports = OutputLines::new(reports);

        let length = u32::try_from(start.len())
            .map_err(|_| StartFailure::Other("its arguments and environment are too long".into()))?;
        commands.write_u32(length).await.map_err(keeper_failure)?;
        commands.write_all(&start).await.map_err(keeper_failure)?;
        // Dropping this half must not shut the socket down: the handle does that.
        commands.forget();
        let program = match reports.next().await.ok().flatten().as_deref().and_then(KeeperReport::parse) {
            Some(KeeperReport::Started { program }) => program,
            Some(KeeperReport::Failed { error, what }) if what.is_empty() => {
                return Err(StartFailure::Program(io::Error::from_raw_os_error(error)));
            }
            Some(KeeperReport::Failed { error, what }) => {
                return Err(StartFailure::Other(format!("{what}: {}", io::Error::from_raw_os_error(error))));
            }
            _ => return Err(StartFailure::Other("its keeper ended before the program started".into())),
        };
        let keeper_id = keeper.id();
        let stop_requested = Arc::new(Notify::new());
        let (watch, progress) =
            KeeperWatch::new(domain, leaf, ProcessEntry::read(program), keeper, reports, Arc::clone(&stop_requested));
        self.0.watches.spawn(watch.run());

        let stdin = ChildStdin::from_std(OwnedFd::from(stdin).into()).map_err(keeper_failure)?;
        let stdout = ChildStdout::from_std(OwnedFd::from(stdout).into()).map_err(keeper_failure)?;
        let errors = ChildStderr::from_std(OwnedFd::from(stderr).into()).map_err(keeper_failure)?;
        let stderr = StderrTail::default();
        let mut readers = JoinSet::new();
        readers.spawn(collect_stderr(errors, stderr.clone()));
        let handle = ProgramHandle {
            lifeline,
            progress,
            stop_requested,
            program,
            keeper: keeper_id,
            stderr,
            readers,
            exit_reported: false,
        };
        Ok(Child { stdin, stdout: OutputLines::new(stdout), handle })
    }
}

enum StartFailure {
    /// The system could not start the program itself.
    Program(io::Error),
    Other(String),
}

fn keeper_failure(error: io::Error) -> StartFailure {
    StartFailure::Other(format!("could not start its keeper: {error}"))
}

/// The keeper inherits nothing: no environment, no output, and no folder that would block an unmount.
fn start_keeper(binary: &Path, domain: &KillDomainId, socket: Socket) -> io::Result<tokio::process::Child> {
    tokio::process::Command::new(binary)
        .arg0(keeper::PROCESS_NAME)
        .arg(keeper::SUBCOMMAND)
        // Shown in the process list, for people and for the next server.
        .arg(domain.to_string())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // The keeper still has to clean up after we drop it.
        .kill_on_drop(false)
        .spawn()
}

/// Reads until the program and its descendants have closed the pipe.
pub async fn collect_stderr(mut errors: impl AsyncRead + Unpin, into: StderrTail) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        into.push(&buffer[..count]);
    }
}

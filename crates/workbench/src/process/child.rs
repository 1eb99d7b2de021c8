//! Starting a program, seen from the server. How it ends is in `handle`.

use super::{
    Handle, Lines, Stderr,
    cgroup::Base,
    keeper, leftovers,
    mark::{self, Mark, Origin},
    table::Entry,
    watch::Watch,
    wire::{Pipes, Report, Start},
};
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
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::Notify,
    task::JoinSet,
    time::timeout,
};
use tokio_util::task::TaskTracker;

/// From the order to start until the program runs. A keeper needs some milliseconds; this is for a machine on its knees.
const START: Duration = Duration::from_secs(10);

/// What to start. The environment is exactly `env`: nothing of the server's own gets through (invariant 17), and all
/// that is added is the mark by which a lost process is found.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
    pub folder: PathBuf,
}

impl fmt::Debug for Command {
    /// Without arguments and environment: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("program", &self.program).field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot start {program}: {reason}")]
    Refused { program: String, reason: String },
}

/// Starts programs; one per server, cheap to clone.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<SupervisorInner>);

#[derive(Debug)]
struct SupervisorInner {
    keeper: PathBuf,
    origin: Option<Origin>,
    base: Option<Base>,
    /// One per kill domain, until it is empty: also when nobody holds its handle any more.
    watches: TaskTracker,
}

/// A program that runs: its pipes, and the handle that ends it.
pub struct Child {
    pub stdin: ChildStdin,
    pub stdout: Lines,
    pub handle: Handle,
}

impl Supervisor {
    /// `keeper` is our own binary. Best given as `/proc/self/exe`: that stays the same when the file is replaced.
    pub fn new(keeper: PathBuf) -> Self {
        Self::with(keeper, Base::find())
    }

    /// As on a system that lets us have no cgroups.
    pub fn without_cgroups(keeper: PathBuf) -> Self {
        Self::with(keeper, None)
    }

    fn with(keeper: PathBuf, base: Option<Base>) -> Self {
        Self(Arc::new(SupervisorInner { keeper, origin: Origin::own(), base, watches: TaskTracker::new() }))
    }

    /// Whether each program gets a cgroup of its own.
    pub fn has_cgroups(&self) -> bool {
        self.0.base.is_some()
    }

    /// Ends what servers left behind that were killed together with their keepers. For the start of a server; blocks for
    /// as long as reading the process table takes. Returns how many processes were ended.
    pub fn sweep(&self) -> usize {
        self.0.origin.map_or(0, |origin| leftovers::end_abandoned(origin, self.0.base.as_ref()))
    }

    /// How many of those that were started here have not ended yet, with all that they started.
    pub fn living(&self) -> usize {
        self.0.watches.len()
    }

    /// Waits until nothing runs that was started here; so the handles are to be stopped or dropped first.
    pub async fn all_gone(&self) {
        self.0.watches.close();
        self.0.watches.wait().await;
    }

    pub async fn start(&self, command: Command) -> Result<Child, Error> {
        let program = command.program.display().to_string();
        match timeout(START, self.begin(command)).await {
            Ok(Ok(child)) => Ok(child),
            Ok(Err(Trouble::Program(source))) => Err(Error::Start { program, source }),
            Ok(Err(Trouble::Other(reason))) => Err(Error::Refused { program, reason }),
            Err(_) => Err(Error::Refused { program, reason: format!("nothing happened for {} s", START.as_secs()) }),
        }
    }

    /// May be dropped at any point: the lifeline goes with it.
    async fn begin(&self, mut command: Command) -> Result<Child, Trouble> {
        let origin = self.0.origin.ok_or_else(|| Trouble::Other("there is no /proc on this system".into()))?;
        let mark = origin.mark();
        command.env.insert(mark::VARIABLE.into(), mark.to_string().into());
        command.folder = std::path::absolute(&command.folder).map_err(Trouble::Program)?;
        if command.program.components().count() > 1 {
            command.program = std::path::absolute(&command.program).map_err(Trouble::Program)?;
        }
        let leaf = self.0.base.as_ref().map(|base| base.leaf(&mark));
        let start = Start { leaf: leaf.as_ref().map(|leaf| leaf.path().to_owned()), command };
        let start = start.encode().map_err(|reason| Trouble::Other(reason.into()))?;

        let (lifeline, theirs) = Socket::pair().map_err(broken)?;
        let ((input, stdin), (stdout, output), (stderr, errors)) =
            (pipe().map_err(broken)?, pipe().map_err(broken)?, pipe().map_err(broken)?);
        Pipes { input: input.into(), output: output.into(), errors: errors.into() }.send(&lifeline).map_err(broken)?;
        let keeper = start_keeper(&self.0.keeper, &mark, theirs).map_err(broken)?;
        lifeline.set_nonblocking(true).map_err(broken)?;
        let socket = UnixStream::from_std(lifeline.try_clone().map_err(broken)?).map_err(broken)?;
        let (reports, mut orders) = socket.into_split();
        let mut reports = Lines::new(reports);

        let length = u32::try_from(start.len()).map_err(|_| Trouble::Other("it is too long".into()))?;
        orders.write_u32(length).await.map_err(broken)?;
        orders.write_all(&start).await.map_err(broken)?;
        // Shut down by hand, and by the end of the last copy; not by the end of this one.
        orders.forget();
        let program = match reports.next().await.ok().flatten().as_deref().and_then(Report::parse) {
            Some(Report::Started { program }) => program,
            Some(Report::Failed { error, what }) if what.is_empty() => {
                return Err(Trouble::Program(io::Error::from_raw_os_error(error)));
            }
            Some(Report::Failed { error, what }) => {
                return Err(Trouble::Other(format!("{what}: {}", io::Error::from_raw_os_error(error))));
            }
            _ => return Err(Trouble::Other("its keeper ended before it could".into())),
        };
        let keeper_id = keeper.id();
        let impatient = Arc::new(Notify::new());
        let (watch, progress) = Watch::new(mark, leaf, Entry::read(program), keeper, reports, Arc::clone(&impatient));
        self.0.watches.spawn(watch.run());

        let stdin = ChildStdin::from_std(OwnedFd::from(stdin).into()).map_err(broken)?;
        let stdout = ChildStdout::from_std(OwnedFd::from(stdout).into()).map_err(broken)?;
        let errors = ChildStderr::from_std(OwnedFd::from(stderr).into()).map_err(broken)?;
        let stderr = Stderr::default();
        let mut readers = JoinSet::new();
        readers.spawn(gather(errors, stderr.clone()));
        let handle = Handle { lifeline, progress, impatient, program, keeper: keeper_id, stderr, readers, told: false };
        Ok(Child { stdin, stdout: Lines::new(stdout), handle })
    }
}

enum Trouble {
    /// The system would not start the program itself.
    Program(io::Error),
    Other(String),
}

fn broken(error: io::Error) -> Trouble {
    Trouble::Other(format!("its keeper cannot be started: {error}"))
}

/// With nothing of ours: no environment, no output, no folder that could not be unmounted.
fn start_keeper(binary: &Path, mark: &Mark, socket: Socket) -> io::Result<tokio::process::Child> {
    tokio::process::Command::new(binary)
        .arg0(keeper::NAME)
        .arg(keeper::WORD)
        // For whoever looks at the process list: people, and the next server.
        .arg(mark.to_string())
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // It has work to do when we are done with it.
        .kill_on_drop(false)
        .spawn()
}

async fn gather(mut errors: ChildStderr, into: Stderr) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        into.push(&buffer[..count]);
    }
}

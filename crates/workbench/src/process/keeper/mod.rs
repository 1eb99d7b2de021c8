//! The keeper process: our own binary, started again to hold one program and its descendants.
//!
//! It never reads the program's output: the pipes connect server and program directly. It kills everything when the
//! program has ended, when the server asks for it, or when the server has died. `held_program` does that.
//!
//! It is deliberately not called `greenroom` in the process list: killing all processes of that name kills the servers,
//! and the keepers survive to clean up.

mod held_program;

use super::{
    ProcessSpec,
    cgroup::LeafCgroup,
    keeper_protocol::{self, KeeperReport, Pipes, StartRequest},
};
use held_program::HeldProgram;
use rustix::process::{getpid, set_child_subreaper, setsid};
use std::{
    io,
    os::{
        fd::AsFd as _,
        unix::{net::UnixStream as Socket, process::CommandExt as _},
    },
    process::{ExitCode, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

/// The first command-line argument that makes the binary a keeper.
pub const SUBCOMMAND: &str = "__keep";
/// The keeper's name in the process list.
pub const PROCESS_NAME: &str = "gr-keeper";
/// How long to wait for the start request, which the server sends at once.
const START_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a keeper. Call it first in the binary's `main`.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{SUBCOMMAND} is an internal command of the server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    // Our end of the socket pair is stdin.
    let socket = Socket::from(io::stdin().as_fd().try_clone_to_owned()?);
    let pipes = Pipes::receive(&socket)?;
    rustix::thread::set_name(c"gr-keeper")?;
    // Detaches from the terminal and from signals to the server's process group.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    socket.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(keep(socket, pipes))
}

async fn keep(socket: Socket, pipes: Pipes) -> io::Result<()> {
    let (mut commands, mut reports) = UnixStream::from_std(socket)?.into_split();
    let _signals = ignore_signals()?;
    let child_exits = signal(SignalKind::child())?;
    let start = timeout(START_REQUEST_TIMEOUT, receive_start_request(&mut commands)).await??;
    let leaf = start.leaf.map(LeafCgroup::from_path).and_then(enter_leaf);
    let started = spawn(start.command, pipes);
    let report = match &started {
        Ok(program) => KeeperReport::Started { program: *program },
        Err((error, what)) => KeeperReport::Failed { error: error.raw_os_error().unwrap_or(0), what: what.clone() },
    };
    let reported = reports.write_all(report.to_string().as_bytes()).await;
    // After the report: the first move in a while takes the kernel some milliseconds.
    let leaf = leaf.and_then(leave_leaf);
    match (started, reported) {
        // If the report failed, `run` finds the socket closed and ends at once.
        (Ok(program), _) => HeldProgram::new(program, leaf, child_exits).run(commands, reports).await,
        (Err(_), reported) => {
            if let Some(leaf) = leaf {
                leaf.remove(Duration::ZERO)?;
            }
            reported
        }
    }
}

/// Signals sent to a keeper by mistake must not end it before its program: only the lifeline decides. They are caught
/// and not blocked, so that the program starts with default signal handling.
fn ignore_signals() -> io::Result<Vec<Signal>> {
    let kinds = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
        SignalKind::alarm(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ];
    kinds.into_iter().map(signal).collect()
}

async fn receive_start_request(commands: &mut (impl AsyncRead + Unpin)) -> io::Result<StartRequest> {
    let length = usize::try_from(commands.read_u32().await?).unwrap_or(usize::MAX);
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "invalid start request");
    if length > keeper_protocol::MAX_START_BYTES {
        return Err(garbled());
    }
    let mut bytes = vec![0; length];
    commands.read_exact(&mut bytes).await?;
    StartRequest::decode(&bytes).ok_or_else(garbled)
}

/// Creates and enters the leaf if possible; cleanup also works without one.
fn enter_leaf(leaf: LeafCgroup) -> Option<LeafCgroup> {
    leaf.create().ok()?;
    match leaf.enter() {
        Ok(()) => Some(leaf),
        Err(_) => {
            leaf.remove(Duration::ZERO).ok();
            None
        }
    }
}

/// The keeper must leave the leaf before the leaf can be killed.
fn leave_leaf(leaf: LeafCgroup) -> Option<LeafCgroup> {
    leaf.leave().ok().map(|()| leaf)
}

fn spawn(command: ProcessSpec, pipes: Pipes) -> Result<i32, (io::Error, String)> {
    // The system's error would be the same as for a missing program.
    let folder = std::fs::metadata(&command.folder).and_then(|found| match found.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    if let Err(error) = folder {
        return Err((error, format!("cannot use the folder {}", command.folder.display())));
    }
    let child = std::process::Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .envs(&command.env)
        .current_dir(&command.folder)
        .stdin(Stdio::from(pipes.input))
        .stdout(Stdio::from(pipes.output))
        .stderr(Stdio::from(pipes.errors))
        .process_group(0)
        .spawn()
        .map_err(|error| (error, String::new()))?;
    i32::try_from(child.id()).map_err(|error| (io::Error::other(error), String::new()))
}

//! The other side of the lifeline: our own binary, started again to hold one program and whatever that starts.
//!
//! It never reads what the program says: the pipes go straight between server and program. It knows three reasons to
//! kill everything: the program has ended, the server says so, the server is gone. `hold` does it.
//!
//! It is deliberately not called `greenroom` in the process list, so that whoever kills all of those by name kills the
//! servers, and the keepers live to clean up.

mod hold;

use super::{
    Command,
    cgroup::Leaf,
    wire::{self, Pipes, Report, Start},
};
use hold::Hold;
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

/// The word after the binary's name that makes it a keeper.
pub const WORD: &str = "__keep";
/// Its name in the process list.
pub const NAME: &str = "gr-keeper";
/// The server sends what to start right away.
const FIRST_WORD: Duration = Duration::from_secs(10);

/// The whole life of a keeper. For the binary's `main`, before anything else.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{WORD} is for the server's own use: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    // The socket pair comes as our standard input.
    let socket = Socket::from(io::stdin().as_fd().try_clone_to_owned()?);
    let pipes = Pipes::receive(&socket)?;
    rustix::thread::set_name(c"gr-keeper")?;
    // No terminal, and none of the signals that are meant for the server's process group.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    socket.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(keep(socket, pipes))
}

async fn keep(socket: Socket, pipes: Pipes) -> io::Result<()> {
    let (mut orders, mut reports) = UnixStream::from_std(socket)?.into_split();
    let _deaf = ignore_signals()?;
    let children = signal(SignalKind::child())?;
    let start = timeout(FIRST_WORD, receive(&mut orders)).await??;
    let leaf = start.leaf.map(Leaf::at).and_then(entered);
    let started = spawn(start.command, pipes);
    let report = match &started {
        Ok(program) => Report::Started { program: *program },
        Err((error, what)) => Report::Failed { error: error.raw_os_error().unwrap_or(0), what: what.clone() },
    };
    let told = reports.write_all(report.to_string().as_bytes()).await;
    // After the answer: the first move in a while takes the kernel some milliseconds.
    let leaf = leaf.and_then(left);
    match (started, told) {
        // With a server that did not even hear that, the hold finds its side closed, and ends at once.
        (Ok(program), _) => Hold::new(program, leaf, children).run(orders, reports).await,
        (Err(_), told) => {
            if let Some(leaf) = leaf {
                leaf.remove(Duration::ZERO)?;
            }
            told
        }
    }
}

/// What others send to keepers by mistake must not end them before their programs: the lifeline alone decides. Caught
/// and not blocked, so that the program starts with the usual answers to all of them.
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

async fn receive(orders: &mut (impl AsyncRead + Unpin)) -> io::Result<Start> {
    let length = usize::try_from(orders.read_u32().await?).unwrap_or(usize::MAX);
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "the server's words make no sense");
    if length > wire::MAX_START_BYTES {
        return Err(garbled());
    }
    let mut bytes = vec![0; length];
    orders.read_exact(&mut bytes).await?;
    Start::decode(&bytes).ok_or_else(garbled)
}

/// Into the leaf, if there can be one; the sweep does without.
fn entered(leaf: Leaf) -> Option<Leaf> {
    leaf.make().ok()?;
    match leaf.enter() {
        Ok(()) => Some(leaf),
        Err(_) => {
            leaf.remove(Duration::ZERO).ok();
            None
        }
    }
}

/// A leaf that holds the keeper too must not be killed.
fn left(leaf: Leaf) -> Option<Leaf> {
    leaf.leave().ok().map(|()| leaf)
}

fn spawn(command: Command, pipes: Pipes) -> Result<i32, (io::Error, String)> {
    // The system's own answer would be the same as for a program that is missing.
    let folder = std::fs::metadata(&command.folder).and_then(|found| match found.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    if let Err(error) = folder {
        return Err((error, format!("cannot work in {}", command.folder.display())));
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

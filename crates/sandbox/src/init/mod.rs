//! The helper: our own binary, started again, with one thread and without a runtime.
//!
//! 1. `supervise` enters new namespaces (`namespaces`), forks the broker and waits for its end or for the server's.
//! 2. The broker, which is pid 1 of the sandbox, builds a root folder (`root`) and gives up all rights (`confine`): user,
//!    capabilities, limits, Landlock, seccomp. Nothing that a command can do happens before that.
//! 3. `broker` waits for requests and starts a `shepherd` for each command.
//!
//! Must not start a thread, print, or read the environment.

mod broker;
mod children;
mod confine;
mod landlock_rules;
mod limits;
mod loopback_sockets;
mod namespaces;
mod process_counts;
mod root;
mod seccomp_filter;
mod setup;
mod shepherd;
mod supervise;

use crate::{
    protocol::{self, HelperStart, StartHelper},
    sys::{descriptors, fork::SingleThread},
};
use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    process::ExitCode,
};

/// The first command-line argument that makes the binary a sandbox helper.
pub const SUBCOMMAND: &str = "__sandbox";

/// Runs the helper. Call it first in the binary's `main`, before anything starts a thread or opens a file.
pub fn helper_main() -> ExitCode {
    match receive_start() {
        Ok((thread, start, socket, lifeline)) => supervise::run(thread, &start, socket, lifeline),
        Err(error) => {
            eprintln!("{SUBCOMMAND} is an internal command of the server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn receive_start() -> io::Result<(SingleThread, HelperStart, OwnedFd, OwnedFd)> {
    descriptors::close_inherited()?;
    let thread = SingleThread::check()?;
    let socket = descriptors::take_stdin()?;
    let garbled = || io::Error::new(io::ErrorKind::InvalidData, "invalid start message");
    let (StartHelper, received) = protocol::receive(socket.as_fd())?.ok_or_else(garbled)?;
    let [body, lifeline] = <[OwnedFd; 2]>::try_from(received).map_err(|_| garbled())?;
    Ok((thread, protocol::from_body(body)?, socket, lifeline))
}

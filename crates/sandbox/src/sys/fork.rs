//! `fork`, for a process with one thread only.

use nix::{
    errno::Errno,
    unistd::{ForkResult, Pid},
};
use std::{fs, io};

/// Proof that this process has one thread, and never starts another: only the helper creates it.
#[derive(Clone, Copy)]
pub struct SingleThread(());

impl SingleThread {
    pub fn check() -> io::Result<Self> {
        match fs::read_dir("/proc/self/task")?.count() {
            1 => Ok(Self(())),
            threads => Err(io::Error::other(format!("the sandbox helper has {threads} threads"))),
        }
    }
}

pub enum Forked {
    Child,
    Parent(Pid),
}

pub fn fork(_: SingleThread) -> Result<Forked, Errno> {
    // SAFETY: with a single thread, the child has a complete copy: no lock is held by a thread that does not exist there.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Child => Ok(Forked::Child),
        ForkResult::Parent { child } => Ok(Forked::Parent(child)),
    }
}

/// Ends this process without running what was registered for the end: that belongs to the process it was forked from.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(code) }
}

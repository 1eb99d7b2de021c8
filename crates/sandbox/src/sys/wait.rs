//! `waitpid` for any child and any signal: `nix` knows no real-time signals, and loses a child that was killed by one.

use crate::command::CommandExit;
use nix::{errno::Errno, unistd::Pid};

/// The next child that has ended. `None` if `block` is not set and all of them are still running.
pub fn for_any_child(block: bool) -> Result<Option<(Pid, CommandExit)>, Errno> {
    let mut status = 0;
    let flags = if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the status is valid for the call.
        match Errno::result(unsafe { libc::waitpid(-1, &raw mut status, flags) }) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(0) => return Ok(None),
            Ok(child) if libc::WIFSIGNALED(status) => {
                return Ok(Some((Pid::from_raw(child), CommandExit::Signal(libc::WTERMSIG(status)))));
            }
            Ok(child) => return Ok(Some((Pid::from_raw(child), CommandExit::Code(libc::WEXITSTATUS(status))))),
        }
    }
}

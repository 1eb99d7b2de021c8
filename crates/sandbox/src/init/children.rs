//! The children of this process.

use crate::{command::CommandExit, sys::wait};
use nix::unistd::{Pid, getpid};
use std::{fs, io};

/// All of them, orphans that this process has adopted included.
pub fn list() -> io::Result<Vec<Pid>> {
    let own = getpid();
    let listed = fs::read_to_string(format!("/proc/{own}/task/{own}/children"))?;
    Ok(listed.split_whitespace().filter_map(|id| id.parse().ok()).map(Pid::from_raw).collect())
}

/// Reaps all children that have ended.
pub fn reap(mut ended: impl FnMut(Pid, CommandExit)) {
    while let Ok(Some((child, exit))) = wait::for_any_child(false) {
        ended(child, exit);
    }
}

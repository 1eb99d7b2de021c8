//! The children of this process.

use crate::{command::CommandExit, sys::wait};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, getpid},
};
use std::{
    fs, io,
    thread::sleep,
    time::{Duration, Instant},
};

/// By invariant 5, two seconds after the server's end nothing of it is alive.
const KILL_TIMEOUT: Duration = Duration::from_millis(1500);
const PAUSE: Duration = Duration::from_millis(2);

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

/// Kills all descendants: those of a killed child become our children. For a process that adopts orphans.
pub fn kill_all() {
    let deadline = Instant::now() + KILL_TIMEOUT;
    while Instant::now() < deadline {
        reap(|_, _| {});
        match list() {
            Ok(found) if !found.is_empty() => found.into_iter().for_each(|child| {
                // Fails only for a child that has ended.
                kill(child, Signal::SIGKILL).ok();
            }),
            _ => return,
        }
        sleep(PAUSE);
    }
}

//! Finds and kills processes that a thread's commands left running. Codex sets the thread's id in the environment of
//! each command, and child processes inherit it, even in another session, in a namespace or under another parent. Only
//! a process that clears its environment is not found; it is killed with the instance.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{collections::BTreeSet, path::PathBuf};

const MARK: &str = "CODEX_THREAD_ID";

/// Returns the ids of the thread's running processes.
pub fn running(thread: &str) -> BTreeSet<i32> {
    marked_processes(thread).map(|pid| pid.as_raw_nonzero().get()).collect()
}

/// Kills the leftover processes and returns their ids.
pub fn kill(thread: &str) -> Vec<i32> {
    marked_processes(thread).filter(|pid| kill_process(*pid, thread)).map(|pid| pid.as_raw_nonzero().get()).collect()
}

fn kill_process(pid: Pid, thread: &str) -> bool {
    // Open a handle first, then check again: the process id may have been reused, but the handle cannot change.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    is_marked(pid, thread) && pidfd_send_signal(process, Signal::KILL).is_ok()
}

fn marked_processes(thread: &str) -> impl Iterator<Item = Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    ids.filter(move |pid| is_marked(*pid, thread))
}

/// A zombie process has no environment.
fn is_marked(pid: Pid, thread: &str) -> bool {
    let path = PathBuf::from(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let Ok(environment) = std::fs::read(path) else { return false };
    let mark = format!("{MARK}={thread}");
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{kill, running};
    use std::process::Command;

    #[test]
    fn kills_only_processes_of_the_thread() {
        let start = |thread: &str| Command::new("sleep").arg("60").env("CODEX_THREAD_ID", thread).spawn().unwrap();
        let (mut ours, mut others) = (start("leftovers-one"), start("leftovers-two"));
        let count = |thread: &str| running(thread).len();
        assert_eq!((count("leftovers-one"), count("leftovers")), (1, 0));
        let killed = kill("leftovers-one");
        assert_eq!(killed, [i32::try_from(ours.id()).unwrap()]);
        assert!(!ours.wait().unwrap().success());
        assert_eq!((count("leftovers-one"), count("leftovers-two")), (0, 1));
        others.kill().unwrap();
        others.wait().unwrap();
    }
}

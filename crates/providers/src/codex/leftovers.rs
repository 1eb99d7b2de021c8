//! What a thread's commands left behind. Codex puts the thread's id into the environment of each command it runs, and
//! what that starts inherits it, wherever it hides: in a session of its own, in a namespace, under another parent. Only
//! a process that cleared its environment is not found; that one ends with the instance.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::path::PathBuf;

const MARK: &str = "CODEX_THREAD_ID";

/// How many there are.
pub fn count(thread: &str) -> usize {
    found(thread).count()
}

/// Kills what there is and says which.
pub fn kill(thread: &str) -> Vec<i32> {
    found(thread).filter(|pid| end(*pid, thread)).map(|pid| pid.as_raw_nonzero().get()).collect()
}

fn end(pid: Pid, thread: &str) -> bool {
    // Held before it is looked at again: the number could be somebody else's by now, the handle could not.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    is_marked(pid, thread) && pidfd_send_signal(process, Signal::KILL).is_ok()
}

fn found(thread: &str) -> impl Iterator<Item = Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    ids.filter(move |pid| is_marked(*pid, thread))
}

/// A process that has ended and is only waited for has no environment any more.
fn is_marked(pid: Pid, thread: &str) -> bool {
    let path = PathBuf::from(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let Ok(environment) = std::fs::read(path) else { return false };
    let mark = format!("{MARK}={thread}");
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{count, kill};
    use std::process::Command;

    #[test]
    fn only_what_bears_the_threads_mark_is_ended() {
        let start = |thread: &str| Command::new("sleep").arg("60").env("CODEX_THREAD_ID", thread).spawn().unwrap();
        let (mut ours, mut others) = (start("leftovers-one"), start("leftovers-two"));
        assert_eq!((count("leftovers-one"), count("leftovers")), (1, 0));
        let killed = kill("leftovers-one");
        assert_eq!(killed, [i32::try_from(ours.id()).unwrap()]);
        assert!(!ours.wait().unwrap().success());
        assert_eq!((count("leftovers-one"), count("leftovers-two")), (0, 1));
        others.kill().unwrap();
        others.wait().unwrap();
    }
}

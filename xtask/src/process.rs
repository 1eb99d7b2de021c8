//! Waiting for processes and ending them, always with a deadline.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::repository::XtaskResult;

const POLL: Duration = Duration::from_millis(20);
/// How long a process may take to end after SIGKILL.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// None when the process still runs at the end of the limit.
pub fn wait(child: &mut Child, limit: Duration) -> XtaskResult<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
            Ok(status) => return Ok(status),
            Err(error) => return Err(format!("cannot wait for process {}: {error}", child.id())),
        }
    }
}

/// SIGTERM, then SIGKILL after the grace period. Returns whether the process has ended.
pub fn terminate(child: &mut Child, grace: Duration) -> bool {
    end(child, &child.id().to_string(), grace)
}

/// The same for every process in the child's process group, which the child must lead.
pub fn terminate_group(child: &mut Child, grace: Duration) -> bool {
    end(child, &format!("-{}", child.id()), grace)
}

fn end(child: &mut Child, target: &str, grace: Duration) -> bool {
    // A child that has ended has no id any more: the number may belong to somebody else.
    if !matches!(child.try_wait(), Ok(None)) {
        return true;
    }
    signal("-TERM", target);
    if matches!(wait(child, grace), Ok(Some(_))) {
        return true;
    }
    signal("-KILL", target);
    matches!(wait(child, KILL_LIMIT), Ok(Some(_)))
}

/// With the program `kill`, because the standard library knows only SIGKILL, and no groups.
fn signal(name: &str, target: &str) {
    let sent = Command::new("kill").args([name, "--", target]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if let Err(error) = sent {
        eprintln!("cannot run `kill {name} -- {target}`: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).process_group(0).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn waiting_has_a_limit() {
        let mut child = shell("sleep 60");
        assert_eq!(wait(&mut child, Duration::from_millis(50)), Ok(None));
        assert!(terminate_group(&mut child, LONG));
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let mut child = shell("trap '' TERM; echo ready; sleep 60 & wait");
        let mut ready = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        assert!(terminate_group(&mut child, Duration::from_millis(100)));
        assert_eq!(child.try_wait().unwrap().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_group_ends_with_its_leader() {
        let mut child = shell("sleep 60 & echo $!; wait");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        assert!(terminate_group(&mut child, LONG));
        let is_running = |id: &str| Command::new("kill").args(["-0", id]).output().unwrap().status.success();
        let deadline = Instant::now() + LONG;
        while is_running(line.trim()) {
            assert!(Instant::now() < deadline, "{line} still runs");
            std::thread::sleep(POLL);
        }
    }
}

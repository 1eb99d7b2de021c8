//! A server in the clean root: started, asked, stopped. It is killed when it is dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use super::clean_root::CleanRoot;
use super::http;
use crate::process::{terminate, wait};
use crate::repository::{XtaskResult, cannot_run};

/// What people may have to wait for.
pub const START_LIMIT: Duration = Duration::from_secs(10);
/// The server itself stops within 30 s.
const STOP_LIMIT: Duration = Duration::from_secs(35);
const ANNOUNCEMENT: &str = "Greenroom is listening on http://";
const LAST_LINES: usize = 20;

pub struct CheckedServer {
    /// `unshare`, which waits for the server and ends with its exit code.
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    /// From the start of the program to its first answer.
    pub took: Duration,
}

impl CheckedServer {
    /// Returns when it is healthy.
    pub fn start(root: &CleanRoot, program: &str, data: &str) -> XtaskResult<Self> {
        let log = root.path().join("tmp/server.log");
        let file = File::create(&log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut command = root.command(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir", data]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(|error| cannot_run(&command, &error))?;
        let output = child.stdout.take();
        // From here on, dropping it ends the process.
        let mut server = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), log, took: Duration::ZERO };
        let lines = output.map(read_apart).ok_or("the server has no output")?;
        let announced = loop {
            match lines.recv_timeout(START_LIMIT.saturating_sub(begun.elapsed())) {
                Ok(line) => match announced_address(&line) {
                    Some(address) => break address,
                    None => continue,
                },
                Err(_) => return Err(server.complain("did not say where it listens")),
            }
        };
        server.address = announced;
        server.get("/healthz")?;
        server.took = begun.elapsed();
        match server.took < START_LIMIT {
            true => Ok(server),
            false => Err(server.complain("took too long to start")),
        }
    }

    pub fn get(&self, path: &str) -> XtaskResult<String> {
        http::get(self.address, path).map_err(|message| format!("{message}\n{}", last_lines(&self.log)))
    }

    /// As systemd does it. Returns how long it took.
    pub fn stop(mut self) -> XtaskResult<Duration> {
        let server = first_child(self.child.id()).ok_or("the server is not running any more")?;
        let begun = Instant::now();
        let sent = Command::new("kill").args(["-TERM", "--", &server.to_string()]).status();
        if !sent.is_ok_and(|status| status.success()) {
            return Err(self.complain("cannot be sent a signal"));
        }
        match wait(&mut self.child, STOP_LIMIT)? {
            Some(status) if status.success() => Ok(begun.elapsed()),
            Some(status) => Err(self.complain(&format!("ended with {status}"))),
            None => Err(self.complain(&format!("did not stop within {} s", STOP_LIMIT.as_secs()))),
        }
    }

    fn complain(&self, what: &str) -> String {
        format!("the server {what}; its log ends with:\n{}", last_lines(&self.log))
    }
}

impl Drop for CheckedServer {
    fn drop(&mut self) {
        // `unshare` kills the server when it is killed itself.
        if !terminate(&mut self.child, Duration::ZERO) {
            eprintln!("the server (process {}) does not stop; end it by hand", self.child.id());
        }
    }
}

/// On a thread of its own, because reading has no deadline.
fn read_apart(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = sync_channel(16);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Read on without a receiver, so that the server's output never blocks.
            sender.send(line).unwrap_or_default();
        }
    });
    lines
}

fn announced_address(line: &str) -> Option<SocketAddr> {
    line.strip_prefix(ANNOUNCEMENT)?.trim().parse().ok()
}

fn first_child(process: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn the_address_is_read_from_the_announcement() {
        let address = announced_address("Greenroom is listening on http://127.0.0.1:43121\n");
        assert_eq!(address, Some(SocketAddr::from(([127, 0, 0, 1], 43121))));
        assert_eq!(announced_address("Greenroom is starting"), None);
    }

    #[test]
    fn the_first_child_of_a_process_is_found() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped()).process_group(0);
        let mut shell = shell.spawn().unwrap();
        let line = read_apart(shell.stdout.take().unwrap()).recv_timeout(STOP_LIMIT).unwrap();
        let child = first_child(shell.id()).unwrap();
        assert_eq!(child.to_string(), line);
        assert_eq!(first_child(child), None);
        assert!(crate::process::terminate_group(&mut shell, STOP_LIMIT));
    }
}

//! `cargo xtask serve --dev`: a debug server that is built and started again when its source changes, and Vite's
//! development server for the web app.
//!
//! As with PostgreSQL, a guard process does the work and ends everything when the pipe to its owner closes, however the
//! owner ends. Control-C ends the owner; the guard is in a process group of its own.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use super::sources::{self, SourceTimes};
use crate::prerequisites::{self, C_COMPILER, NODE};
use crate::process::terminate_group;
use crate::progress::TextOutput;
use crate::repository::{BuildProfile, Repository, XtaskResult, cannot_run, own_program};
use crate::steps::Steps;
use crate::web;

pub const GUARD_COMMAND: &str = "serve-dev-guard";

const LOOK: Duration = Duration::from_millis(500);
/// The server stops within 30 s.
const GRACE: Duration = Duration::from_secs(35);
const DEFAULT_ADDRESS: &str = "127.0.0.1:7878";
/// Where the development binary is, apart from the one that tests use.
const FOLDER: &str = "dev";

pub fn command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let mut guard = Command::new(own_program()?);
    guard.arg(GUARD_COMMAND).args(arguments).stdin(Stdio::piped()).process_group(0);
    let mut guard = guard.spawn().map_err(|error| cannot_run(&guard, &error))?;
    // Not `wait`, which would close the pipe first: that is the signal to stop.
    let pipe = guard.stdin.take();
    let status = guard.wait().map_err(|error| format!("cannot wait for the development servers: {error}"));
    drop(pipe);
    Ok(if status?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub fn guard_command(arguments: &[String]) -> XtaskResult<ExitCode> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let owner = watch_owner(Arc::clone(&has_ended));
    let repository = Repository::locate()?;
    let steps = Steps::open_plain(&repository, "serve", TextOutput::Stderr, has_ended)?;
    prerequisites::ensure(&[C_COMPILER, NODE], &steps)?;
    web::install(&repository, &steps)?;
    let address = listen_address(arguments);
    let mut servers = DevServers { repository: &repository, steps: &steps, arguments, server: None, vite: None };
    servers.start_vite(&format!("http://{address}"))?;
    let mut built = SourceTimes::new();
    loop {
        let now = sources::times(repository.root());
        if now != built && is_settled(&repository, &now, &owner) {
            servers.rebuild(&sources::changes(&built, &now));
            built = now;
        }
        servers.check()?;
        match owner.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

/// An editor may write several files: a build starts when nothing changes between two looks.
fn is_settled(repository: &Repository, now: &SourceTimes, owner: &Receiver<()>) -> bool {
    matches!(owner.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) && sources::times(repository.root()) == *now
}

/// The channel closes when the owner ends; the flag stops a build that is running then.
fn watch_owner(has_ended: Arc<AtomicBool>) -> Receiver<()> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        // The owner never writes: this returns when the pipe closes.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap_or_default();
        has_ended.store(true, Ordering::Relaxed);
        drop(sender);
    });
    receiver
}

struct DevServers<'a> {
    repository: &'a Repository,
    steps: &'a Steps,
    arguments: &'a [String],
    server: Option<Child>,
    vite: Option<Child>,
}

impl DevServers<'_> {
    fn start_vite(&mut self, server_url: &str) -> XtaskResult<()> {
        self.vite = Some(start(&mut web::dev_server(self.repository, server_url))?);
        Ok(())
    }

    /// A server that does not build is reported, and the one before it keeps running.
    fn rebuild(&mut self, changed: &[&Path]) {
        if self.server.is_some() {
            self.steps.say(&format!("Changed: {}", describe(changed, self.repository.root())));
        }
        let build = self.repository.build(BuildProfile::Debug, &["greenroom"], &["greenroom"]);
        let mut build = self.repository.build_into(FOLDER, build);
        if let Err(message) = self.steps.build("Building the server", &mut build) {
            return self.steps.say(&format!("Not restarted: {message}"));
        }
        if let Some(mut old) = self.server.take() {
            self.steps.say("Restarting the server");
            self.end("the server", &mut old);
        }
        let binary = self.repository.binary_in(FOLDER, BuildProfile::Debug, "greenroom");
        match start(self.repository.program(&binary).arg("serve").args(self.arguments)) {
            Ok(server) => self.server = Some(server),
            Err(message) => self.steps.say(&message),
        }
    }

    /// A server that has ended is started again by the next change; without Vite there is nothing to wait for.
    fn check(&mut self) -> XtaskResult<()> {
        if let Some(Ok(Some(status))) = self.server.as_mut().map(Child::try_wait) {
            self.steps.say(&format!("The server ended with {status}. It starts again when a source changes."));
            self.server = None;
        }
        match self.vite.as_mut().map(Child::try_wait) {
            Some(Ok(Some(status))) => Err(format!("Vite ended with {status}")),
            _ => Ok(()),
        }
    }

    fn end(&self, name: &str, child: &mut Child) {
        if !terminate_group(child, GRACE) {
            self.steps.say(&format!("Cannot end {name}; end process {} by hand", child.id()));
        }
    }
}

impl Drop for DevServers<'_> {
    fn drop(&mut self) {
        for (name, child) in [("Vite", self.vite.take()), ("the server", self.server.take())] {
            if let Some(mut child) = child {
                self.end(name, &mut child);
            }
        }
    }
}

/// In a process group of its own, so that it is ended with everything it started.
fn start(command: &mut Command) -> XtaskResult<Child> {
    command.stdin(Stdio::null()).process_group(0).spawn().map_err(|error| cannot_run(command, &error))
}

fn listen_address(arguments: &[String]) -> &str {
    let after = arguments.iter().position(|argument| argument == "--listen").and_then(|at| arguments.get(at + 1));
    let joined = arguments.iter().find_map(|argument| argument.strip_prefix("--listen="));
    joined.or(after.map(String::as_str)).unwrap_or(DEFAULT_ADDRESS)
}

fn describe(changed: &[&Path], root: &Path) -> String {
    let name = |path: &&Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    match changed {
        [first, _, _, _, ..] => format!("{} and {} more files", name(first), changed.len() - 1),
        few => few.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vite_is_told_where_the_server_listens() {
        let address =
            |words: &[&str]| listen_address(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>()).to_owned();
        assert_eq!(address(&["--data-dir", "x"]), DEFAULT_ADDRESS);
        assert_eq!(address(&["--listen", "127.0.0.1:1"]), "127.0.0.1:1");
        assert_eq!(address(&["--listen=127.0.0.1:2"]), "127.0.0.1:2");
        assert_eq!(address(&["--listen"]), DEFAULT_ADDRESS);
    }

    #[test]
    fn few_changes_are_named_and_many_are_counted() {
        let paths = ["/r/a.rs", "/r/b.rs", "/r/c.rs", "/r/d.rs"].map(Path::new);
        assert_eq!(describe(&paths[..2], Path::new("/r")), "a.rs, b.rs");
        assert_eq!(describe(&paths, Path::new("/r")), "a.rs and 3 more files");
    }
}

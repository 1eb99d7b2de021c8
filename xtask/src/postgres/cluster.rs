//! One cluster, from initdb to the removal of its folder. Every wait has a deadline.

use std::fs::{DirBuilder, File};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::account::PostgresAccount;
use super::programs;
use crate::process::{terminate, wait};
use crate::repository::{XtaskResult, cannot_run, spell};

const CREATION: Duration = Duration::from_secs(120);
const READINESS: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);
/// Another program may take a free port before PostgreSQL does.
const PORT_ATTEMPTS: u32 = 5;

pub struct PostgresCluster {
    server: Child,
    port: u16,
    files: ClusterFiles,
}

/// What exists before and after the server.
struct ClusterFiles {
    programs: PathBuf,
    account: PostgresAccount,
    folder: TemporaryFolder,
}

impl PostgresCluster {
    pub fn start() -> XtaskResult<Self> {
        let files = ClusterFiles::prepare()?;
        let mut complaint = String::new();
        for _ in 0..PORT_ATTEMPTS {
            let port = free_port()?;
            let mut server = files.launch(port)?;
            if files.wait_until_ready(&mut server)? {
                return Ok(Self { server, port, files });
            }
            complaint = files.log();
        }
        Err(format!("PostgreSQL does not start; its log:\n{complaint}"))
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        if !self.files.stop(&mut self.server) {
            eprintln!("PostgreSQL (process {}) does not stop; end it by hand", self.server.id());
        }
    }
}

impl ClusterFiles {
    fn prepare() -> XtaskResult<Self> {
        let programs = programs::find().ok_or("PostgreSQL is not installed; `cargo xtask test` says how")?;
        let files = Self { programs, account: PostgresAccount::choose()?, folder: TemporaryFolder::create()? };
        files.account.give_ownership(&files.folder.path)?;
        files.create()?;
        Ok(files)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.account.command(&self.programs.join(program));
        command.current_dir(&self.folder.path).stdin(Stdio::null());
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.path.join("data")
    }

    fn log_to(&self, command: &mut Command) -> XtaskResult<()> {
        let path = self.folder.path.join("log");
        let file = File::create(&path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let copy = file.try_clone().map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        command.stdout(file).stderr(copy);
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path.join("log")).unwrap_or_else(|error| format!("(no log: {error})"))
    }

    fn create(&self) -> XtaskResult<()> {
        let mut command = self.command("initdb");
        command.arg("--pgdata").arg(self.data());
        command.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        // Skips syncing the empty cluster only; what the tests write is synced, see `launch`.
        command.arg("--no-sync");
        self.log_to(&mut command)?;
        let mut child = command.spawn().map_err(|error| cannot_run(&command, &error))?;
        match wait(&mut child, CREATION)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("`{}` ended with {status}:\n{}", spell(&command), self.log())),
            None => {
                terminate(&mut child, Duration::ZERO);
                Err(format!("`{}` took longer than {} s", spell(&command), CREATION.as_secs()))
            }
        }
    }

    fn launch(&self, port: u16) -> XtaskResult<Child> {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.folder.path);
        command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        // The tests check durability, so the safe settings are explicit.
        command.args(["-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on"]);
        command.args(["-c", "max_connections=300"]);
        self.log_to(&mut command)?;
        command.spawn().map_err(|error| cannot_run(&command, &error))
    }

    /// False when the server has ended, as it does when its port is taken.
    fn wait_until_ready(&self, server: &mut Child) -> XtaskResult<bool> {
        let deadline = Instant::now() + READINESS;
        while Instant::now() < deadline {
            if wait(server, POLL)?.is_some() {
                return Ok(false);
            }
            if self.says_ready() {
                return Ok(true);
            }
        }
        let log = self.log();
        self.stop(server);
        Err(format!("PostgreSQL was not ready within {} s; its log:\n{log}", READINESS.as_secs()))
    }

    /// The server writes its state into the eighth line of its pid file.
    fn says_ready(&self) -> bool {
        std::fs::read_to_string(self.data().join("postmaster.pid"))
            .is_ok_and(|text| text.lines().nth(7).is_some_and(|state| state.trim() == "ready"))
    }

    /// Tries a fast stop, an immediate one, and at last SIGKILL. Returns whether the server has ended.
    fn stop(&self, server: &mut Child) -> bool {
        for mode in ["fast", "immediate"] {
            let mut command = self.command("pg_ctl");
            command.arg("stop").arg("-D").arg(self.data()).args(["-m", mode, "-t", &STOP.as_secs().to_string()]);
            let asked = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if asked.is_ok_and(|status| status.success()) && matches!(wait(server, STOP), Ok(Some(_))) {
                return true;
            }
        }
        terminate(server, Duration::ZERO)
    }
}

struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    fn create() -> XtaskResult<Self> {
        let parent = std::env::temp_dir();
        let mut attempt = 0;
        loop {
            let path = parent.join(format!("greenroom-postgres-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                // Left by a killed guard that had the same process id.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => attempt += 1,
                Err(error) => return Err(format!("cannot create {}: {error}", path.display())),
            }
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            eprintln!("cannot remove {}: {error}; remove it by hand", self.path.display());
        }
    }
}

fn free_port() -> XtaskResult<u16> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("cannot find a free port on 127.0.0.1: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs PostgreSQL, which `cargo xtask test` installs.
    #[test]
    fn a_taken_port_is_noticed_and_may_be_tried_again() {
        let files = ClusterFiles::prepare().unwrap();
        let neighbour = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let taken = neighbour.local_addr().unwrap().port();
        let mut server = files.launch(taken).unwrap();
        assert_eq!(files.wait_until_ready(&mut server), Ok(false));
        assert!(files.log().contains("could not bind"));
        let mut server = files.launch(free_port().unwrap()).unwrap();
        assert_eq!(files.wait_until_ready(&mut server), Ok(true));
        assert!(files.stop(&mut server));
    }
}

//! A Debian with nothing but its essential packages, as a folder. It is downloaded once; each check has its own copy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::mirror;
use crate::clis::{cache, fresh, publish, remove, sweep};
use crate::repository::{XtaskResult, spell};
use crate::steps::Steps;

const SUITE: &str = "bookworm";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// For programs other than the server.
const LIMIT: Duration = Duration::from_secs(60);
/// Ends with its parent, however that ends.
const WITH_PARENT: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];

/// Downloads it unless it is in the cache.
pub fn cached(steps: &Steps) -> XtaskResult<PathBuf> {
    let cache = cache()?;
    let name = format!("debian-{SUITE}-minbase-amd64");
    let folder = cache.join(&name);
    if folder.is_dir() {
        return Ok(folder);
    }
    sweep(&cache)?;
    fs::create_dir_all(&cache).map_err(|error| format!("cannot create {}: {error}", cache.display()))?;
    let fresh = fresh(&cache, &name);
    let label = format!("Downloading Debian {SUITE}");
    let created = steps.run(&label, &mut debootstrap(&fresh)).and_then(|()| publish(&fresh, &folder));
    if fresh.exists() {
        remove(&fresh)?;
    }
    created.map(|()| folder)
}

/// What debootstrap mounts is gone with the mount namespace.
fn debootstrap(folder: &Path) -> Command {
    let mut command = with_parent();
    command.args(["unshare", "--mount", "--", "debootstrap", "--variant=minbase", "--arch=amd64", SUITE]);
    command.arg(folder).arg(mirror::find(SUITE));
    command
}

fn with_parent() -> Command {
    let mut command = Command::new(WITH_PARENT[0]);
    command.args(&WITH_PARENT[1..]);
    command
}

pub struct CleanRoot {
    path: PathBuf,
}

impl CleanRoot {
    pub fn copy(debian: &Path, parent: &Path, name: &str, steps: &Steps) -> XtaskResult<Self> {
        fs::create_dir_all(parent).map_err(|error| format!("cannot create {}: {error}", parent.display()))?;
        let root = Self { path: fresh(parent, name) };
        let mut command = Command::new("cp");
        command.args(["--archive", "--reflink=auto", "--"]).arg(debian).arg(&root.path);
        let mut complaint = String::new();
        let status = steps.follow(&mut command, LIMIT, &mut |line| line.clone_into(&mut complaint))?;
        match status.success() {
            true => Ok(root),
            false => Err(format!("`{}` ended with {status}: {complaint}", spell(&command))),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A program in this root, with its own process table: it sees no other process, and whatever it starts ends with
    /// it. The network is the machine's.
    pub fn command(&self, program: &str) -> Command {
        let mut command = with_parent();
        command.args(["unshare", "--mount-proc", "--pid", "--fork", "--kill-child=KILL"]);
        command.arg("--root").arg(&self.path).args(["--wd=/", "--", program]);
        command.env_clear().env("PATH", PATH).env("HOME", "/tmp").env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs a program to its end. Returns its exit code and what it printed.
    pub fn run(&self, program: &str, arguments: &[&str], steps: &Steps) -> XtaskResult<(i32, String)> {
        let mut lines = Vec::new();
        let mut command = self.command(program);
        let status = steps.follow(command.args(arguments), LIMIT, &mut |line| lines.push(line.to_owned()))?;
        let printed = lines.join("\n");
        match status.code() {
            Some(code) => Ok((code, printed)),
            None => Err(format!("`{program} {}` ended with {status}: {printed}", arguments.join(" "))),
        }
    }

    pub fn run_successfully(&self, program: &str, arguments: &[&str], steps: &Steps) -> XtaskResult<String> {
        match self.run(program, arguments, steps)? {
            (0, printed) => Ok(printed),
            (code, printed) => Err(format!("`{program} {}` ended with code {code}: {printed}", arguments.join(" "))),
        }
    }
}

impl Drop for CleanRoot {
    fn drop(&mut self) {
        if self.path.exists()
            && let Err(message) = remove(&self.path)
        {
            eprintln!("{message}; remove it by hand");
        }
    }
}

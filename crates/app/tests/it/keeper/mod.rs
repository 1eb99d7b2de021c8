//! Programs under a keeper, which is the binary itself: shell scripts, observed through `/proc`. Every test runs twice:
//! with cgroups, if the machine allows them, and without.

mod deaths;
mod programs;
mod stops;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use workbench::process::{Child, ProcessSpec, ProgramExit, StopTimeouts, Supervisor};

/// Invariant 5: all processes end within two seconds.
const TWO_SECONDS: Duration = Duration::from_secs(2);
/// Longer than anything that is waited for takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
const AT_ONCE: StopTimeouts = StopTimeouts { after_input_closed: Duration::ZERO, after_sigterm: Duration::ZERO };
const PATIENT: StopTimeouts = StopTimeouts { after_input_closed: DEADLINE, after_sigterm: DEADLINE };

/// A script that starts up to three processes outside its process group, writes their ids to a file and prints `ready`.
/// One is adopted by the keeper, one has an empty environment, and the last, if `hidden`, is both.
fn daemons(hidden: bool) -> String {
    let adopted = "setsid sh -c '(sleep 1000 & echo $! >> pids) &'";
    let naked = "env -i PATH=\"$PATH\" setsid sh -c 'echo $$ >> pids; exec sleep 1000' &";
    let both = if hidden { "env -i PATH=\"$PATH\" setsid sh -c '(sleep 1000 & echo $! >> pids) &'" } else { "" };
    let count = if hidden { 3 } else { 2 };
    format!(
        "touch pids\n{adopted}\n{naked}\n{both}
        while [ $(wc -l < pids) -lt {count} ]; do sleep 0.01; done
        echo $$ >> pids; echo ready"
    )
}

fn binary() -> PathBuf {
    env!("CARGO_BIN_EXE_greenroom").into()
}

fn both() -> [Supervisor; 2] {
    [Supervisor::new(binary()), Supervisor::without_cgroups(binary())]
}

/// A shell script in its own folder.
fn script(text: &str) -> (TempDir, ProcessSpec) {
    let folder = tempfile::tempdir().unwrap();
    let command = program("/bin/sh", &["-c", text], folder.path());
    (folder, command)
}

fn program(program: &str, args: &[&str], folder: &Path) -> ProcessSpec {
    let env = BTreeMap::from([(OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin"))]);
    let args = args.iter().map(OsString::from).collect();
    ProcessSpec { program: program.into(), args, env, folder: folder.into(), sandbox: None }
}

async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("{what}: not within {DEADLINE:?}"))
}

async fn start(supervisor: &Supervisor, command: &ProcessSpec) -> Child {
    supervisor.start(command.clone()).await.unwrap()
}

async fn line(child: &mut Child) -> String {
    within("a line", child.stdout.next()).await.unwrap().expect("a line")
}

async fn end(child: &mut Child) -> ProgramExit {
    within("the end", child.handle.wait()).await
}

/// Returns the process ids that the program wrote, and its keeper.
async fn ready(child: &mut Child, folder: &Path) -> Vec<i32> {
    assert_eq!(line(child).await, "ready");
    let mut ids = written(folder);
    ids.extend(child.handle.keeper_id().map(|id| i32::try_from(id).unwrap()));
    assert!(ids.iter().all(|id| is_alive(*id)), "{ids:?}");
    ids
}

fn written(folder: &Path) -> Vec<i32> {
    let text = fs::read_to_string(folder.join("pids")).unwrap_or_default();
    text.lines().map(|line| line.trim().parse().unwrap()).collect()
}

fn stat(id: i32) -> Option<String> {
    let text = fs::read(format!("/proc/{id}/stat")).ok()?;
    Some(String::from_utf8_lossy(&text).rsplit_once(") ")?.1.to_owned())
}

/// Zombies are not alive.
fn is_alive(id: i32) -> bool {
    stat(id).is_some_and(|fields| !fields.starts_with('Z') && !fields.starts_with('X'))
}

async fn assert_dead(what: &str, ids: &[i32]) {
    assert!(!ids.is_empty());
    let start = Instant::now();
    loop {
        let alive: Vec<i32> = ids.iter().copied().filter(|id| is_alive(*id)).collect();
        if alive.is_empty() {
            return;
        }
        assert!(start.elapsed() < TWO_SECONDS, "{what}: {alive:?} of {ids:?} are alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn signal(id: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
}

/// Where a process is in the cgroup v2 tree, on disk.
fn cgroup(id: i32) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(point))
    })?;
    let text = fs::read_to_string(format!("/proc/{id}/cgroup")).ok()?;
    Some(mount.join(text.lines().find_map(|line| line.strip_prefix("0::/"))?))
}

//! Checks further programs that agents and tools use. None of them is required to start.

use super::{DoctorFinding, FindingState};
use std::{io, process::Stdio, time::Duration};
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
    task::JoinSet,
};

const DEADLINE: Duration = Duration::from_secs(5);
const MAX_OUTPUT_BYTES: u64 = 4096;

/// The name, and how to get it.
const PROGRAMS: [(&str, &str); 4] = [
    ("git", "for project workspaces: apt install git"),
    ("node", "for the agents' CLIs and many MCP servers: apt install nodejs, or nodejs.org"),
    ("npx", "for MCP servers that are started with npx: apt install npm"),
    ("docker", "for the Docker sandbox: apt install docker.io"),
];

pub async fn check() -> Vec<DoctorFinding> {
    let mut checks = JoinSet::new();
    for (order, (name, how)) in PROGRAMS.into_iter().enumerate() {
        checks.spawn(async move { (order, finding(name, how).await) });
    }
    let mut findings = checks.join_all().await;
    findings.sort_by_key(|(order, _)| *order);
    findings.into_iter().map(|(_, finding)| finding).collect()
}

async fn finding(name: &'static str, how: &str) -> DoctorFinding {
    match version(name, DEADLINE).await {
        Ok(version) => DoctorFinding::new(name, FindingState::Ok, version),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DoctorFinding::new(name, FindingState::Missing, "not installed").advise(how)
        }
        Err(error) => DoctorFinding::new(name, FindingState::Missing, format!("there, but {error}")).advise(how),
    }
}

/// The first line that `name --version` prints.
async fn version(name: &str, deadline: Duration) -> io::Result<String> {
    let mut command = Command::new(name);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    // Greenroom's own variables contain secrets (invariant 17).
    #[expect(clippy::disallowed_methods, reason = "names only, to keep them out of the child's environment")]
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("GREENROOM_")) {
        command.env_remove(name);
    }
    let mut child = command.spawn()?;
    let outcome = tokio::time::timeout(deadline, first_line(&mut child)).await;
    outcome.unwrap_or_else(|_| {
        // Such a program is often a wrapper script, so the whole process group is killed.
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group {
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL)?;
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not answer within {} s", deadline.as_secs())))
    })
}

async fn first_line(child: &mut Child) -> io::Result<String> {
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_OUTPUT_BYTES).read_to_end(&mut output).await?;
    }
    let status = child.wait().await?;
    if !status.success() {
        return Err(io::Error::other(format!("it ended with {status}")));
    }
    let text = String::from_utf8_lossy(&output);
    Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no version given").to_owned())
}

#[cfg(test)]
mod tests {
    use super::version;
    use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

    fn program(dir: &Path, script: &str) -> String {
        let path = dir.join("program");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_string_lossy().into_owned()
    }

    #[tokio::test]
    async fn returns_the_first_line_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let long = Duration::from_secs(20);
        assert_eq!(version(&program(dir.path(), "echo; echo tool 1.2"), long).await.unwrap(), "tool 1.2");
        assert!(version(&program(dir.path(), "exit 3"), long).await.is_err());
        assert_eq!(version("/nonexistent/tool", long).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().join("pid");
        let hanging = program(dir.path(), &format!("sleep 1000 & echo $! > {}\nwait", mark.display()));
        let error = version(&hanging, Duration::from_millis(500)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let Ok(pid) = fs::read_to_string(&mark) else { return };
        let stat = Path::new("/proc").join(pid.trim()).join("stat");
        let has_ended = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        for _ in 0..100 {
            if has_ended() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the grandchild is still running");
    }
}

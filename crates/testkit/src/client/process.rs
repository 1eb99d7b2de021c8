//! Runs the real binary as a child process: starts it, waits until it listens, and kills it.

use super::{TestClient, TestClientError};
use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

const LISTENING: &str = "Greenroom is listening on ";

/// How to start a server.
#[derive(Clone, Debug)]
pub struct ServerLaunch {
    pub binary: PathBuf,
    pub data_dir: PathBuf,
    /// Port 0 lets the system choose one.
    pub listen: String,
    /// Arguments after those of the address and the folder.
    pub arguments: Vec<String>,
    /// The local key that the server finds in a new data folder, instead of making its own.
    pub chosen_key: Option<String>,
    /// Variables added to the inherited environment.
    pub environment: Vec<(String, String)>,
    /// A library that is loaded before all others (`LD_PRELOAD`).
    pub preload: Option<PathBuf>,
    /// The server's log file; appended to, so that one file covers several starts.
    pub log: PathBuf,
    pub deadline: Duration,
}

impl ServerLaunch {
    pub fn new(binary: impl Into<PathBuf>, data_dir: impl Into<PathBuf>) -> Self {
        let data_dir = data_dir.into();
        Self {
            binary: binary.into(),
            log: data_dir.with_extension("log"),
            data_dir,
            listen: "127.0.0.1:0".into(),
            arguments: Vec::new(),
            chosen_key: None,
            // Tests of the sandbox set it; the others start programs that exist only outside.
            environment: vec![("GREENROOM_SANDBOX__AGENTS".into(), "none".into())],
            preload: None,
            deadline: Duration::from_secs(30),
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The local key of the server, which it makes at its first start.
    pub fn local_key(&self) -> anyhow::Result<String> {
        let file = self.data_dir.join("local.key");
        let key = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(key.trim().to_owned())
    }

    /// Starts the server and returns when it listens.
    pub async fn start(&self) -> anyhow::Result<TestServerProcess> {
        if let Some(key) = &self.chosen_key {
            std::fs::create_dir_all(&self.data_dir)?;
            std::fs::write(self.data_dir.join("local.key"), key)?;
        }
        let mut command = Command::new(&self.binary);
        command.arg("serve").arg("--listen").arg(&self.listen).arg("--data-dir").arg(&self.data_dir);
        command.args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(library) = &self.preload {
            command.env("LD_PRELOAD", library);
        }
        let log = std::fs::File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("cannot write {}", self.log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.binary.display()))?;
        let pid = child.id().context("the server ended immediately")?;
        let output = child.stdout.take().context("the server has no stdout")?;
        let mut lines = BufReader::new(output).lines();
        let base = tokio::time::timeout(self.deadline, read_base_url(&mut lines)).await;
        let Ok(base) = base else {
            bail!("the server did not listen within {:?}; its log is {}", self.deadline, self.log.display())
        };
        let base = base.with_context(|| format!("the server's log is {}", self.log.display()))?;
        let ready_after = began.elapsed();
        let local_key = self.local_key()?;
        Ok(TestServerProcess { child, pid, base_url: base, local_key, ready_after, _output: lines })
    }
}

async fn read_base_url(lines: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<String> {
    while let Some(line) = lines.next_line().await? {
        if let Some(base) = line.strip_prefix(LISTENING) {
            return Ok(base.trim().to_owned());
        }
    }
    bail!("the server ended before it listened")
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct TestServerProcess {
    child: Child,
    pid: u32,
    base_url: String,
    local_key: String,
    ready_after: Duration,
    /// Kept open, because the server's next line would fail on a closed pipe and end it.
    _output: Lines<BufReader<ChildStdout>>,
}

impl TestServerProcess {
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// A client of the operator, with the local key.
    pub fn client(&self) -> Result<TestClient, TestClientError> {
        Ok(TestClient::new(&self.base_url)?.with_token(&self.local_key))
    }

    pub fn local_key(&self) -> &str {
        &self.local_key
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The time from starting the process until it printed its address.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// Sends SIGKILL without waiting. Call [`Self::wait_for_exit`] afterwards.
    pub fn kill_now(&self) -> anyhow::Result<()> {
        signal(self.pid, Signal::KILL)
    }

    /// Sends SIGTERM and waits until the server has stopped.
    pub async fn terminate(mut self, deadline: Duration) -> anyhow::Result<ExitStatus> {
        signal(self.pid, Signal::TERM)?;
        self.wait_for_exit(deadline).await
    }

    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        self.wait_for_exit(Duration::from_secs(30)).await?;
        Ok(())
    }

    pub async fn wait_for_exit(&mut self, deadline: Duration) -> anyhow::Result<ExitStatus> {
        let waited = tokio::time::timeout(deadline, self.child.wait()).await;
        Ok(waited.with_context(|| format!("process {} did not end within {deadline:?}", self.pid))??)
    }
}

fn signal(pid: u32, signal: Signal) -> anyhow::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).context("not a process id")?;
    Ok(kill_process(pid, signal)?)
}

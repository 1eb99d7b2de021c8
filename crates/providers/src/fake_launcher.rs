//! Starts fake programs for tests: the test acts as the program, at the other end of its pipes.

use domain::run::Receipt;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc,
};
use workbench::process::{
    LaunchedProcess, Launcher, OutputLines, ProcessFuture, ProcessHandle, ProcessSet, ProcessSpec, ProcessStartError,
    ProgramExit, StderrTail, StopTimeouts,
};

const PIPE_BYTES: usize = 64 * 1024;

/// A started program, as the test sees it.
pub struct FakeProgram {
    pub spec: ProcessSpec,
    /// What the program reads.
    pub stdin: OutputLines,
    /// Where the program writes.
    pub stdout: DuplexStream,
}

/// How a fake program ends.
#[derive(Clone)]
pub struct FakeEnd {
    pub exit: ProgramExit,
    pub stderr: &'static str,
    /// How long a stop takes, and what it returns.
    pub stop: (Duration, Receipt),
}

/// How many fake programs are running, and how many ran at the same time.
#[derive(Clone, Debug, Default)]
pub struct FakeProcessCount {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

pub struct FakeLauncher {
    started: mpsc::Sender<FakeProgram>,
    count: FakeProcessCount,
    end: FakeEnd,
}

struct FakeHandle {
    count: FakeProcessCount,
    end: FakeEnd,
    stderr: StderrTail,
}

impl FakeLauncher {
    pub fn new(end: FakeEnd) -> (Self, mpsc::Receiver<FakeProgram>, FakeProcessCount) {
        let ((started, programs), count) = (mpsc::channel(16), FakeProcessCount::default());
        (Self { started, count: count.clone(), end }, programs, count)
    }
}

impl FakeProcessCount {
    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// Starts a fake program outside of any launcher.
pub fn start(spec: ProcessSpec, end: &FakeEnd, count: &FakeProcessCount) -> (LaunchedProcess, FakeProgram) {
    let (stdin, read) = duplex(PIPE_BYTES);
    let (written, stdout) = duplex(PIPE_BYTES);
    count.most.fetch_max(count.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    let stderr = StderrTail::default();
    stderr.push(end.stderr.as_bytes());
    let handle = Box::new(FakeHandle { count: count.clone(), end: end.clone(), stderr });
    let launched = LaunchedProcess { stdin: Box::new(stdin), stdout: OutputLines::new(written), handle };
    (launched, FakeProgram { spec, stdin: OutputLines::new(read), stdout })
}

impl Launcher for FakeLauncher {
    fn launch(&self, spec: ProcessSpec) -> ProcessFuture<'_, Result<LaunchedProcess, ProcessStartError>> {
        Box::pin(async {
            let (launched, program) = start(spec, &self.end, &self.count);
            let refused =
                |_| ProcessStartError::Refused { program: "fake".into(), reason: "the test has ended".into() };
            self.started.send(program).await.map_err(refused)?;
            Ok(launched)
        })
    }
}

impl ProcessHandle for FakeHandle {
    fn process_id(&self) -> i32 {
        0
    }

    fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    fn wait(&mut self) -> ProcessFuture<'_, ProgramExit> {
        let exit = self.end.exit;
        Box::pin(async move { exit })
    }

    fn stop(self: Box<Self>, _timeouts: StopTimeouts) -> ProcessFuture<'static, Receipt> {
        Box::pin(async move {
            let (duration, receipt) = self.end.stop.clone();
            if !duration.is_zero() {
                tokio::time::sleep(duration).await;
            }
            drop(self);
            receipt
        })
    }

    fn end_orphans(&self) -> ProcessSet {
        ProcessSet::default()
    }
}

impl Drop for FakeHandle {
    fn drop(&mut self) {
        self.count.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Writes an empty program file, which can be found but not run.
pub fn program_file(folder: &Path, name: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let file = folder.join(name);
    std::fs::write(&file, "").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
    file.to_str().unwrap().to_owned()
}

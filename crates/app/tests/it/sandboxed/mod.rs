//! Programs in the sandboxes of the manager, started by the launcher, with the real driver. The helper is the binary itself.

use domain::project::ProjectCeilings;
use sandbox::{CommandSpec, IsolationTier, LeftoverProcesses, LocalDriver, OutputLimits, SandboxDriver};
use std::{
    collections::BTreeMap, ffi::OsString, fs, os::unix::fs::MetadataExt as _, path::PathBuf, sync::Arc, time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use workbench::{
    files::Root,
    process::{LaunchedProcess, Launcher as _, ProcessSpec, ProgramExit, StopTimeouts, Supervisor},
    project_sandbox::{
        GuestFuture, GuestPort, GuestService, SandboxKey, SandboxLauncher, SandboxManager, SandboxManagerSettings,
        SandboxSpec,
    },
};

const DEADLINE: Duration = Duration::from_secs(60);
const PATIENT: StopTimeouts = StopTimeouts { after_input_closed: DEADLINE, after_sigterm: DEADLINE };
const AT_ONCE: StopTimeouts = StopTimeouts { after_input_closed: Duration::ZERO, after_sigterm: Duration::ZERO };

struct Fixture {
    /// The user of the sandboxes, if it is not the server's.
    host_user: Option<u32>,
    folder: TempDir,
    launcher: SandboxLauncher,
}

impl Fixture {
    async fn new() -> Self {
        Self::with_idle_timeout(DEADLINE).await
    }

    async fn with_idle_timeout(idle_timeout: Duration) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_greenroom"));
        let driver = LocalDriver::new(IsolationTier::Native, &binary, folder.path());
        let host_user = driver.host_user();
        let isolation = driver.probe().await.expect("the native sandbox must work where the tests run");
        let settings = SandboxManagerSettings {
            programs: Vec::new(),
            host_user,
            idle_timeout,
            max_open: 4,
            data: folder.path().to_owned(),
            ceilings: ProjectCeilings::default(),
        };
        let sandboxes = SandboxManager::new(Arc::new(driver) as Arc<dyn SandboxDriver>, isolation, settings);
        let supervisor = Supervisor::new(binary);
        Self { host_user, folder, launcher: SandboxLauncher { sandboxes, supervisor, search_path: None } }
    }

    fn sandbox(&self, name: &str) -> Arc<SandboxSpec> {
        let folder = |kind: &str| {
            let folder = self.folder.path().join(kind).join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        Arc::new(SandboxSpec::new(SandboxKey::new("test", name), folder("workspace"), folder("home")))
    }

    fn script(&self, name: &str, text: &str) -> ProcessSpec {
        let env = [("PATH", "/usr/bin:/bin"), ("HOME", "/home/agent"), ("MARK", "here")];
        ProcessSpec {
            program: "/bin/sh".into(),
            args: ["-c", text].map(OsString::from).to_vec(),
            env: env
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            folder: "/workspace".into(),
            sandbox: Some(self.sandbox(name)),
        }
    }

    async fn launch(&self, name: &str, text: &str) -> LaunchedProcess {
        within(self.launcher.launch(self.script(name, text))).await.unwrap()
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("within a minute")
}

async fn lines(process: &mut LaunchedProcess) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = within(process.stdout.next()).await.unwrap() {
        lines.push(line);
    }
    lines
}

fn is_alive(process: i32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn wait_until_gone(process: i32) {
    within(async {
        while is_alive(process) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_inside_sees_its_folders_and_exactly_its_environment() {
    let fixture = Fixture::new().await;
    fs::write(fixture.folder.path().join("secret"), "outside").unwrap();
    let secret = fixture.folder.path().join("secret");
    let text = format!(
        "pwd; id -u; env | sort | grep -v ^PWD= | grep -v ^_=; read line; echo said $line; echo made > made.txt; \
         echo kept > /home/agent/kept.txt; cat {} 2>/dev/null || echo no secret; echo problem >&2; exit 3",
        secret.display()
    );
    let mut process = fixture.launch("a", &text).await;
    within(process.stdin.write_all(b"hello\n")).await.unwrap();
    let said = lines(&mut process).await;
    let expected =
        ["/workspace", "1000", "HOME=/home/agent", "MARK=here", "PATH=/usr/bin:/bin", "said hello", "no secret"];
    assert_eq!(said, expected);
    assert_eq!(within(process.handle.wait()).await, ProgramExit::Code(3));
    assert_eq!(process.handle.stderr().text(), "problem");
    let spec = fixture.sandbox("a");
    assert_eq!(fs::read_to_string(spec.workspace.join("made.txt")).unwrap(), "made\n");
    // The files outlive the sandbox, and the server can add some that the programs can use.
    fixture.launcher.sandboxes.stop(&spec.key).await;
    fs::write(spec.home.join("from-server.txt"), "private\n").unwrap();
    let mut again =
        fixture.launch("a", "cat /home/agent/kept.txt /home/agent/from-server.txt && rm /home/agent/*.txt").await;
    assert_eq!(lines(&mut again).await, ["kept", "private"]);
    assert_eq!(within(again.handle.wait()).await, ProgramExit::Code(0));
    fixture.launcher.sandboxes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_5_no_orphans_a_stop_ends_all_processes_of_a_program_inside_and_counts_them() {
    let fixture = Fixture::new().await;
    let text = "setsid sh -c '(sleep 1000 &) ; echo ready; sleep 1000' & sleep 1000 & trap '' TERM; echo ready; read line; wait";
    let mut process = fixture.launch("a", text).await;
    for _ in 0..2 {
        assert_eq!(within(process.stdout.next()).await.unwrap().as_deref(), Some("ready"));
    }
    let program = process.handle.process_id();
    assert!(is_alive(program));
    // Another program of the same sandbox is left alone.
    let mut other = fixture.launch("a", "echo ready; read line; echo bye").await;
    assert_eq!(within(other.stdout.next()).await.unwrap().as_deref(), Some("ready"));
    let LaunchedProcess { stdin, handle, .. } = process;
    drop(stdin);
    let timeouts = StopTimeouts { after_input_closed: Duration::ZERO, after_sigterm: Duration::from_millis(200) };
    let receipt = within(handle.stop(timeouts)).await;
    assert!(receipt.processes >= 4, "{receipt:?}");
    assert_eq!(receipt.signals, ["SIGTERM", "SIGKILL"]);
    wait_until_gone(program).await;
    within(other.stdin.write_all(b"\n")).await.unwrap();
    assert_eq!(lines(&mut other).await, ["bye"]);
    let receipt = within(other.handle.stop(PATIENT)).await;
    assert_eq!(receipt.signals, ["eof"]);
    fixture.launcher.sandboxes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_5_no_orphans_what_a_program_inside_has_left_ends_with_its_turn() {
    let fixture = Fixture::new().await;
    let text = "sleep 1001 & (setsid sleep 1002 &) ; sleep 0.3; echo ready; read line";
    let mut process = fixture.launch("a", text).await;
    assert_eq!(within(process.stdout.next()).await.unwrap().as_deref(), Some("ready"));
    assert_eq!(process.handle.end_orphans().count(), 1, "its child stays");
    assert_eq!(process.handle.end_orphans().count(), 0);
    let program = process.handle.process_id();
    drop(process);
    wait_until_gone(program).await;
    let mut next = fixture.launch("a", "echo ok").await;
    assert_eq!(lines(&mut next).await, ["ok"]);
    within(next.handle.stop(AT_ONCE)).await;
    fixture.launcher.sandboxes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_manager_leaves_no_process_and_a_missing_program_is_said() {
    let fixture = Fixture::new().await;
    let mut missing = fixture.script("a", "");
    missing.program = "/no/such/program".into();
    let error = within(fixture.launcher.launch(missing)).await.err().unwrap();
    assert_eq!(error.to_string(), "cannot start /no/such/program: No such file or directory (os error 2)");
    let process = fixture.launch("a", "sleep 1000").await;
    let program = process.handle.process_id();
    within(fixture.launcher.sandboxes.close()).await;
    wait_until_gone(program).await;
    assert!(within(fixture.launcher.launch(fixture.script("a", "true"))).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_sandbox_ends_with_everything_in_it_and_the_next_use_opens_it_again() {
    let fixture = Fixture::with_idle_timeout(Duration::from_millis(300)).await;
    let spec = fixture.sandbox("a");
    let lease = within(fixture.launcher.sandboxes.open(&spec)).await.unwrap();
    let mut service = CommandSpec::new(["bash", "-c", "sleep 1003 & echo $! > service; echo kept > kept.txt"]);
    service.leftovers = LeftoverProcesses::Stay;
    within(lease.capture(service, OutputLimits::default())).await.unwrap();
    let usage = within(lease.list()).await.unwrap();
    assert_eq!(usage.len(), 1, "the service outlives its command");
    // As long as somebody uses it, it is not idle.
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(fixture.launcher.sandboxes.open_keys(), std::slice::from_ref(&spec.key));
    drop(lease);
    within(async {
        while !fixture.launcher.sandboxes.open_keys().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut again =
        fixture.launch("a", "cat kept.txt; kill -0 $(cat service) 2>/dev/null && echo alive || echo gone").await;
    assert_eq!(lines(&mut again).await, ["kept", "gone"]);
    fixture.launcher.sandboxes.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_the_server_is_handed_over_and_one_of_the_operator_keeps_its_owners() {
    let fixture = Fixture::new().await;
    let (own, mut existing) = (fixture.sandbox("own"), SandboxSpec::clone(&fixture.sandbox("operators")));
    existing.owns_workspace = false;
    let server = fs::metadata(fixture.folder.path()).unwrap().uid();
    for spec in [&*own, &existing] {
        fs::create_dir(spec.workspace.join("folder")).unwrap();
        fs::write(spec.workspace.join("folder/before.txt"), "").unwrap();
        drop(within(fixture.launcher.sandboxes.open(spec)).await.unwrap());
        // As the API and the tools of agents write.
        let root = Root::open(&spec.workspace).unwrap();
        root.create_dir_all("later", 0o755).unwrap();
        root.write("later/after.txt", 0o644, b"").unwrap();
        let is_handed_over = spec.owns_workspace;
        let expected = fixture.host_user.filter(|_| is_handed_over).unwrap_or(server);
        for path in ["", "folder", "folder/before.txt", "later", "later/after.txt"] {
            let owner = fs::symlink_metadata(spec.workspace.join(path)).unwrap().uid();
            assert_eq!(owner, expected, "{path:?} of {}", spec.key);
        }
    }
    // What was written after the start of the sandbox can be changed inside.
    let mut process = fixture.launch("own", "echo more >> later/after.txt && cat later/after.txt").await;
    assert_eq!(lines(&mut process).await, ["more"]);
    fixture.launcher.sandboxes.close().await;
}

struct Greeter;

impl GuestService for Greeter {
    fn serve(&self, sandbox: Arc<SandboxSpec>, mut connection: TcpStream) -> GuestFuture {
        Box::pin(async move {
            let mut asked = [0; 5];
            if connection.read_exact(&mut asked).await.is_ok() {
                connection.write_all(format!("{}\n", sandbox.key).as_bytes()).await.ok();
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_inside_are_answered_by_the_server_and_know_their_sandbox() {
    let fixture = Fixture::new().await;
    fixture.launcher.sandboxes.set_ports(vec![GuestPort { port: 8081, service: Arc::new(Greeter) }]);
    for name in ["a", "b"] {
        let mut process = fixture.launch(name, ASK).await;
        assert_eq!(lines(&mut process).await, [format!("test-{name}")]);
    }
    fixture.launcher.sandboxes.close().await;
}

/// Needs no program that a minimal system does not have.
const ASK: &str = "exec /bin/bash -c 'exec 3<>/dev/tcp/127.0.0.1/8081; printf hello >&3; cat <&3'";

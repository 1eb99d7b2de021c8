//! What commands see, how they end, and how one is stopped while others go on.

use super::Session;
use crate::process_list::{self, TWO_SECONDS};
use sandbox::{
    CommandEnd, CommandExit, CommandIo, CommandSpec, IsolationTier, LeftoverProcesses, SandboxCommand as _,
    SandboxError,
};
use std::{
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

#[tokio::test]
async fn a_command_sees_a_small_machine_of_its_own() {
    let session = Session::open().await;
    assert_eq!(
        session.output("id -u; id -un; pwd; hostname; echo $HOME").await,
        "1000\nagent\n/workspace\nsandbox\n/home/agent\n"
    );
    assert_eq!(session.output("cat /proc/1/comm; ls /").await.lines().next(), Some("gr-broker"));
    let processes = session.output("ls -d /proc/[0-9]* | wc -l").await;
    assert!(processes.trim().parse::<u32>().unwrap() <= 6, "{processes}");
    session
        .output("echo hello > made.txt; echo x > /tmp/x; echo x > ~/x; echo x > /dev/null; echo x > /dev/shm/x")
        .await;
    let made = session.scene.project().join("made.txt");
    assert_eq!(fs::read_to_string(&made).unwrap(), "hello\n");
    let owner = session.driver.host_user().unwrap_or_else(|| nix::unistd::geteuid().as_raw());
    assert_eq!(fs::metadata(made).unwrap().uid(), owner);
}

#[tokio::test]
async fn the_environment_is_exactly_the_one_of_the_command() {
    let session = Session::open().await;
    let mut command = CommandSpec::new(["env"]);
    command.env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("NAME".to_owned(), "a b=c".to_owned())].into();
    assert_eq!(session.capture(command).await.stdout.text(), "NAME=a b=c\nPATH=/usr/bin:/bin\n");
}

#[tokio::test]
async fn a_home_folder_and_programs_can_be_given() {
    let session = Session::open().await;
    let home = session.scene.outside("home");
    session.driver.create_folder(&home).unwrap();
    let mut policy = session.scene.policy();
    policy.home = Some(home.clone());
    let sandbox = session.driver.start_sandbox(policy).await.unwrap();
    let script = session.scene.shell("echo kept > ~/file; echo x >> /opt/fixture || echo read-only");
    let captured = sandbox::capture(&sandbox, script, sandbox::OutputLimits::default()).await.unwrap();
    assert_eq!(captured.stdout.text(), "read-only\n", "{captured:?}");
    assert_eq!(fs::read_to_string(home.join("file")).unwrap(), "kept\n");
}

#[tokio::test]
async fn the_end_of_a_command_is_reported_exactly() {
    let session = Session::open().await;
    let end = async |script: &str| session.capture(session.scene.shell(script)).await.end;
    assert_eq!(end("exit 3").await, CommandEnd::Exited(CommandExit::Code(3)));
    assert_eq!(end("kill -TERM $$").await, CommandEnd::Exited(CommandExit::Signal(libc::SIGTERM)));
    // A real-time signal.
    assert_eq!(end("kill -40 $$").await, CommandEnd::Exited(CommandExit::Signal(40)));
    assert_eq!(end("true").await, CommandEnd::Exited(CommandExit::Code(0)));
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why() {
    let session = Session::open().await;
    let run = async |command: CommandSpec| {
        let null = || File::open("/dev/null").unwrap().into();
        let started = session.sandbox.run(command, CommandIo { stdin: null(), stdout: null(), stderr: null() }).await;
        started.map(drop).unwrap_err()
    };
    let missing = run(CommandSpec::new(["no-such-program"])).await;
    assert!(
        matches!(&missing, SandboxError::Start { source, .. } if source.kind() == ErrorKind::NotFound),
        "{missing}"
    );
    let not_executable = run(CommandSpec::new(["/etc/passwd"])).await;
    let is_denied =
        matches!(&not_executable, SandboxError::Start { source, .. } if source.kind() == ErrorKind::PermissionDenied);
    assert!(is_denied, "{not_executable}");
    let mut elsewhere = CommandSpec::new(["true"]);
    elsewhere.folder = "/workspace/missing".to_owned();
    let no_folder = run(elsewhere).await;
    assert!(matches!(no_folder, SandboxError::Folder { .. }), "{no_folder}");
    let too_large = run(CommandSpec::new(["true".to_owned(), "x".repeat(200 << 10)])).await;
    assert!(too_large.to_string().contains("too long"), "{too_large}");
    assert_eq!(session.sandbox.list().await.unwrap(), [], "nothing is left of these");
}

#[tokio::test]
async fn killing_one_command_leaves_the_others() {
    for tier in [IsolationTier::Native, IsolationTier::None] {
        let session = Session::open_in(tier).await;
        let (first, second) = (session.sleep(1), session.sleep(2));
        let script = format!("setsid {first} & (setsid {first} &) & {first} & echo ready; {first}");
        let mut killed = session.start(session.scene.shell(&script)).await;
        let mut stays = session.start(session.scene.shell(&format!("echo ready; exec {second}"))).await;
        assert_eq!((killed.line().await, stays.line().await), ("ready".to_owned(), "ready".to_owned()));
        process_list::wait_for(&session.sleep_text(1), 4);
        let listed = session.sandbox.list().await.unwrap();
        assert_eq!(listed.iter().map(|command| command.is_running).collect::<Vec<_>>(), [true, true]);
        assert_eq!(listed[1].processes, 1, "{listed:?}");
        assert!(listed[0].processes >= 5, "{listed:?}");
        assert_eq!(killed.command.kill().await.unwrap(), CommandExit::Signal(libc::SIGKILL));
        process_list::assert_gone_within(&session.sleep_text(1), Duration::ZERO);
        assert_eq!(session.sandbox.list().await.unwrap().len(), 1);
        assert_eq!(process_list::with_text(&session.sleep_text(2)).len(), 1);
        let id = stays.command.process_id().unwrap();
        assert_eq!(process_list::with_text(&session.sleep_text(2)), [id], "the id is that of this machine");
        stays.command.signal(libc::SIGTERM).await.unwrap();
        assert_eq!(stays.wait().await, CommandExit::Signal(libc::SIGTERM));
    }
}

#[tokio::test]
async fn leftover_processes_stay_if_they_may() {
    let session = Session::open().await;
    let mut command = session.scene.shell(&format!("{} & echo ready", session.sleep(1)));
    command.leftovers = LeftoverProcesses::Stay;
    let mut started = session.start(command).await;
    assert_eq!(started.wait().await, CommandExit::Code(0));
    process_list::wait_for(&session.sleep_text(1), 1);
    let listed = session.sandbox.list().await.unwrap();
    assert_eq!((listed.len(), listed[0].processes, listed[0].is_running), (1, 1, false));
    assert_eq!(started.command.kill().await.unwrap(), CommandExit::Code(0));
    process_list::assert_gone_within(&session.sleep_text(1), Duration::ZERO);
}

/// The shepherd of a command is the parent of its first process, and the same user.
#[tokio::test]
async fn a_command_that_kills_or_stops_its_shepherd_gains_nothing() {
    let session = Session::open().await;
    let other = session.start(session.scene.shell(&session.sleep(2))).await;
    let (sleep, text) = (session.sleep(1), session.sleep_text(1));
    let script = format!("(setsid {sleep} &); {sleep} & sleep 0.1; kill -KILL $PPID; {sleep}");
    for signal in [33, 40] {
        session.capture(session.scene.shell(&format!("{sleep} & kill -{signal} $PPID; sleep 0.1"))).await;
        process_list::assert_gone_within(&text, Duration::ZERO);
    }
    let mut killer = session.start(session.scene.shell(&script)).await;
    assert_eq!(killer.wait().await, CommandExit::Signal(libc::SIGKILL));
    process_list::assert_gone_within(&text, TWO_SECONDS);
    let script = format!("(setsid {sleep} &); kill -STOP $PPID; echo ready; {sleep}");
    let mut stopper = session.start(session.scene.shell(&script)).await;
    assert_eq!(stopper.line().await, "ready");
    process_list::wait_for(&text, 2);
    assert_eq!(stopper.command.kill().await.unwrap(), CommandExit::Signal(libc::SIGKILL));
    process_list::assert_gone_within(&text, Duration::ZERO);
    process_list::wait_for(&session.sleep_text(2), 1);
    drop(other);
}

/// Each process forks the next and ends, so that the one that was just seen no longer exists.
#[tokio::test]
async fn a_chain_of_processes_that_fork_and_end_is_killed() {
    let session = Session::open().await;
    let mut runner = session.start(session.fixture(&["attack", "fork-chain", &session.scene.marker])).await;
    assert_eq!(runner.line().await, "ready");
    let begun = Instant::now();
    runner.command.kill().await.unwrap();
    assert!(begun.elapsed() < TWO_SECONDS, "{:?}", begun.elapsed());
    process_list::assert_gone_within(&format!("fork-chain\0{}", session.scene.marker), TWO_SECONDS);
}

#[tokio::test]
async fn no_command_can_signal_the_broker() {
    let session = Session::open().await;
    session.output("kill -KILL 1; kill -STOP 1; kill -TERM 1; true").await;
    assert_eq!(session.output("echo still here").await, "still here\n");
}

#[tokio::test]
async fn many_commands_run_at_the_same_time() {
    let session = Session::open().await;
    let outputs = (0..40).map(|number| {
        let command = session.scene.shell(&format!("echo {number}"));
        sandbox::capture(&session.sandbox, command, sandbox::OutputLimits::default())
    });
    let mut running: Vec<_> = outputs.map(Box::pin).collect();
    for (number, command) in running.iter_mut().enumerate() {
        assert_eq!(command.await.unwrap().stdout.text(), format!("{number}\n"));
    }
    assert_eq!(session.sandbox.list().await.unwrap(), []);
}

//! Invariant 5: whichever process dies, and however, no process is left.

use super::{AT_ONCE, DEADLINE, assert_dead, binary, both, daemons, ready, script, signal, start, within, written};
use rustix::process::Signal;
use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};
use workbench::process::{ProgramExit, Supervisor};

#[tokio::test]
async fn invariant_05_no_orphans_when_the_program_ends() {
    for supervisor in both() {
        for ending in ["exit 0", "kill -KILL $$"] {
            let (folder, command) = script(&format!("{}; read -r word; {ending}", daemons(true)));
            let mut child = start(&supervisor, &command).await;
            let ids = ready(&mut child, folder.path()).await;
            drop(child.stdin);
            let ended = within("the end", child.handle.wait()).await;
            assert!(matches!(ended, ProgramExit::Code(0) | ProgramExit::Signal(9)));
            assert_dead(ending, &ids).await;
            assert_eq!(child.stdout.next().await.unwrap(), None);
        }
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_when_it_is_stopped() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(true)));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        let receipt = within("the stop", child.handle.stop(AT_ONCE)).await;
        // No waiting: all processes must have ended when stop returns.
        assert!(ids.iter().all(|id| !super::is_alive(*id)), "{ids:?}");
        // An intermediate shell may still be counted.
        assert!(receipt.processes >= 4 && receipt.signals == ["SIGKILL"], "{receipt:?}");
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_when_the_handle_is_dropped() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(true)));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        assert_eq!(supervisor.running(), 1);
        drop(child);
        assert_dead("dropped", &ids).await;
        within("all of it", supervisor.wait_until_all_ended()).await;
        assert_eq!(supervisor.running(), 0);
    }
}

/// Cancels a start at many different points.
#[tokio::test]
async fn invariant_05_no_orphans_when_a_start_is_cancelled() {
    for supervisor in both() {
        let (folder, command) = script("echo $$ >> pids; exec sleep 1000");
        for micros in (0..20_000).step_by(400) {
            let start = supervisor.start(command.clone());
            if let Ok(child) = tokio::time::timeout(Duration::from_micros(micros), start).await {
                drop(child.unwrap());
            }
        }
        // A completed start shows that the script would have left a process.
        let child = start(&supervisor, &command).await;
        while written(folder.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child.handle.stop(AT_ONCE).await;
        assert_none_in("cancelled start", folder.path()).await;
    }
}

/// Without cgroups, only the keeper can find an orphan in its own session with a clean environment.
#[tokio::test]
async fn invariant_05_no_orphans_when_the_keeper_is_killed() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(supervisor.has_cgroups())));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        signal(i32::try_from(child.handle.keeper_id().unwrap()).unwrap(), Signal::KILL);
        // The server cleans up although nothing waits for the program.
        assert_dead("without a keeper", &ids).await;
        assert_eq!(within("the end", child.handle.wait()).await, ProgramExit::Unknown);
        child.handle.stop(AT_ONCE).await;
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_when_the_keeper_is_killed_and_the_handle_dropped_at_once() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(supervisor.has_cgroups())));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        signal(i32::try_from(child.handle.keeper_id().unwrap()).unwrap(), Signal::KILL);
        drop(child);
        assert_dead("without a keeper", &ids).await;
    }
}

/// A keeper stopped with SIGSTOP is treated like a dead one.
#[tokio::test]
async fn invariant_05_no_orphans_when_the_keeper_hangs() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(supervisor.has_cgroups())));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        signal(i32::try_from(child.handle.keeper_id().unwrap()).unwrap(), Signal::STOP);
        let receipt = within("the stop", child.handle.stop(AT_ONCE)).await;
        assert!(ids.iter().all(|id| !super::is_alive(*id)), "{ids:?}");
        assert_eq!(receipt.signals, ["SIGKILL"]);
        assert!(receipt.processes >= 3 && receipt.millis < 4000, "{receipt:?}");
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_of_a_program_that_starts_fifty() {
    for supervisor in both() {
        let (folder, command) = script(
            "touch pids; i=0; while [ $i -lt 50 ]; do setsid sh -c 'echo $$ >> pids; exec sleep 1000' & i=$((i+1)); done
            while [ $(wc -l < pids) -lt 50 ]; do sleep 0.01; done; echo ready; wait",
        );
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        let receipt = within("the stop", child.handle.stop(AT_ONCE)).await;
        assert!(ids.iter().all(|id| !super::is_alive(*id)), "{ids:?}");
        assert_eq!(receipt.processes, 51);
    }
}

/// Each process keeps starting others, some in new sessions.
#[tokio::test]
async fn invariant_05_no_orphans_of_a_fork_bomb() {
    for supervisor in both() {
        let (folder, command) = script("sh ./bomb & sh ./bomb & sleep 0.3; echo ready; wait");
        fs::write(
            folder.path().join("bomb"),
            "while :; do sh -c 'sleep 0.2' & setsid sh -c 'sleep 0.2' & wait $!; done",
        )
        .unwrap();
        let mut child = start(&supervisor, &command).await;
        ready(&mut child, folder.path()).await;
        drop(child);
        assert_none_in("a fork bomb", folder.path()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_05_no_orphans_of_twenty_at_once() {
    for supervisor in both() {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..20 {
            let supervisor = supervisor.clone();
            tasks.spawn(async move {
                let (folder, command) = script(&format!("{}; read -r word; exit {number}", daemons(true)));
                let mut child = start(&supervisor, &command).await;
                let ids = ready(&mut child, folder.path()).await;
                match number % 3 {
                    0 => drop(child),
                    1 => drop(within("the stop", child.handle.stop(AT_ONCE)).await),
                    _ => {
                        drop(child.stdin);
                        assert_eq!(within("the end", child.handle.wait()).await, ProgramExit::Code(number));
                    }
                }
                assert_dead("one of twenty", &ids).await;
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        within("all of them", supervisor.wait_until_all_ended()).await;
    }
}

const ROLE: &str = "GREENROOM_TEST_ROLE";

#[expect(clippy::disallowed_methods, reason = "this test restarts itself in another role")]
fn is_server_role() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// This test program as a server with two programs, which write their process ids to a folder.
struct Victim {
    process: tokio::process::Child,
    ids: Vec<i32>,
}

impl Victim {
    async fn start(test: &str, folder: &Path) -> Self {
        let process = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("keeper::deaths::{test}"), "--nocapture"])
            .env(ROLE, "server")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let end = Instant::now() + DEADLINE;
        while !folder.join("ready").exists() {
            assert!(Instant::now() < end, "no server");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ids = written(folder);
        assert!(ids.len() >= 8 && ids.iter().all(|id| super::is_alive(*id)), "{ids:?}");
        Self { process, ids }
    }

    /// Runs the server role until it is killed.
    async fn run_server_role() {
        let folder = std::env::current_dir().unwrap();
        let mut children = Vec::new();
        for supervisor in both() {
            let (own, command) = script(&format!("{}; wait", daemons(supervisor.has_cgroups())));
            let mut child = start(&supervisor, &command).await;
            let ids = ready(&mut child, own.path()).await;
            children.push((own, child, supervisor, ids));
        }
        let ids: Vec<String> = children.iter().flat_map(|(.., ids)| ids).map(ToString::to_string).collect();
        fs::write(folder.join("pids"), ids.join("\n")).unwrap();
        fs::write(folder.join("ready"), "").unwrap();
        tokio::time::sleep(DEADLINE).await;
    }

    async fn die(&mut self, signal_to_send: Signal) {
        signal(i32::try_from(self.process.id().unwrap()).unwrap(), signal_to_send);
        within("its end", self.process.wait()).await.unwrap();
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_when_the_server_is_killed() {
    if is_server_role() {
        return Victim::run_server_role().await;
    }
    for cause in [Signal::KILL, Signal::TERM, Signal::ABORT] {
        let folder = tempfile::tempdir().unwrap();
        let mut victim = Victim::start("invariant_05_no_orphans_when_the_server_is_killed", folder.path()).await;
        victim.die(cause).await;
        assert_dead("without a server", &victim.ids).await;
    }
}

/// The next server to start cleans up after killed servers with killed or stopped keepers.
#[tokio::test]
async fn invariant_05_no_orphans_after_a_restart_when_server_and_keepers_were_killed() {
    if is_server_role() {
        return Victim::run_server_role().await;
    }
    let innocent = Supervisor::new(binary());
    let (own, command) = script(&format!("{}; wait", daemons(true)));
    let mut child = start(&innocent, &command).await;
    let bystanders = ready(&mut child, own.path()).await;
    for cause in [Signal::KILL, Signal::STOP] {
        let folder = tempfile::tempdir().unwrap();
        let name = "invariant_05_no_orphans_after_a_restart_when_server_and_keepers_were_killed";
        let mut victim = Victim::start(name, folder.path()).await;
        let comm = |id: &i32| fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        let keepers: Vec<i32> = victim.ids.iter().copied().filter(|id| comm(id) == "gr-keeper\n").collect();
        assert_eq!(keepers.len(), 2);
        // Stop the server first, so that it cannot react to the death of its keepers.
        signal(i32::try_from(victim.process.id().unwrap()).unwrap(), Signal::STOP);
        for keeper in &keepers {
            signal(*keeper, cause);
        }
        victim.die(Signal::KILL).await;
        tokio::task::spawn_blocking(|| Supervisor::new(binary()).end_abandoned()).await.unwrap();
        assert_dead("after the sweep", &victim.ids).await;
    }
    assert!(bystanders.iter().all(|id| super::is_alive(*id)), "processes of a live server must survive");
}

/// Only a few processes at a time, but each is replaced faster than a scan of `/proc`.
#[tokio::test]
async fn invariant_05_no_orphans_of_a_self_replacing_process() {
    for supervisor in both() {
        let (folder, command) = script("sh ./comet & sleep 0.1; echo ready; wait; read -r word");
        fs::write(folder.path().join("comet"), "setsid sh ./comet &\n").unwrap();
        let mut child = start(&supervisor, &command).await;
        ready(&mut child, folder.path()).await;
        drop(child);
        assert_none_in("a comet", folder.path()).await;
    }
}

async fn assert_none_in(what: &str, folder: &Path) {
    let works_there = |id: i32| fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd == folder);
    let start = Instant::now();
    // A single scan proves nothing if processes are replaced faster than it runs.
    let mut empty_looks = 0;
    while empty_looks < 20 {
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let alive: Vec<i32> = all.filter(|id| works_there(*id)).collect();
        empty_looks = if alive.is_empty() { empty_looks + 1 } else { 0 };
        assert!(alive.is_empty() || start.elapsed() < super::TWO_SECONDS, "{what}: {alive:?} are alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

//! Invariant 5: whoever dies, in whatever way, nobody is left.

use super::{AT_ONCE, DEADLINE, assert_dead, binary, both, daemons, ready, script, signal, start, within, written};
use rustix::process::Signal;
use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};
use workbench::process::{Ended, Supervisor};

#[tokio::test]
async fn invariant_05_no_orphans_when_the_program_ends() {
    for supervisor in both() {
        for ending in ["exit 0", "kill -KILL $$"] {
            let (folder, command) = script(&format!("{}; read -r word; {ending}", daemons(true)));
            let mut child = start(&supervisor, &command).await;
            let ids = ready(&mut child, folder.path()).await;
            drop(child.stdin);
            let ended = within("the end", child.handle.ended()).await;
            assert!(matches!(ended, Ended::Code(0) | Ended::Signal(9)));
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
        // No waiting here: a stop that has returned is over.
        assert!(ids.iter().all(|id| !super::is_alive(*id)), "{ids:?}");
        // A shell in between may not have ended yet.
        assert!(receipt.processes >= 4 && receipt.signals == ["SIGKILL"], "{receipt:?}");
    }
}

#[tokio::test]
async fn invariant_05_no_orphans_when_the_handle_is_dropped() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(true)));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        assert_eq!(supervisor.living(), 1);
        drop(child);
        assert_dead("dropped", &ids).await;
        within("all of it", supervisor.all_gone()).await;
        assert_eq!(supervisor.living(), 0);
    }
}

/// A start that is given up in the middle, at any point of it.
#[tokio::test]
async fn invariant_05_no_orphans_when_a_start_is_given_up() {
    for supervisor in both() {
        let (folder, command) = script("echo $$ >> pids; exec sleep 1000");
        for micros in (0..20_000).step_by(400) {
            let start = supervisor.start(command.clone());
            if let Ok(child) = tokio::time::timeout(Duration::from_micros(micros), start).await {
                drop(child.unwrap());
            }
        }
        // One that ran to the end shows that there was something to leave behind.
        let child = start(&supervisor, &command).await;
        while written(folder.path()).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child.handle.stop(AT_ONCE).await;
        assert_none_in("given up", folder.path()).await;
    }
}

/// Without cgroups one that is orphaned, in a session of its own, and has cleaned its environment cannot be found by
/// anybody but the keeper.
#[tokio::test]
async fn invariant_05_no_orphans_when_the_keeper_is_killed() {
    for supervisor in both() {
        let (folder, command) = script(&format!("{}; wait", daemons(supervisor.has_cgroups())));
        let mut child = start(&supervisor, &command).await;
        let ids = ready(&mut child, folder.path()).await;
        signal(i32::try_from(child.handle.keeper_id().unwrap()).unwrap(), Signal::KILL);
        // Nobody waits for the program: the server sees to it all the same.
        assert_dead("without a keeper", &ids).await;
        assert_eq!(within("the end", child.handle.ended()).await, Ended::Unknown);
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

/// Nobody can refuse SIGSTOP; a keeper that hangs is as good as dead.
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

/// Each of a growing crowd goes on starting others, some in new sessions.
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
                        assert_eq!(within("the end", child.handle.ended()).await, Ended::Code(number));
                    }
                }
                assert_dead("one of twenty", &ids).await;
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        within("all of them", supervisor.all_gone()).await;
    }
}

const ROLE: &str = "GREENROOM_TEST_ROLE";

#[expect(clippy::disallowed_methods, reason = "this test starts itself again, in another role")]
fn plays_the_server() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// This test program again, as a server with two programs, in a folder where they write down who they are.
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

    /// Only ever ends by being killed.
    async fn be() {
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
    if plays_the_server() {
        return Victim::be().await;
    }
    for cause in [Signal::KILL, Signal::TERM, Signal::ABORT] {
        let folder = tempfile::tempdir().unwrap();
        let mut victim = Victim::start("invariant_05_no_orphans_when_the_server_is_killed", folder.path()).await;
        victim.die(cause).await;
        assert_dead("without a server", &victim.ids).await;
    }
}

/// Nobody was left to end them, or their keepers hang; the next server to start sees to both.
#[tokio::test]
async fn invariant_05_no_orphans_after_a_restart_when_server_and_keepers_were_killed() {
    if plays_the_server() {
        return Victim::be().await;
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
        // A server that is stopped cannot see to its keepers before it is killed too.
        signal(i32::try_from(victim.process.id().unwrap()).unwrap(), Signal::STOP);
        for keeper in &keepers {
            signal(*keeper, cause);
        }
        victim.die(Signal::KILL).await;
        tokio::task::spawn_blocking(|| Supervisor::new(binary()).sweep()).await.unwrap();
        assert_dead("after the sweep", &victim.ids).await;
    }
    assert!(bystanders.iter().all(|id| super::is_alive(*id)), "of a server that lives");
}

/// Never more than a few at a time, but none lives as long as it takes to look for it.
#[tokio::test]
async fn invariant_05_no_orphans_of_a_comet() {
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
    // One look is no proof where processes come and go faster than it takes.
    let mut empty_looks = 0;
    while empty_looks < 20 {
        let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let alive: Vec<i32> = all.filter(|id| works_there(*id)).collect();
        empty_looks = if alive.is_empty() { empty_looks + 1 } else { 0 };
        assert!(alive.is_empty() || start.elapsed() < super::TWO_SECONDS, "{what}: {alive:?} are alive");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

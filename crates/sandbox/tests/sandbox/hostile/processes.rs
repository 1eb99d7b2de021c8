//! Other processes: their environment, memory and life, and processes that outlive their command.

use super::{ALWAYS_STOPPED, Escaped, HostileCase, LANDLOCK, NATIVE, NONE, SANDBOX_STOPS_IT, Stopped, Verdict};
use crate::{
    process_list::{self, TWO_SECONDS},
    scene::{Scene, ServerUser},
    shared::DriveResult,
};
use sandbox::IsolationTier;
use std::{
    fs,
    time::{Duration, Instant},
};

fn marker(scene: &Scene) -> Vec<String> {
    vec![scene.marker.clone()]
}

/// Some distributions forbid to look at processes that are not children, sandbox or not.
fn is_restricted_by_yama() -> bool {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0")
}

#[test]
fn case_07_the_environment_of_the_server() {
    HostileCase::new("environment", marker).expect(ALWAYS_STOPPED);
}

#[test]
fn case_08_the_environment_of_other_processes() {
    HostileCase::new("environment-of-others", marker).expect(SANDBOX_STOPS_IT);
}

#[test]
fn the_memory_of_another_process() {
    let victim = |scene: &Scene| vec![scene.victim.id().to_string(), scene.marker.clone()];
    let stopped: &[(IsolationTier, Verdict)] = &[(NATIVE, Stopped), (LANDLOCK, Stopped)];
    let expected = if is_restricted_by_yama() { stopped } else { SANDBOX_STOPS_IT };
    HostileCase::new("memory-of", victim).expect(expected);
}

#[test]
fn the_process_list_of_the_machine() {
    let expected = [(NATIVE, Stopped), (LANDLOCK, Escaped), (NONE, Escaped)];
    HostileCase::new("processes", marker).expect(&expected);
}

#[test]
fn case_15_killing_a_process_outside() {
    let victim = |scene: &Scene| vec![scene.victim.id().to_string()];
    HostileCase::new("kill", victim).check(SANDBOX_STOPS_IT, |scene, verdict| {
        let deadline = Instant::now() + TWO_SECONDS;
        while verdict == Escaped && scene.victim_is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(scene.victim_is_alive(), verdict == Stopped);
    });
}

#[test]
fn case_29_tracing_a_process_and_reading_pid_one() {
    HostileCase::new("trace", |_| Vec::new()).expect(SANDBOX_STOPS_IT);
    // Without a sandbox, pid 1 is another user's.
    HostileCase::new("pid-one", |_| Vec::new()).expect(&[(NATIVE, Stopped), (LANDLOCK, Stopped)]);
}

/// Runs a script in every tier, and checks that nothing with the scene's second marker is left.
fn leaves_nothing(script: &str, expected_end: &str, change: fn(&mut crate::shared::DriveRequest)) -> Vec<DriveResult> {
    let mut results = Vec::new();
    for tier in [NATIVE, LANDLOCK, NONE] {
        for user in ServerUser::all(tier) {
            let scene = Scene::new(tier, user);
            let sleep = format!("9{}", scene.marker);
            let mut request = scene.request(scene.shell(&script.replace("SLEEP", &format!("sleep {sleep}"))));
            change(&mut request);
            let result = scene.drive(&request);
            assert_eq!(result.end, expected_end, "{}: {result:?}", scene.name());
            process_list::assert_gone_within(&format!("sleep\0{sleep}"), Duration::ZERO);
            results.push(result);
        }
    }
    results
}

const DAEMONS: &str = "setsid sh -c '(SLEEP &) ; SLEEP &' & (setsid SLEEP &) & sleep 0.1; ";

#[test]
fn case_21_a_daemon_in_the_background() {
    leaves_nothing(&format!("{DAEMONS} exit 3"), "exited 3", |_| {});
}

#[test]
fn case_22_a_background_job_that_holds_the_output() {
    let results = leaves_nothing("echo begun; SLEEP & exit 0", "exited 0", |_| {});
    for result in results {
        assert_eq!(result.stdout, "begun\n");
        assert!(result.milliseconds < 5000, "{result:?}");
    }
}

#[test]
fn case_23_a_timeout_ends_the_whole_tree() {
    leaves_nothing(&format!("{DAEMONS} SLEEP"), "timed out", |request| request.wall_milliseconds = 400);
}

#[test]
fn case_24_a_cancellation_ends_the_whole_tree() {
    leaves_nothing(&format!("{DAEMONS} SLEEP"), "cancelled", |request| request.cancel_after_milliseconds = Some(400));
}

#[test]
fn case_35_the_server_is_killed() {
    for tier in [NATIVE, LANDLOCK, NONE] {
        for user in ServerUser::all(tier) {
            let scene = Scene::new(tier, user);
            let text = format!("sleep\0{}", format_args!("8{}", scene.marker));
            let script = format!("{DAEMONS} SLEEP").replace("SLEEP", &format!("sleep 8{}", scene.marker));
            let mut server = scene.server(&scene.request(scene.shell(&script))).spawn().unwrap();
            process_list::wait_for(&text, 4);
            server.kill().unwrap();
            server.wait().unwrap();
            process_list::assert_gone_within(&text, TWO_SECONDS);
        }
    }
}

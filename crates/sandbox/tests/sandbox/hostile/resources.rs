//! Processes, memory, output, files and processor time without end.

use super::{ALWAYS_STOPPED, Escaped, HostileCase, LANDLOCK, NATIVE, NONE};
use crate::scene::{Scene, ServerUser};
use sandbox::Enforcement;

#[test]
fn case_16_a_fork_bomb() {
    let case = HostileCase::new("fork-bomb", |_| vec!["64".to_owned()]);
    case.changed(|_, request| request.policy.limits.processes = 64).expect(ALWAYS_STOPPED);
}

#[test]
fn case_17_the_memory_of_one_process() {
    let case = HostileCase::new("memory", |_| vec!["200".to_owned()]);
    case.changed(|_, request| request.policy.limits.process_memory_bytes = 128 << 20).expect(ALWAYS_STOPPED);
}

/// Stopped only where the report says so: with a delegated cgroup.
fn memory_in_total(attack: &str, arguments: &[String]) {
    for user in ServerUser::all(NATIVE) {
        let scene = Scene::new(NATIVE, user);
        let mut request = scene.request(scene.attack(attack, arguments));
        request.policy.limits.process_memory_bytes = 96 << 20;
        request.policy.limits.total_memory_bytes = 96 << 20;
        let result = scene.drive(&request);
        let isolation = result.isolation.as_ref().unwrap();
        let has_warning = isolation.warnings.iter().any(|warning| warning.starts_with("Memory is limited for each"));
        match isolation.memory {
            Enforcement::Full => assert!(!result.stdout.starts_with("ESCAPED") && !has_warning, "{result:?}"),
            Enforcement::Partial => {
                assert_eq!(super::verdict(&scene, &result), Escaped);
                assert!(has_warning, "{isolation:?}");
            }
            Enforcement::None => panic!("memory of one process is always limited: {isolation:?}"),
        }
    }
}

#[test]
fn case_18_the_memory_of_several_processes_is_reported_as_it_is() {
    memory_in_total("memory-many", &["3".to_owned(), "64".to_owned()]);
}

#[test]
fn case_19_memory_in_files_is_reported_as_it_is() {
    memory_in_total("memfd", &["160".to_owned()]);
}

#[test]
fn case_20_output_without_end() {
    for tier in [NATIVE, LANDLOCK, NONE] {
        for user in ServerUser::all(tier) {
            let scene = Scene::new(tier, user);
            let mut request = scene.request(scene.shell("yes"));
            request.total_bytes = 4 << 20;
            let result = scene.drive(&request);
            assert_eq!(result.end, "too much output", "{}", scene.name());
            assert!(result.total_bytes < 5 << 20 && result.stdout.len() < 70 << 10, "{} bytes", result.total_bytes);
            assert!(result.stdout.contains("bytes omitted") && result.milliseconds < 5000);
        }
    }
}

#[test]
fn case_25_a_file_that_is_too_large() {
    let case = HostileCase::new("large-file", |_| vec!["8".to_owned()]);
    case.changed(|_, request| request.policy.limits.file_bytes = 4 << 20).expect(ALWAYS_STOPPED);
}

#[test]
fn case_26_many_files_are_reported_as_not_limited() {
    let case = HostileCase::new("many-files", |_| vec!["64".to_owned(), "256".to_owned()]);
    let case = case.changed(|_, request| request.policy.limits.file_bytes = 1 << 20);
    case.expect(&[(NATIVE, Escaped), (LANDLOCK, Escaped), (NONE, Escaped)]);
    let scene = Scene::new(NATIVE, ServerUser::Ordinary);
    let isolation = scene.drive(&scene.request(scene.shell("true"))).isolation.unwrap();
    assert_eq!(isolation.disk, Enforcement::Partial);
    assert!(isolation.warnings.iter().any(|warning| warning.starts_with("Disk space")), "{isolation:?}");
}

#[test]
fn case_27_processor_time() {
    for (tier, user) in [(NATIVE, ServerUser::Ordinary), (NONE, ServerUser::Ordinary)] {
        let scene = Scene::new(tier, user);
        let mut request = scene.request(scene.attack("spin", &[]));
        request.policy.limits.cpu_seconds = Some(1);
        let result = scene.drive(&request);
        assert!(["signal 9", "signal 24"].contains(&result.end.as_str()), "{result:?}");
    }
}

#[test]
fn temporary_files_are_limited() {
    let scene = Scene::new(NATIVE, ServerUser::Ordinary);
    let mut request = scene.request(scene.shell("dd if=/dev/zero of=/tmp/large bs=1M count=8"));
    request.policy.limits.temp_bytes = 4 << 20;
    let result = scene.drive(&request);
    assert_eq!(result.end, "exited 1", "{result:?}");
    assert!(result.stderr.contains("No space left"), "{result:?}");
}

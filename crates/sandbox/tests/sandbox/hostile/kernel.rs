//! The kernel: namespaces, rarely used calls, devices, rights and settings.

use super::{ALWAYS_STOPPED, Escaped, HostileCase, LANDLOCK, NATIVE, NONE, SANDBOX_STOPS_IT, Stopped};
use crate::{
    scene::{Scene, ServerUser},
    shared::DEVICES,
};
use std::{fs::File, os::unix::fs::PermissionsExt as _};

#[test]
fn case_28_namespaces_mounts_and_rarely_used_calls() {
    HostileCase::new("kernel-calls", |_| Vec::new()).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_30_device_nodes() {
    // Without a sandbox it depends on the machine: udev opens /dev/fuse and /dev/kvm to everyone, containers mostly do not.
    let is_root = nix::unistd::geteuid().is_root();
    let open_to_everyone = |path: &&str| {
        let Ok(file) = File::open(path) else { return false };
        !is_root || file.metadata().unwrap().permissions().mode() & 0o004 != 0
    };
    let without = if DEVICES.iter().any(open_to_everyone) { Escaped } else { Stopped };
    HostileCase::new("devices", |_| Vec::new()).expect(&[(NATIVE, Stopped), (LANDLOCK, Stopped), (NONE, without)]);
}

#[test]
fn case_31_rights_by_a_setuid_program() {
    HostileCase::new("rights", |_| Vec::new()).expect(ALWAYS_STOPPED);
}

#[test]
fn no_capability_is_left_to_get_and_the_filter_is_on() {
    for user in ServerUser::all(NATIVE) {
        let scene = Scene::new(NATIVE, user);
        let result =
            scene.drive(&scene.request(scene.shell("grep -E '^(CapBnd|Seccomp|NoNewPrivs):' /proc/self/status")));
        let words: Vec<&str> = result.stdout.split_whitespace().collect();
        let expected = ["CapBnd:", "0000000000000000", "NoNewPrivs:", "1", "Seccomp:", "2"];
        assert_eq!(words, expected, "{}: {result:?}", scene.name());
    }
}

#[test]
fn case_32_settings_and_log_of_the_kernel() {
    HostileCase::new("kernel-settings", |_| Vec::new()).expect(ALWAYS_STOPPED);
}

#[test]
fn the_keyring() {
    HostileCase::new("keyring", |_| Vec::new()).expect(SANDBOX_STOPS_IT);
}

#[test]
fn clock_and_host_name() {
    HostileCase::new("clock-and-hostname", |_| Vec::new()).expect(ALWAYS_STOPPED);
    for (tier, is_own) in [(NATIVE, true), (LANDLOCK, false), (NONE, false)] {
        let scene = Scene::new(tier, ServerUser::Ordinary);
        let result = scene.drive(&scene.request(scene.shell("cat /proc/sys/kernel/hostname")));
        assert_eq!(result.stdout == "sandbox\n", is_own, "{result:?}");
    }
}

#[test]
fn the_device_tree_of_the_kernel() {
    for (tier, expected) in SANDBOX_STOPS_IT {
        for user in ServerUser::all(*tier) {
            let scene = Scene::new(*tier, user);
            let result = scene.drive(&scene.request(scene.shell("ls /sys && echo listed")));
            let found = if result.stdout.ends_with("listed\n") { Escaped } else { Stopped };
            assert_eq!(found, *expected, "{}: {result:?}", scene.name());
        }
    }
}

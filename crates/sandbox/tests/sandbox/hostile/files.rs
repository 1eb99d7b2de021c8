//! Reading and changing files outside of the project.

use super::{ALWAYS_STOPPED, Escaped, HostileCase, LANDLOCK, NATIVE, NONE, SANDBOX_STOPS_IT, Stopped};
use crate::{
    scene::{Scene, ServerUser, has_content},
    shared::DriveRequest,
};
use std::{fs, os::unix::fs::PermissionsExt as _};

fn secret(scene: &Scene) -> Vec<String> {
    vec![scene.secret_file(), scene.marker.clone()]
}

#[test]
fn case_01_a_secret_file_outside() {
    HostileCase::new("read", secret).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_02_dots_in_a_path() {
    HostileCase::new("traverse", secret).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_03_a_symbolic_link_in_the_project() {
    HostileCase::new("symlink", secret).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_04_a_hard_link_in_the_project() {
    HostileCase::new("hardlink", secret).expect(SANDBOX_STOPS_IT);
}

#[test]
fn case_05_writing_outside() {
    let path = |scene: &Scene| vec![scene.outside("written").display().to_string()];
    HostileCase::new("write", path).check(SANDBOX_STOPS_IT, |scene, verdict| {
        assert_eq!(has_content(&scene.outside("written"), "attack"), verdict == Escaped);
    });
}

#[test]
fn case_06_writing_to_the_system() {
    let paths = |scene: &Scene| {
        let folders = ["/usr", "/usr/bin", "/etc", "", "/var/tmp"];
        folders.map(|folder| format!("{folder}/greenroom-{}", scene.marker)).to_vec()
    };
    HostileCase::new("write", paths).check(SANDBOX_STOPS_IT, |scene, verdict| {
        let written = format!("/var/tmp/greenroom-{}", scene.marker);
        assert_eq!(fs::exists(&written).unwrap(), verdict == Escaped);
        if verdict == Escaped {
            fs::remove_file(written).unwrap();
        }
    });
}

#[test]
fn case_09_a_descriptor_that_the_server_leaks() {
    let leak = |scene: &Scene, request: &mut DriveRequest| request.leaked_file = Some(scene.secret_file());
    HostileCase::new("descriptors", |scene| vec![scene.marker.clone()]).changed(leak).expect(ALWAYS_STOPPED);
}

#[test]
fn case_36_truncating_a_file_outside() {
    HostileCase::new("truncate", |scene| vec![scene.secret_file()]).check(SANDBOX_STOPS_IT, |scene, verdict| {
        assert_eq!(has_content(&scene.outside("secret.txt"), &scene.marker), verdict == Stopped);
    });
}

#[test]
fn case_37_changing_the_mode_of_a_file_outside() {
    HostileCase::new("chmod", |scene| vec![scene.secret_file()]).check(
        &[(NATIVE, Stopped), (NONE, Escaped)],
        |scene, verdict| {
            let mode = fs::metadata(scene.outside("secret.txt")).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode == 0o777, verdict == Escaped);
        },
    );
}

/// The weakness that the report of this tier warns of.
#[test]
fn case_37_is_open_with_landlock_alone_for_a_server_that_is_not_root() {
    for user in ServerUser::all(LANDLOCK) {
        let scene = Scene::new(LANDLOCK, user);
        let result = scene.drive(&scene.request(scene.attack("chmod", &[scene.secret_file()])));
        let expected = if user == ServerUser::Ordinary { Escaped } else { Stopped };
        assert_eq!(super::verdict(&scene, &result), expected, "{}: {result:?}", scene.name());
        let warns = result.isolation.unwrap().warnings.iter().any(|warning| warning.contains("change the mode"));
        assert_eq!(warns, expected == Escaped, "{}", scene.name());
    }
}

/// Another project, an upload of another room and the server's database are files next to the project's folder.
#[test]
fn the_folders_next_to_the_project() {
    let neighbor = |scene: &Scene| vec![format!("../outside/secret.txt"), scene.marker.clone()];
    HostileCase::new("read", neighbor).expect(SANDBOX_STOPS_IT);
}

/// A file of the project is a file of this machine, where other users may be able to start it.
#[test]
fn a_setuid_file_in_the_project() {
    HostileCase::new("setuid-file", |_| Vec::new()).check(SANDBOX_STOPS_IT, |scene, verdict| {
        let mode = fs::metadata(scene.project().join("setuid")).unwrap().permissions().mode();
        assert_eq!(mode & 0o6000 != 0, verdict == Escaped, "{mode:o}");
    });
}

#[test]
fn ordinary_modes_can_be_set() {
    let scene = Scene::new(NATIVE, ServerUser::Ordinary);
    let script =
        "umask 022; touch f; chmod 755 f; mkdir d; chmod 1777 d; stat -c %a f d; cp -p f g; install -m 640 f h";
    let result = scene.drive(&scene.request(scene.shell(script)));
    assert_eq!((result.end.as_str(), result.stdout.as_str()), ("exited 0", "755\n1777\n"), "{result:?}");
}

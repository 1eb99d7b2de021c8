//! A program runs as if it had been started directly.

use super::{both, cgroup, end, line, program, script, start, within};
use rustix::process::Signal;
use std::{fs, io, os::unix::fs::PermissionsExt as _};
use tokio::io::AsyncWriteExt as _;
use workbench::process::{ProcessStartError, ProgramExit, Supervisor};

#[tokio::test]
async fn exit_status_is_reported() {
    for supervisor in both() {
        for (text, expected) in [
            ("exit 0", ProgramExit::Code(0)),
            ("exit 37", ProgramExit::Code(37)),
            ("kill -KILL $$", ProgramExit::Signal(9)),
            ("kill -SEGV $$", ProgramExit::Signal(11)),
        ] {
            let (_folder, command) = script(text);
            assert_eq!(end(&mut start(&supervisor, &command).await).await, expected, "{text}");
        }
    }
}

#[tokio::test]
async fn stdin_and_stdout_are_connected_directly() {
    for supervisor in both() {
        let (_folder, command) = script("while read -r word; do echo \"$word, too\"; done; echo the end");
        let mut child = start(&supervisor, &command).await;
        for word in ["one", "two"] {
            child.stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
            assert_eq!(line(&mut child).await, format!("{word}, too"));
        }
        drop(child.stdin);
        assert_eq!(within("a line", child.stdout.next()).await.unwrap().as_deref(), Some("the end"));
        assert_eq!(within("the end", child.stdout.next()).await.unwrap(), None);
        assert_eq!(child.handle.wait().await, ProgramExit::Code(0));
    }
}

#[tokio::test]
async fn stderr_is_complete_when_the_exit_is_reported() {
    let supervisor = Supervisor::new(super::binary());
    for _ in 0..20 {
        let (_folder, command) = script("i=0; while [ $i -lt 300 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
        let mut child = start(&supervisor, &command).await;
        assert_eq!(end(&mut child).await, ProgramExit::Code(1));
        assert!(child.handle.stderr().text().ends_with("line 299"));
    }
}

/// Only the marker variable is added, and the keeper has an empty environment.
#[tokio::test]
async fn invariant_17_secrets_stay_environment_is_exactly_as_given() {
    for supervisor in both() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = program("env", &[], folder.path());
        command.env.insert("ODD".into(), "a=b c".into());
        let mut child = start(&supervisor, &command).await;
        let mut variables = Vec::new();
        while let Some(variable) = within("a line", child.stdout.next()).await.unwrap() {
            variables.push(variable);
        }
        variables.sort();
        let [mark, odd, path] = &variables[..] else { panic!("{variables:?}") };
        assert!(mark.starts_with("GREENROOM_DOMAIN="));
        assert_eq!([odd, path], ["ODD=a=b c", "PATH=/usr/local/bin:/usr/bin:/bin"]);

        let mut child = start(&supervisor, &program("cat", &[], folder.path())).await;
        let keeper = child.handle.keeper_id().unwrap();
        assert_eq!(fs::read(format!("/proc/{keeper}/environ")).unwrap(), b"");
        assert_eq!(fs::read_to_string(format!("/proc/{keeper}/comm")).unwrap(), "gr-keeper\n");
        let command_line = fs::read_to_string(format!("/proc/{keeper}/cmdline")).unwrap();
        assert!(command_line.starts_with(&format!("gr-keeper\0__keep\0{}.", std::process::id())), "{command_line:?}");
        drop(child.stdin);
        assert_eq!(child.handle.wait().await, ProgramExit::Code(0));
    }
}

#[tokio::test]
async fn program_gets_its_arguments_and_folder_and_nothing_else() {
    let text = "pwd; printf '<%s>' \"$@\"; echo; ls /proc/self/fd | tr '\\n' ' '; echo; cat /proc/self/status";
    for supervisor in both() {
        let (folder, mut command) = script(text);
        command.args.extend(["name", "", "two words", "--", "new\nline", "\"'$"].map(Into::into));
        let mut child = start(&supervisor, &command).await;
        assert_eq!(line(&mut child).await, folder.path().canonicalize().unwrap().to_str().unwrap());
        assert_eq!(line(&mut child).await, "<><two words><--><new");
        assert_eq!(line(&mut child).await, "line><\"'$>");
        // File descriptors that this process inherited may be included.
        let direct = tokio::process::Command::new(&command.program).args(&command.args).output().await.unwrap();
        let direct = String::from_utf8(direct.stdout).unwrap();
        assert_eq!(line(&mut child).await, direct.lines().nth(3).unwrap(), "open files");
        while let Some(fact) = within("a line", child.stdout.next()).await.unwrap() {
            let signals =
                |name: &str| fact.strip_prefix(name).map(|bits| u64::from_str_radix(bits.trim(), 16).unwrap());
            assert!(signals("SigBlk:").is_none_or(|blocked| blocked == 0), "{fact}");
            // HUP, INT, QUIT, PIPE, TERM.
            assert!(signals("SigIgn:").is_none_or(|ignored| ignored & 0x5007 == 0), "{fact}");
        }
    }
}

#[tokio::test]
async fn long_arguments_arrive() {
    let (_folder, mut command) = script("printf %s \"$LONG$1\" | wc -c");
    // Near the limit of one string, and more than a socket buffer.
    for number in 0..8 {
        command.env.insert(format!("FILL{number}").into(), "x".repeat(100_000).into());
    }
    command.env.insert("LONG".into(), "y".repeat(100_000).into());
    command.args.extend(["name".into(), "z".repeat(100_000).into()]);
    for supervisor in both() {
        assert_eq!(line(&mut start(&supervisor, &command).await).await.trim(), "200000");
    }
}

#[tokio::test]
async fn start_errors_have_a_reason() {
    for supervisor in both() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, "not a program").unwrap();
        let garbage = folder.path().join("garbage");
        fs::write(&garbage, [0; 64]).unwrap();
        fs::set_permissions(&garbage, fs::Permissions::from_mode(0o755)).unwrap();
        for (path, kind) in [
            ("no-such-program", Some(io::ErrorKind::NotFound)),
            ("/no/such/program", Some(io::ErrorKind::NotFound)),
            (plain.to_str().unwrap(), Some(io::ErrorKind::PermissionDenied)),
            (garbage.to_str().unwrap(), None),
        ] {
            let error = supervisor.start(program(path, &[], folder.path())).await.err().unwrap();
            let ProcessStartError::Spawn { program, source } = error else { panic!("{error}") };
            assert_eq!(program, path);
            assert!(kind.is_none_or(|kind| source.kind() == kind), "{path}: {source}");
        }
        let missing = folder.path().join("missing");
        let error = supervisor.start(program("/bin/sh", &[], &missing)).await.err().unwrap();
        assert!(matches!(error, ProcessStartError::Refused { .. }) && error.to_string().contains("missing"), "{error}");
        let error = supervisor.start(program("/bin/sh", &["a\0b"], folder.path())).await.err().unwrap();
        assert!(matches!(error, ProcessStartError::Refused { .. }), "{error}");
        within("the keepers' end", supervisor.wait_until_all_ended()).await;
    }
    let supervisor = Supervisor::new("/no/such/keeper".into());
    let error = supervisor.start(script("exit 0").1).await.err().unwrap();
    assert!(matches!(error, ProcessStartError::Refused { .. }) && error.to_string().contains("keeper"), "{error}");
}

/// A keeper that died of a stray signal would kill its program.
#[tokio::test]
async fn keeper_ignores_signals() {
    for supervisor in both() {
        let (_folder, command) = script("echo ready; cat");
        let mut child = start(&supervisor, &command).await;
        let keeper = i32::try_from(child.handle.keeper_id().unwrap()).unwrap();
        for unwanted in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2] {
            super::signal(keeper, unwanted);
        }
        assert_eq!(line(&mut child).await, "ready");
        child.stdin.write_all(b"still here\n").await.unwrap();
        assert_eq!(line(&mut child).await, "still here");
        assert!(super::is_alive(keeper));
        // Its own session, so that terminal signals to the server's group do not reach it.
        let session = |id: i32| super::stat(id).unwrap().split(' ').nth(3).unwrap().to_owned();
        assert_eq!((session(keeper), session(child.handle.process_id())), (keeper.to_string(), keeper.to_string()));
        drop(child.stdin);
        assert_eq!(child.handle.wait().await, ProgramExit::Code(0));
    }
}

/// The keeper is outside the cgroup, or it would kill itself.
#[tokio::test]
async fn cgroup_exists_as_long_as_the_program() {
    let supervisor = Supervisor::new(super::binary());
    let (_folder, command) = script("sleep 1000 & echo ready; wait");
    let mut child = start(&supervisor, &command).await;
    assert_eq!(line(&mut child).await, "ready");
    let keeper = i32::try_from(child.handle.keeper_id().unwrap()).unwrap();
    let own = cgroup(i32::try_from(std::process::id()).unwrap());
    // The keeper replies before it leaves the cgroup.
    let left = async {
        while cgroup(keeper) != own {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    within("the keeper's way out", left).await;
    let leaf = cgroup(child.handle.process_id());
    assert_eq!(leaf != own, supervisor.has_cgroups());
    child.handle.stop(super::AT_ONCE).await;
    if let Some(leaf) = leaf.filter(|_| supervisor.has_cgroups()) {
        assert!(!leaf.exists(), "{}", leaf.display());
    }
}

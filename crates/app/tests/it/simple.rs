//! Single-request commands, their errors and exit codes.

use crate::{
    double::{Double, RUN},
    greenroom, run,
};

#[tokio::test]
async fn lists_are_tables_with_escaped_cells() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    let rooms = run(dir.path(), &["rooms", "--server", &double.url()]).await;
    assert_eq!(rooms.code, Some(0), "{}", rooms.stderr);
    let lines: Vec<&str> = rooms.stdout.lines().collect();
    assert!(lines[0].starts_with("ID") && lines[0].ends_with("UPDATED"), "{lines:?}");
    assert!(lines[1].contains("A␛[2Jroom") && lines[1].contains("echo") && !lines[1].contains('\u{1b}'), "{lines:?}");
    let agents = run(dir.path(), &["agents", "--server", &double.url()]).await;
    assert!(agents.stdout.contains("scripted"), "{}", agents.stdout);
    let nowhere = run(dir.path(), &["events", "nowhere", "--server", &double.url()]).await;
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("there is no room \"nowhere\""), "{}", nowhere.stderr);
    let cancelled = run(dir.path(), &["cancel", RUN, "--server", &double.url()]).await;
    assert_eq!(
        (cancelled.code, cancelled.stdout.as_str()),
        (Some(0), "cancelled after 12 ms, 1 process ended (SIGTERM)\n")
    );
}

#[tokio::test]
async fn no_server_is_running() {
    let dir = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for arguments in [vec!["rooms"], vec!["run", "echo", "hello"], vec!["events", RUN, "--follow"]] {
        let output = run(dir.path(), &[&arguments[..], &["--server", &url]].concat()).await;
        assert_eq!(output.code, Some(1));
        assert_eq!(output.stderr, format!("greenroom: nothing answers at {url}; start it with: greenroom serve\n"));
    }
}

#[tokio::test]
async fn errors_show_detail_and_code_and_a_token_grants_access() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.want_token("s3cret");
    let output = run(dir.path(), &["agents", "--server", &double.url()]).await;
    assert_eq!(output.code, Some(1));
    assert_eq!(output.stderr, "greenroom: a token is needed␛[2J (unauthorized)\n");
    let mut command = greenroom(dir.path(), &["agents"]);
    command.env("GREENROOM_TOKEN", "s3cret").env("GREENROOM_SERVER", double.url());
    assert_eq!(crate::output_of(command.spawn().unwrap()).await.code, Some(0));
}

#[tokio::test]
async fn usage_is_exit_code_2_and_one_line() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["serve", "--listen", "here"][..], "server.listen is \"here\" (--listen)"),
        (&["serve", "--config", "absent.toml"][..], "absent.toml"),
        (&["rooms", "--server", "localhost"][..], "--server"),
        (&["run", "echo", ""][..], "empty"),
        (&["restore", "absent.backup"][..], "absent.backup"),
    ] {
        let output = run(dir.path(), arguments).await;
        assert_eq!(output.code, Some(2), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(said) && output.stderr.lines().count() == 1, "{arguments:?}: {}", output.stderr);
    }
    assert_eq!(run(dir.path(), &["fly"]).await.code, Some(2));
}

#[tokio::test]
async fn unknown_agent_error_lists_the_agents() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    let output = run(dir.path(), &["run", "nobody", "hello", "--server", &double.url()]).await;
    assert_eq!(
        (output.code, output.stderr.as_str()),
        (Some(1), "greenroom: there is no agent \"nobody\"; there are: echo (0000000a)\n")
    );
}

#[tokio::test]
async fn doctor_reports_programs_and_install_advice() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    let listen = double.address.to_string();
    // Without a PATH no program is found, which is not an error.
    let mut command = greenroom(dir.path(), &["doctor"]);
    command.env("GREENROOM_SERVER__LISTEN", &listen).env("PATH", dir.path());
    let output = crate::output_of(command.spawn().unwrap()).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let row = |what: &str| output.stdout.lines().find(|line| line.starts_with(what)).unwrap().to_owned();
    assert!(row("address").contains(&format!("Greenroom 9.9.9 answers on {listen}")), "{}", output.stdout);
    assert!(row("data directory").contains("MiB free"), "{}", output.stdout);
    // Either the report of a trial run, or why there is no sandbox.
    let sandbox = row("sandbox");
    assert!(sandbox.contains("native: file full, network full") || sandbox.contains("no sandbox works"), "{sandbox}");
    for program in ["claude", "codex", "gemini", "git", "node", "npx", "docker"] {
        assert!(row(program).contains("missing") && row(program).contains("install"), "{}", output.stdout);
    }

    std::fs::write(dir.path().join("data"), "").unwrap();
    let output = crate::run(dir.path(), &["doctor"]).await;
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stdout.contains("BROKEN"), "{}", output.stdout);
}

#[tokio::test]
async fn completions_are_printed_for_each_shell() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(dir.path(), &["completions", shell]).await;
        assert_eq!(output.code, Some(0));
        assert!(output.stdout.contains("greenroom"), "{shell}");
    }
}

//! Commands that ask once, what they say when it cannot work, and their exit codes.

use crate::{
    double::{Double, RUN},
    greenroom, run,
};

#[tokio::test]
async fn lists_are_tables_and_their_cells_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    let rooms = run(dir.path(), &["rooms", "--server", &double.url()]).await;
    assert_eq!(rooms.code, Some(0), "{}", rooms.side);
    let lines: Vec<&str> = rooms.out.lines().collect();
    assert!(lines[0].starts_with("ID") && lines[0].ends_with("UPDATED"), "{lines:?}");
    assert!(lines[1].contains("A␛[2Jroom") && lines[1].contains("echo") && !lines[1].contains('\u{1b}'), "{lines:?}");
    let agents = run(dir.path(), &["agents", "--server", &double.url()]).await;
    assert!(agents.out.contains("scripted"), "{}", agents.out);
    let cancelled = run(dir.path(), &["cancel", RUN, "--server", &double.url()]).await;
    assert_eq!(
        (cancelled.code, cancelled.out.as_str()),
        (Some(0), "cancelled after 12 ms, 1 process ended (SIGTERM)\n")
    );
}

#[tokio::test]
async fn nothing_listens() {
    let dir = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    for arguments in [vec!["rooms"], vec!["run", "echo", "hello"], vec!["events", RUN, "--follow"]] {
        let ended = run(dir.path(), &[&arguments[..], &["--server", &url]].concat()).await;
        assert_eq!(ended.code, Some(1));
        assert_eq!(ended.side, format!("greenroom: nothing answers at {url}; start it with: greenroom serve\n"));
    }
}

#[tokio::test]
async fn a_refusal_shows_its_detail_and_code_and_the_token_opens() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    double.want_token("s3cret");
    let ended = run(dir.path(), &["agents", "--server", &double.url()]).await;
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.side, "greenroom: a token is needed␛[2J (unauthorized)\n");
    let mut command = greenroom(dir.path(), &["agents"]);
    command.env("GREENROOM_TOKEN", "s3cret").env("GREENROOM_SERVER", double.url());
    assert_eq!(crate::ended(command.spawn().unwrap()).await.code, Some(0));
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
        let ended = run(dir.path(), arguments).await;
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.side);
        assert!(ended.side.contains(said) && ended.side.lines().count() == 1, "{arguments:?}: {}", ended.side);
    }
    assert_eq!(run(dir.path(), &["events", "not-an-id"]).await.code, Some(2));
    assert_eq!(run(dir.path(), &["fly"]).await.code, Some(2));
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_answered_with_those_that_are() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    let ended = run(dir.path(), &["run", "nobody", "hello", "--server", &double.url()]).await;
    assert_eq!(
        (ended.code, ended.side.as_str()),
        (Some(1), "greenroom: there is no agent \"nobody\"; there are: echo\n")
    );
}

#[tokio::test]
async fn the_doctor_finds_what_is_there_and_says_how_to_get_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let double = Double::start().await;
    let listen = double.address.to_string();
    // Without a PATH no program is found, which is no fault.
    let mut command = greenroom(dir.path(), &["doctor"]);
    command.env("GREENROOM_SERVER__LISTEN", &listen).env("PATH", dir.path());
    let ended = crate::ended(command.spawn().unwrap()).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.side);
    let row = |what: &str| ended.out.lines().find(|line| line.starts_with(what)).unwrap().to_owned();
    assert!(row("address").contains(&format!("Greenroom 9.9.9 answers on {listen}")), "{}", ended.out);
    assert!(row("data directory").contains("MiB free"), "{}", ended.out);
    for program in ["claude", "codex", "gemini", "git", "node", "npx", "docker"] {
        assert!(row(program).contains("missing") && row(program).contains("install"), "{}", ended.out);
    }

    std::fs::write(dir.path().join("data"), "").unwrap();
    let ended = crate::run(dir.path(), &["doctor"]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert!(ended.out.contains("BROKEN"), "{}", ended.out);
}

#[tokio::test]
async fn completions_are_printed_for_each_shell() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = run(dir.path(), &["completions", shell]).await;
        assert_eq!(ended.code, Some(0));
        assert!(ended.out.contains("greenroom"), "{shell}");
    }
}

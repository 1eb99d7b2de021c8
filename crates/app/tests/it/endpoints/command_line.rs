//! The command line against the real server.

use super::{
    binary::Binary,
    requests::{RoomFollower, counted, data, get, journal, post_text, room, wait_for_end},
    shares::two_users,
};
use crate::{CommandOutput, greenroom, output_of, run};
use domain::{event::EventType, run::RunStatus};
use serde_json::Value;
use std::{path::Path, process::Stdio};
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

on_both_databases! {
    server: run_prints_the_answer_and_usage, events_follow_prints_new_events, rooms_agents_and_cancel, doctor_finds_the_server,
            b29_an_error_is_printed_once_on_a_line_of_its_own, b30_the_usage_does_not_ask_for_what_a_variable_sets,
            b31_doctor_checks_the_server_that_it_is_told,
            budgets_are_set_listed_and_deleted, objects_are_created_renamed_and_deleted, approvals_are_listed_and_answered,
            a_chat_answers_asks_and_goes_on, an_interrupt_stops_the_answer_and_not_the_chat;
    database: c2_commands_use_the_key_of_the_data_folder, a_budget_of_a_user_is_set_by_name;
}

/// A command that talks to this server, with the client's credential.
pub(super) fn client_of(api: &TestClient, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = greenroom(dir, arguments);
    command.env("GREENROOM_SERVER", api.base_url()).env("GREENROOM_TOKEN", api.token().unwrap());
    command
}

pub(super) async fn run_as(api: &TestClient, dir: &Path, arguments: &[&str]) -> CommandOutput {
    output_of(client_of(api, dir, arguments).spawn().unwrap()).await
}

async fn run_prints_the_answer_and_usage(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let output = run_as(api, dir.path(), &["run", "scripted", "!count 30 5"]).await;
    assert_eq!((output.code, output.stdout), (Some(0), counted(30) + "\n"), "{}", output.stderr);
    assert!(output.stderr.contains("33 tokens"), "{}", output.stderr);
    let room = get(api, "/api/rooms").await.expect_status(200)["rooms"][0]["id"].as_str().unwrap().to_owned();
    assert!(output.stderr.contains(&room), "the output must name the room: {}", output.stderr);
    let more = run_as(api, dir.path(), &["run", "scripted", "!fail oh_no Sorry", "--room", &room]).await;
    assert_eq!((more.code, more.stdout.as_str()), (Some(1), "I am about to fail.\n"));
    assert!(more.stderr.contains("Sorry") && more.stderr.contains("oh_no"), "{}", more.stderr);
    assert_eq!(api.messages(room.parse().unwrap(), None, 10).await.unwrap().messages.len(), 4);
    let nobody = run_as(api, dir.path(), &["run", "nobody", "hi"]).await;
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(1), ""));
}

async fn budgets_are_set_listed_and_deleted(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let budget = async |arguments: &[&str]| run_as(api, dir.path(), &[&["budget"], arguments].concat()).await;
    let set = budget(&["set", "$0.5", "--agent", "scripted", "--period", "day"]).await;
    assert_eq!(set.code, Some(0), "{}", set.stderr);
    assert!(set.stdout.ends_with(": $0.5 per day\n"), "{}", set.stdout);
    assert_eq!(budget(&["set", "50", "--workspace"]).await.code, Some(0));
    let room = room(api).await;
    let spent = post_text(api, room, r#"!script [{"text":"dear"},{"usage":{"cost":0.75}}]"#).await;
    wait_for_end(api, spent).await;
    let listed = budget(&["list"]).await.stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(
        listed.contains("$0.7500 (used up)") && listed.contains("scripted") && listed.contains("$50.00"),
        "{listed}"
    );
    let refused = run_as(api, dir.path(), &["run", "scripted", "hi"]).await;
    assert!(refused.code == Some(1) && refused.stderr.contains("budget_exceeded"), "{}", refused.stderr);

    // A larger limit replaces the smaller one of the same agent and period.
    assert_eq!(budget(&["set", "2", "--agent", "scripted", "--period", "day"]).await.code, Some(0));
    let listed = budget(&["list"]).await.stdout;
    assert!(listed.lines().count() == 3 && !listed.contains("used up") && listed.contains("$2.00"), "{listed}");
    let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert_eq!(budget(&["delete", &id]).await.stdout, format!("budget {id} is deleted\n"));
    assert_eq!(budget(&["delete", &id]).await.code, Some(1), "it does not exist any more");
    assert_eq!(budget(&["list"]).await.stdout.lines().count(), 2);
    for wrong in [&["set", "0", "--workspace"][..], &["set", "5"], &["set", "5", "--workspace", "--agent", "scripted"]]
    {
        assert_eq!(budget(wrong).await.code, Some(2), "{wrong:?}");
    }
    assert_eq!(budget(&["set", "5", "--agent", "nobody"]).await.code, Some(1));
}

async fn a_budget_of_a_user_is_set_by_name(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let [ada, _] = two_users(&mut binary).await;
    let (server, api) = binary.serve().await;
    let (ada, dir) = (api.with_token(ada), tempfile::tempdir().unwrap());
    let budget = async |arguments: &[&str]| run_as(&ada, dir.path(), &[&["budget"], arguments].concat()).await;
    for limit in ["5", "7"] {
        let set = budget(&["set", limit, "--user", "ada"]).await;
        assert_eq!(set.code, Some(0), "{}", set.stderr);
    }
    let budgets = get(&ada, "/api/budgets").await.expect_status(200);
    let budgets = budgets["budgets"].as_array().unwrap();
    assert_eq!(budgets.len(), 1, "the second replaces the first: {budgets:?}");
    assert_eq!((&budgets[0]["scope"], &budgets[0]["limit_usd"]), (&"user".into(), &7.0.into()));
    let id = budgets[0]["subject_id"].as_str().unwrap();
    assert_eq!(budget(&["set", "9", "--user", id]).await.code, Some(0), "by id");
    assert_eq!(get(&ada, "/api/budgets").await.expect_status(200)["budgets"].as_array().unwrap().len(), 1);
    let unknown = budget(&["set", "5", "--user", "bob"]).await;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("bob"), "of another workspace: {}", unknown.stderr);
    server.terminate(std::time::Duration::from_secs(30)).await.unwrap();
}

async fn events_follow_prints_new_events(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let room = room(api).await;
    let first = post_text(api, room, "!count 3").await;
    wait_for_end(api, first).await;
    let id = room.to_string();
    let printed = run_as(api, dir.path(), &["events", &id]).await;
    let journal = journal(api, room).await;
    assert_eq!(
        printed.stdout.lines().collect::<Vec<_>>(),
        journal.iter().map(|event| &*event.json).collect::<Vec<_>>()
    );

    let mut child = client_of(api, dir.path(), &["events", &id, "--after", "2", "--follow"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut run = None;
    for seq in 3.. {
        let line = tokio::time::timeout(crate::DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["seq"], seq);
        if seq == journal.len() as u64 {
            run = Some(post_text(api, room, "!count 20 5").await);
        }
        if event["type"] == EventType::RunCompleted.as_str()
            && event["run_id"].as_str() == run.map(|r| r.to_string()).as_deref()
        {
            break;
        }
    }
    child.kill().await.unwrap();
}

async fn rooms_agents_and_cancel(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let room = room(api).await;
    let hanging = post_text(api, room, "!hang").await;
    RoomFollower::start(api, room).await.first_delta(hanging).await;
    let rooms = run_as(api, dir.path(), &["rooms"]).await;
    assert!(
        rooms.code == Some(0) && rooms.stdout.contains(&short(room)) && rooms.stdout.contains("scripted"),
        "{}",
        rooms.stdout
    );
    let agents = run_as(api, dir.path(), &["agents"]).await;
    assert!(agents.code == Some(0) && agents.stdout.contains("scripted"), "{}", agents.stdout);
    let json = run_as(api, dir.path(), &["rooms", "--json", "--limit", "1"]).await.stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["id"], room.to_string(), "one object per line: {json}");
    let events = run_as(api, dir.path(), &["events", &short(room)]).await;
    assert!(events.code == Some(0) && events.stdout.contains("run_started"), "{}", events.stderr);
    let cancelled = run_as(api, dir.path(), &["cancel", &short(hanging)]).await;
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    assert!(cancelled.stdout.starts_with("cancelled after"), "{}", cancelled.stdout);
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Cancelled);
}

/// The end of an id, as lists show it.
fn short(id: impl ToString) -> String {
    let id = id.to_string();
    id[id.len() - 8..].to_owned()
}

async fn objects_are_created_renamed_and_deleted(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let ok = async |arguments: &[&str]| -> String {
        let output = run_as(api, dir.path(), arguments).await;
        assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
        output.stdout
    };
    let made = ok(&["create", "agent", "Ann", "--provider", "scripted", "--system-prompt", "Be brief."]).await;
    assert!(made.starts_with("created the agent Ann ("), "{made}");
    assert!(ok(&["create", "room", "Plans", "--agent", "ann"]).await.starts_with("created the room Plans ("));
    ok(&["rename", "room", "plans", "Other plans"]).await;
    ok(&["rename", "agent", "Ann", "Anna"]).await;
    assert!(ok(&["rooms"]).await.contains("Other plans  Anna"));
    assert!(ok(&["agents", "--json"]).await.contains("\"Be brief.\""));
    ok(&["delete", "room", "Other plans"]).await;
    ok(&["delete", "agent", "Anna"]).await;
    let gone = run_as(api, dir.path(), &["delete", "agent", "Anna"]).await;
    assert!(gone.code == Some(1) && gone.stderr.contains("there is no agent \"Anna\""), "{}", gone.stderr);
    let wrong = run_as(api, dir.path(), &["create", "agent", "x", "--provider", "nothing"]).await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("nothing"), "{}", wrong.stderr);
}

async fn approvals_are_listed_and_answered(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let room = room(api).await;
    let run = post_text(api, room, r#"!ask Bash {"cmd":"ls"}"#).await;
    let mut follower = RoomFollower::start(api, room).await;
    let asked = follower.until_kind(EventType::ApprovalRequested, run).await;
    let id = short(data(&asked)["approval_id"].as_str().unwrap());
    let listed = run_as(api, dir.path(), &["approve"]).await.stdout;
    assert!(listed.contains(&id) && listed.contains("Bash") && listed.contains("scripted"), "{listed}");
    assert_eq!(run_as(api, dir.path(), &["approve", "--deny"]).await.code, Some(2), "which one?");
    let allowed = run_as(api, dir.path(), &["approve", &id]).await;
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), "allowed Bash\n"), "{}", allowed.stderr);
    let resolved = follower.until_kind(EventType::ApprovalResolved, run).await;
    assert_eq!(data(&resolved)["decision"], "allow");
    wait_for_end(api, run).await;
    assert_eq!(run_as(api, dir.path(), &["approve", &id]).await.code, Some(1), "nothing waits any more");
}

async fn a_chat_answers_asks_and_goes_on(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let mut chat = client_of(api, dir.path(), &["chat", "scripted"]).stdin(Stdio::piped()).spawn().unwrap();
    let typed = "!count 3\n/room\n!ask Bash {\"cmd\":\"ls\"}\nperhaps\ny\nfirst \\\nsecond\n/quit\nnot said\n";
    chat.stdin.take().unwrap().write_all(typed.as_bytes()).await.unwrap();
    let output = output_of(chat).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.starts_with("1 2 3\n"), "{}", output.stdout);
    assert!(
        output.stderr.contains("greenroom chat --room") && output.stderr.contains("Allow Bash?"),
        "{}",
        output.stderr
    );
    assert!(!output.stdout.contains('\u{1b}') && !output.stderr.contains('\u{1b}'), "no colors in a pipe");
    let rooms = get(api, "/api/rooms").await.expect_status(200);
    assert_eq!(rooms["rooms"].as_array().unwrap().len(), 1, "one conversation, one room");
    let room = rooms["rooms"][0]["id"].as_str().unwrap().parse().unwrap();
    let events = journal(api, room).await;
    let resolved = events.iter().find(|event| event.kind == EventType::ApprovalResolved).unwrap();
    assert_eq!(data(resolved)["decision"], "allow");
    let posts = events.iter().filter(|event| event.kind == EventType::MessagePosted);
    let texts: Vec<String> = posts.map(|event| data(event)["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts[2..], ["first \nsecond"], "{texts:?}");
}

async fn an_interrupt_stops_the_answer_and_not_the_chat(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let room = room(api).await;
    let mut follower = RoomFollower::start(api, room).await;
    let mut chat = client_of(api, dir.path(), &["chat", "--room", &short(room)]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = chat.stdin.take().unwrap();
    input.write_all(b"!hang\n").await.unwrap();
    let started = follower.until("the answer", |event| event.kind == EventType::ContentDelta).await;
    let run = started.run_id.unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(chat.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(wait_for_end(api, run).await.status, RunStatus::Cancelled);
    input.write_all(b"!count 2\n/quit\n").await.unwrap();
    let output = output_of(chat).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("\n1 2\n"), "the partial answer, then the next: {}", output.stdout);
    assert!(output.stderr.contains("Stopping"), "{}", output.stderr);
}

async fn doctor_finds_the_server(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let listen = api.base_url().strip_prefix("http://").unwrap();
    let mut command = greenroom(dir.path(), &["doctor"]);
    command.env("GREENROOM_SERVER__LISTEN", listen).env("PATH", dir.path());
    let output = crate::output_of(command.spawn().unwrap()).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let row = output.stdout.lines().find(|line| line.starts_with("address")).unwrap();
    assert!(row.contains("answers on") && row.contains(env!("CARGO_PKG_VERSION")), "{row}");
}

async fn b29_an_error_is_printed_once_on_a_line_of_its_own(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let failed = run_as(api, dir.path(), &["run", "scripted", "!fail over_loaded Try later"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), "I am about to fail.\n"));
    let lines: Vec<&str> = failed.stderr.lines().filter(|line| line.contains("Try later")).collect();
    assert_eq!(lines.len(), 1, "{}", failed.stderr);
    assert!(!lines[0].contains("about to fail") && lines[0].contains("over_loaded"), "{}", lines[0]);
    assert_eq!(failed.stderr.matches("over_loaded").count(), 1, "{}", failed.stderr);
}

async fn b30_the_usage_does_not_ask_for_what_a_variable_sets(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let wrong = run_as(api, dir.path(), &["run"]).await;
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("Usage: greenroom run <AGENT> <MESSAGE>\n"), "{}", wrong.stderr);
}

async fn b31_doctor_checks_the_server_that_it_is_told(api: &TestClient) {
    let dir = tempfile::tempdir().unwrap();
    let found = run_as(api, dir.path(), &["doctor"]).await;
    let server = found.stdout.lines().find(|line| line.starts_with("server")).unwrap_or_default();
    assert!(
        server.contains(api.base_url()) && server.contains(env!("CARGO_PKG_VERSION")),
        "{}{}",
        found.stdout,
        found.stderr
    );
    let asked = get(api, "/api/doctor").await.expect_status(200);
    for check in asked["checks"].as_array().unwrap() {
        let name = check["name"].as_str().unwrap();
        assert!(found.stdout.lines().any(|line| line.starts_with(name)), "{name} is missing in {}", found.stdout);
    }
    assert!(!found.stdout.contains(&dir.path().display().to_string()), "nothing of this folder: {}", found.stdout);
    let mut nobody = greenroom(dir.path(), &["doctor"]);
    nobody.env("GREENROOM_SERVER", "http://127.0.0.1:1");
    let nobody = output_of(nobody.spawn().unwrap()).await;
    assert_eq!(nobody.code, Some(1), "{}{}", nobody.stdout, nobody.stderr);
    assert!(nobody.stdout.contains("BROKEN") && nobody.stdout.contains("127.0.0.1:1"), "{}", nobody.stdout);
}

async fn c2_commands_use_the_key_of_the_data_folder(database: TestDatabase) {
    let server = TestServer::start(database).await;
    let (dir, url) = (tempfile::tempdir().unwrap(), server.api().base_url());
    let folder = server.database().folder().display().to_string();
    let rooms = run(dir.path(), &["rooms", "--server", url, "--data-dir", &folder]).await;
    assert_eq!(rooms.code, Some(0), "{}", rooms.stderr);
    let refused = run(dir.path(), &["rooms", "--server", url]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("greenroom auth"), "{}", refused.stderr);

    let header = run(dir.path(), &["auth", "header", "--data-dir", &folder]).await;
    assert_eq!(header.stdout, format!("Authorization: Bearer {}\n", server.api().token().unwrap()));
    let missing = run(dir.path(), &["auth", "header"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""));
    assert!(missing.stderr.contains("--data-dir"), "{}", missing.stderr);

    let link = run(dir.path(), &["auth", "link", "--server", url, "--data-dir", &folder]).await;
    assert!(link.stdout.starts_with(&format!("{url}/sign-in#code=")), "{}{}", link.stdout, link.stderr);
    server.finish().await;
}

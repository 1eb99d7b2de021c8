//! The command line against the real server.

use super::scene::{Audience, counted, ended, get, journal, room, say};
use crate::{greenroom, run};
use domain::{event::EventType, run::RunStatus};
use serde_json::Value;
use testkit::client::Api;
use tokio::io::{AsyncBufReadExt as _, BufReader};

doors! {
    server: run_prints_the_answer_and_what_it_took, events_follows, rooms_agents_and_cancel, the_doctor_finds_the_server;
}

async fn run_prints_the_answer_and_what_it_took(api: &Api) {
    let dir = tempfile::tempdir().unwrap();
    let said = run(dir.path(), &["run", "scripted", "!count 30 5", "--server", api.base()]).await;
    assert_eq!((said.code, said.out), (Some(0), counted(30) + "\n"), "{}", said.side);
    assert!(said.side.contains("33 tokens"), "{}", said.side);
    let room = get(api, "/api/rooms").await.is(200)["rooms"][0]["id"].as_str().unwrap().to_owned();
    assert!(said.side.contains(&room), "it says where to go on: {}", said.side);
    let more =
        run(dir.path(), &["run", "scripted", "!fail oh_no Sorry", "--room", &room, "--server", api.base()]).await;
    assert_eq!((more.code, more.out.as_str()), (Some(1), "I am about to fail.\n"));
    assert!(more.side.contains("Sorry") && more.side.contains("oh_no"), "{}", more.side);
    assert_eq!(api.messages(room.parse().unwrap(), None, 10).await.unwrap().messages.len(), 4);
    let nobody = run(dir.path(), &["run", "nobody", "hi", "--server", api.base()]).await;
    assert_eq!((nobody.code, nobody.out.as_str()), (Some(1), ""));
}

async fn events_follows(api: &Api) {
    let dir = tempfile::tempdir().unwrap();
    let room = room(api).await;
    let first = say(api, room, "!count 3").await;
    ended(api, first).await;
    let id = room.to_string();
    let printed = run(dir.path(), &["events", &id, "--server", api.base()]).await;
    let journal = journal(api, room).await;
    assert_eq!(printed.out.lines().collect::<Vec<_>>(), journal.iter().map(|event| &*event.json).collect::<Vec<_>>());

    let mut child =
        greenroom(dir.path(), &["events", &id, "--after", "2", "--follow", "--server", api.base()]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut run = None;
    for seq in 3.. {
        let line = tokio::time::timeout(crate::DEADLINE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["seq"], seq);
        if seq == journal.len() as u64 {
            run = Some(say(api, room, "!count 20 5").await);
        }
        if event["type"] == EventType::RunCompleted.as_str()
            && event["run_id"].as_str() == run.map(|r| r.to_string()).as_deref()
        {
            break;
        }
    }
    child.kill().await.unwrap();
}

async fn rooms_agents_and_cancel(api: &Api) {
    let dir = tempfile::tempdir().unwrap();
    let room = room(api).await;
    let hanging = say(api, room, "!hang").await;
    Audience::of(api, room).await.first_word(hanging).await;
    let rooms = run(dir.path(), &["rooms", "--server", api.base()]).await;
    assert!(
        rooms.code == Some(0) && rooms.out.contains(&room.to_string()) && rooms.out.contains("scripted"),
        "{}",
        rooms.out
    );
    let agents = run(dir.path(), &["agents", "--server", api.base()]).await;
    assert!(agents.code == Some(0) && agents.out.contains("scripted"), "{}", agents.out);
    let cancelled = run(dir.path(), &["cancel", &hanging.to_string(), "--server", api.base()]).await;
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.side);
    assert!(cancelled.out.starts_with("cancelled after"), "{}", cancelled.out);
    assert_eq!(api.run(hanging).await.unwrap().status, RunStatus::Cancelled);
}

async fn the_doctor_finds_the_server(api: &Api) {
    let dir = tempfile::tempdir().unwrap();
    let listen = api.base().strip_prefix("http://").unwrap();
    let mut command = greenroom(dir.path(), &["doctor"]);
    command.env("GREENROOM_SERVER__LISTEN", listen).env("PATH", dir.path());
    let said = crate::ended(command.spawn().unwrap()).await;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.side);
    let row = said.out.lines().find(|line| line.starts_with("address")).unwrap();
    assert!(row.contains("answers on") && row.contains(env!("CARGO_PKG_VERSION")), "{row}");
}

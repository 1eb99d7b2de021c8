//! The tape of a room whose agents run on another server: every command works there too, and the agents' server acts on it at
//! once.

use super::{
    requests::{RoomFollower, journal, post, post_body, post_text, room, runs_of, wait_for_end, within},
    tape::{agents, command, finished, members, new_room, speakers, tape},
};
use domain::{
    event::EventType,
    ids::{AgentId, RoomId, RunId},
    run::RunStatus,
};
use greenroom::serve::RunningServer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testkit::{
    client::TestClient,
    database::TestDatabase,
    server::{TestServer, config, operator_of},
};

/// `here` executes all runs; `there` executes none.
struct TwoServers {
    first: TestServer,
    second: RunningServer,
    here: TestClient,
    there: TestClient,
}

impl TwoServers {
    async fn start(settings: &[(&str, &str)]) -> Self {
        let first = TestServer::start_with(TestDatabase::postgres(), settings).await;
        let web = [("server.role".to_owned(), "web".to_owned())];
        let second = RunningServer::start(&config(first.database(), &web)).await.unwrap();
        let (here, there) = (first.api().clone(), operator_of(&second));
        Self { first, second, here, there }
    }

    async fn finish(self) {
        self.second.stop().await;
        self.first.finish().await;
    }
}

/// A room of agents that speak in this order.
async fn ordered_room(api: &TestClient, count: usize) -> (RoomId, Vec<AgentId>) {
    let all = agents(api, count).await;
    let priorities = all.iter().zip((0..count).rev()).map(|(agent, priority)| (*agent, json!({"priority": priority})));
    (new_room(api, &all, json!({"members": members(priorities)})).await, all)
}

/// The agents of the planned cells, and the names of the cells.
fn planned(tape: &Value) -> (Vec<AgentId>, Vec<Value>) {
    let cells = tape["cells"].as_array().unwrap().iter().filter(|cell| cell["status"] == "planned");
    cells.map(|cell| (cell["agents"][0].as_str().unwrap().parse::<AgentId>().unwrap(), cell["id"].clone())).unzip()
}

/// Starts a run of the room without posting.
async fn start_run(api: &TestClient, room: RoomId, agent: AgentId) -> RunId {
    let started = post(api, &format!("/api/rooms/{room}/runs"), &json!({"agent_id": agent})).await;
    started.expect_status(202)["id"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_works_on_the_server_without_the_agents() {
    let servers = TwoServers::start(&[]).await;
    let (here, there) = (&servers.here, &servers.there);
    let (room, all) = ordered_room(here, 5).await;
    let mut follower = RoomFollower::start(there, room).await;
    assert_eq!(command(there, room, "pause", json!({})).await["state"], "paused");
    let posted = post_body(there, room, json!({"text": "!count 40 25"})).await.expect_status(202);
    assert_eq!(posted["runs"], json!([]));
    assert_eq!(planned(&tape(here, room).await).0, all);

    let stepped = command(there, room, "step", json!({})).await;
    let first: RunId = stepped["cells"][0]["runs"][0]["id"].as_str().unwrap().parse().unwrap();
    follower.first_delta(first).await;
    let (_, cells) = planned(&stepped);
    let backwards: Vec<&Value> = cells.iter().rev().collect();
    command(there, room, "reorder", json!({"cells": backwards})).await;
    assert_eq!(planned(&tape(here, room).await).0, [all[4], all[3], all[2], all[1]]);
    command(there, room, "skip", json!({"cell": cells[2]})).await;
    let changed = command(there, room, "insert", json!({"agent_id": all[0], "at": 1})).await;
    let order = planned(&tape(here, room).await).0;
    assert_eq!(order, [all[4], all[0], all[2], all[1]]);

    // The running cell is cancelled where it runs, and the pause holds the next one.
    command(there, room, "skip", json!({"cell": changed["cells"][0]["id"]})).await;
    assert_eq!(wait_for_end(there, first).await.status, RunStatus::Cancelled);
    let (at_first, at_second) = (tape(here, room).await, tape(there, room).await);
    assert_eq!((&at_first, planned(&at_first).0), (&at_second, order.clone()), "both servers show the same");

    command(there, room, "step", json!({})).await;
    follower.until("the step", |event| event.kind == EventType::RunCompleted).await;
    assert_eq!(speakers(&journal(there, room).await), [all[0], all[4]], "one step, one cell");
    assert_eq!(command(there, room, "resume", json!({})).await["state"], "running");
    assert_eq!(speakers(&finished(there, room).await), [all[0], all[4], all[0], all[2], all[1]]);
    servers.finish().await;
}

/// A pause holds a run that no server has started yet, wherever it is queued: only a step or the end of the pause starts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waits_for_a_slot_is_held_by_a_pause() {
    let servers = TwoServers::start(&[("runs.concurrency", "1")]).await;
    let (here, there) = (&servers.here, &servers.there);
    let other = room(here).await;
    let hanging = post_text(here, other, "!hang").await;
    RoomFollower::start(there, other).await.first_delta(hanging).await;
    let (room, all) = ordered_room(here, 2).await;
    let first = runs_of(&post_body(there, room, json!({"text": "!count 2"})).await.expect_status(202))[0];
    command(there, room, "pause", json!({})).await;
    here.cancel_run(hanging).await.unwrap();
    // Longer than the worker takes to look for runs by itself.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(there.run(first).await.unwrap().status, RunStatus::Queued);
    assert_eq!(tape(there, room).await["cells"][0]["status"], "queued");
    command(there, room, "step", json!({})).await;
    assert_eq!(wait_for_end(there, first).await.status, RunStatus::Completed);
    assert_eq!(planned(&tape(there, room).await).0, all[1..]);
    command(there, room, "resume", json!({})).await;
    assert_eq!(speakers(&finished(there, room).await), all);
    servers.finish().await;
}

/// Without a notification, the server with the agents finds such a run by its poll, a second later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_is_resumed_on_another_server_goes_on_at_once() {
    let servers = TwoServers::start(&[]).await;
    let (here, there) = (&servers.here, &servers.there);
    let (room, all) = ordered_room(here, 2).await;
    post_body(there, room, json!({"text": "!count 1", "run": false})).await.expect_status(202);
    let mut delays = Vec::new();
    for _ in 0..5 {
        command(there, room, "pause", json!({})).await;
        let run = start_run(there, room, all[0]).await;
        let sent = Instant::now();
        command(there, room, "resume", json!({})).await;
        within("the run", async {
            while there.run(run).await.unwrap().started_at.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        delays.push(sent.elapsed());
        wait_for_end(there, run).await;
    }
    delays.sort_unstable();
    println!("a room that was resumed on another server went on after {delays:?}");
    assert!(delays[2] < Duration::from_millis(500), "{delays:?}");
    servers.finish().await;
}

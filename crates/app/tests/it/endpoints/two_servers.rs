//! Two servers on one database: rejected on SQLite, supported on PostgreSQL. Every request about a run and every stream
//! works on the server that does not hold the run.

use super::{
    binary::Binary,
    mcp_requests::Session,
    requests::{
        ApiResponse, RoomFollower, agent, counted, data, delete, journal, message_of, post, post_and_wait, post_body,
        post_text, room, room_of, runs_of, text_of, wait_for_end, within,
    },
};
use domain::{
    event::EventType,
    ids::{RoomId, RunId},
    position::Position,
    run::RunStatus,
};
use greenroom::serve::RunningServer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use testkit::{
    client::{SeenEvent, SeenItem, SseReader, TestClient, WsReader},
    database::TestDatabase,
    server::{TestServer, config, operator_of},
};
use uuid::Uuid;

on_both_databases! {
    database: invariant_13_hints_are_hints_servers_see_each_others_changes;
}

async fn invariant_13_hints_are_hints_servers_see_each_others_changes(database: TestDatabase) {
    let first = TestServer::start_with(database, &SETTINGS).await;
    let here = first.api().clone();
    let room = room(&here).await;
    let run = post_text(&here, room, "!hang").await;
    RoomFollower::start(&here, room).await.first_delta(run).await;
    let second = RunningServer::start(&config(first.database(), &owned(&SETTINGS))).await;
    if first.database().is_sqlite() {
        let refused = second.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("another Greenroom server"), "{refused}");
        here.cancel_run(run).await.unwrap();
        return first.finish().await;
    }
    let second = second.unwrap();
    let there = operator_of(&second);
    let mut reader = SseReader::connect(&there, room, &Position::START).await.unwrap();
    assert_eq!(there.run(run).await.unwrap().status, RunStatus::Running, "a new server must not touch active runs");
    assert_eq!(
        there.cancel_run(run).await.unwrap().status,
        RunStatus::Cancelled,
        "a cancel on the second server must stop the run on the first"
    );
    for event in &journal(&here, room).await {
        assert_eq!(within("the other's reader", reader.next_event()).await.unwrap().as_ref(), Some(event));
    }
    // The other direction, in a room whose tail is cached by the first server.
    let mut reader = SseReader::connect(&here, room, &Position::START).await.unwrap();
    post_and_wait(&there, room, "!count 3").await;
    for event in &journal(&there, room).await {
        assert_eq!(within("the first's reader", reader.next_event()).await.unwrap().as_ref(), Some(event));
    }
    drop(reader);
    second.stop().await;
    first.finish().await;
}

const SETTINGS: [(&str, &str); 2] = [("feed.heartbeat_seconds", "1"), ("runs.lease_seconds", "3")];

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// `here` executes all runs; `there` has one slot, which is taken.
struct TwoServers {
    first: TestServer,
    second: RunningServer,
    here: TestClient,
    there: TestClient,
    /// The run that takes the slot.
    hanging: RunId,
}

impl TwoServers {
    async fn start() -> Self {
        let first = TestServer::start_with(TestDatabase::postgres(), &SETTINGS).await;
        let mut settings = owned(&SETTINGS);
        settings.push(("runs.concurrency".into(), "1".into()));
        let second = RunningServer::start(&config(first.database(), &settings)).await.unwrap();
        let there = operator_of(&second);
        let here = first.api().clone();
        let own_room = room(&there).await;
        let hanging = post_text(&there, own_room, "!hang").await;
        RoomFollower::start(&there, own_room).await.first_delta(hanging).await;
        Self { first, second, here, there, hanging }
    }

    async fn finish(self) {
        assert_eq!(self.there.run(self.hanging).await.unwrap().status, RunStatus::Running, "the slot stays taken");
        self.here.cancel_run(self.hanging).await.unwrap();
        self.second.stop().await;
        self.first.finish().await;
    }
}

const ASK: &str = r#"!ask Bash {"cmd":"ls"}"#;

/// Starts a run that waits for an approval.
async fn asking(api: &TestClient, room: RoomId, text: &str) -> (RunId, String, RoomFollower) {
    let mut follower = RoomFollower::start(api, room).await;
    let run = post_text(api, room, text).await;
    let (_, approval) = asked(&mut follower, run, 0).await;
    (run, approval, follower)
}

/// The first approval request of a run after this seq, with its seq.
async fn asked(follower: &mut RoomFollower, run: RunId, after: u64) -> (u64, String) {
    let wanted = follower
        .until("an approval", |event| {
            event.kind == EventType::ApprovalRequested && event.run_id == Some(run) && event.seq > after
        })
        .await;
    (wanted.seq, data(&wanted)["approval_id"].as_str().unwrap().to_owned())
}

async fn decide(api: &TestClient, run: RunId, approval: &str, body: &Value) -> ApiResponse {
    post(api, &format!("/api/runs/{run}/approvals/{approval}"), body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_23_signals_are_durable_approvals_are_answered_on_any_server() {
    let servers = TwoServers::start().await;
    let (here, there) = (&servers.here, &servers.there);
    for (answer, text) in [
        (json!({"decision": "allow"}), "allowed"),
        (json!({"decision": "deny"}), "denied"),
        (json!({"decision": "allow", "input": {"cmd": "ls -l"}}), "allowed"),
        (json!({"decision": "allow", "remember": true}), "allowed"),
    ] {
        let room = room(here).await;
        let (run, approval, mut follower) = asking(here, room, ASK).await;
        let unknown = Uuid::now_v7().to_string();
        decide(there, run, &unknown, &answer).await.expect_problem(404, "not_found");
        decide(there, run, &approval, &answer).await.expect_status(204);
        let stored = journal(there, room).await;
        assert!(stored.iter().any(|event| event.kind == EventType::ApprovalResolved), "a 204 means stored");
        let resolved = data(&follower.until_kind(EventType::ApprovalResolved, run).await);
        assert_eq!(resolved["decision"], answer["decision"]);
        assert_eq!(resolved.get("input"), answer.get("input"));
        let ended = wait_for_end(there, run).await;
        assert_eq!((ended.status, message_of(there, &ended).await.text.as_str()), (RunStatus::Completed, text));
        decide(there, run, &approval, &answer).await.expect_status(204);
    }
    servers.finish().await;
}

/// Without the notification, an outcome is found by a poll, two seconds later at the earliest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outcome_of_an_answer_on_another_server_is_notified() {
    let servers = TwoServers::start().await;
    let (here, there) = (&servers.here, &servers.there);
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let room = room(here).await;
        let (run, approval, _follower) = asking(here, room, ASK).await;
        let sent = Instant::now();
        decide(there, run, &approval, &json!({"decision": "allow"})).await.expect_status(204);
        fastest = fastest.min(sent.elapsed());
        wait_for_end(there, run).await;
    }
    println!("the fastest answer on another server took {fastest:?}");
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
    servers.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_answer_on_another_server_is_compared_with_the_first() {
    let servers = TwoServers::start().await;
    let (here, there) = (&servers.here, &servers.there);
    let room = room(here).await;
    // The second approval keeps the run waiting.
    let script = json!([{"approval": {"name": "Bash"}}, {"approval": {"name": "pause"}}, {"text": "done"}]);
    let (run, first, mut follower) = asking(here, room, &format!("!script {script}")).await;
    let deny = json!({"decision": "deny"});
    decide(there, run, &first, &deny).await.expect_status(204);
    let seq = follower.until_kind(EventType::ApprovalResolved, run).await.seq;
    decide(there, run, &first, &deny).await.expect_status(204);
    decide(there, run, &first, &json!({"decision": "allow"})).await.expect_problem(409, "conflict");
    let (_, pause) = asked(&mut follower, run, seq).await;
    decide(here, run, &pause, &deny).await.expect_status(204);
    assert_eq!(wait_for_end(there, run).await.status, RunStatus::Completed);
    decide(there, run, &pause, &json!({"decision": "allow"})).await.expect_problem(409, "run_ended");
    servers.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_forgotten_on_any_server() {
    let servers = TwoServers::start().await;
    let (here, there) = (&servers.here, &servers.there);
    let (ask, pause) = (json!({"approval": {"name": "Bash"}}), json!({"approval": {"name": "pause"}}));
    let script = json!([ask, ask, pause, ask, {"text": "done"}]);
    let agent = agent(here, "set apart", json!({})).await;
    let room = room_of(here, &[agent]).await;
    let (run, first, mut follower) = asking(here, room, &format!("!script {script}")).await;
    decide(there, run, &first, &json!({"decision": "allow", "remember": true})).await.expect_status(204);
    let first_seq = follower.seen.last().unwrap().seq;
    let (seq, pause) = asked(&mut follower, run, first_seq).await;
    assert_eq!(data(follower.seen.last().unwrap())["name"], "pause", "the second call must not ask");
    delete(there, &format!("/api/rooms/{room}/remembered/{agent}?tool=Bash")).await.expect_status(204);
    decide(there, run, &pause, &json!({"decision": "allow"})).await.expect_status(204);
    let (_, last) = asked(&mut follower, run, seq).await;
    decide(there, run, &last, &json!({"decision": "deny"})).await.expect_status(204);
    assert_eq!(wait_for_end(there, run).await.status, RunStatus::Completed);
    servers.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_steered_and_stopped_on_any_server() {
    let servers = TwoServers::start().await;
    let (here, there) = (&servers.here, &servers.there);
    let room = room(here).await;
    let mut follower = RoomFollower::start(here, room).await;
    let hanging = post_text(here, room, "!hang").await;
    follower.first_delta(hanging).await;
    let steered = post_body(there, room, json!({"text": "left", "when_busy": "steer"})).await.expect_status(202);
    assert_eq!(runs_of(&steered), [hanging], "the active run must answer it");
    let status = data(&follower.until_kind(EventType::Status, hanging).await);
    assert_eq!((&status["status"], &status["message_id"]), (&json!("steered"), &steered["message"]["id"]));
    // Interrupt by a post.
    let accepted = post_body(there, room, json!({"text": "!hang", "when_busy": "interrupt"})).await;
    let next = runs_of(&accepted.expect_status(202))[0];
    let ended = wait_for_end(there, hanging).await;
    assert_eq!(ended.status, RunStatus::Interrupted);
    assert_eq!(message_of(there, &ended).await.text, "Hanging [steered: left]");
    // Cancel of a room: the active and the queued run.
    follower.first_delta(next).await;
    let queued = post_text(there, room, "!count 3").await;
    let stopped = post(there, &format!("/api/rooms/{room}/cancel"), &json!({})).await.expect_status(200);
    let all: Vec<&str> = stopped["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(all, [next.to_string(), queued.to_string()]);
    for run in [next, queued] {
        assert_eq!(there.run(run).await.unwrap().status, RunStatus::Cancelled);
    }
    servers.finish().await;
}

/// Everything that a stream sends about a room, until this run has ended.
async fn streamed(mut next: impl AsyncFnMut() -> SeenEvent, run: RunId) -> Vec<SeenEvent> {
    let mut seen = Vec::new();
    within("the end of the run", async {
        loop {
            seen.push(next().await);
            let last = &seen[seen.len() - 1];
            if last.kind.ends_a_run() && last.run_id == Some(run) {
                return;
            }
        }
    })
    .await;
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_09_convergence_every_stream_works_on_any_server() {
    let servers = TwoServers::start().await;
    let (here, there) = (&servers.here, &servers.there);
    let room = room(here).await;
    let mut sse = SseReader::connect(there, room, &Position::START).await.unwrap();
    let mut socket = WsReader::connect(there).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    let run = post_text(here, room, "!count 40 50").await;
    let session = Session::begin(there).await;
    let by_sse = streamed(async || sse.next_event().await.unwrap().unwrap(), run);
    let by_socket = streamed(
        async || loop {
            if let Some((_, SeenItem::Event(event))) = socket.next().await.unwrap() {
                return event;
            }
        },
        run,
    );
    let by_mcp = session.call("wait_for_run", json!({"run_id": run}));
    let (by_sse, by_socket, by_mcp, ended) = tokio::join!(by_sse, by_socket, by_mcp, wait_for_end(there, run));
    assert_eq!(ended.status, RunStatus::Completed);
    let stored = journal(here, room).await;
    assert_eq!(by_sse, stored);
    assert_eq!(by_socket, stored);
    assert_eq!(journal(there, room).await, stored, "the page");
    assert_eq!(text_of(&stored), counted(40));
    assert_eq!((&by_mcp["text"], &by_mcp["status"]), (&json!(counted(40)), &json!("completed")));
    // The only slot of this server is taken: the other one executes it.
    let agent = there.scripted_agent().await.unwrap();
    let executed = post(there, &format!("/api/execute/agent/{agent}"), &json!({"message": "!count 5 100"})).await;
    assert_eq!(executed.status, 200, "{executed:?}");
    assert!(executed.text.contains("event: completion") && executed.text.ends_with("data: done\n\n"), "{executed:?}");
    servers.finish().await;
}

/// The server that accepted a request is killed as soon as it has replied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invariant_23_signals_are_durable_the_accepting_server_may_die_after_its_reply() {
    let first = TestServer::start_with(TestDatabase::postgres(), &SETTINGS).await;
    let here = first.api().clone();
    let mut binary = Binary::on(first.database()).with("GREENROOM_RUNS__LEASE_SECONDS", "3");
    let room = room(&here).await;
    let (run, approval, mut follower) = asking(&here, room, ASK).await;
    let (server, there) = binary.serve().await;
    decide(&there, run, &approval, &json!({"decision": "allow"})).await.expect_status(204);
    server.kill().await.unwrap();
    assert_eq!(data(&follower.until_kind(EventType::ApprovalResolved, run).await)["decision"], "allow");
    assert_eq!(wait_for_end(&here, run).await.status, RunStatus::Completed);

    let hanging = post_text(&here, room, "!hang").await;
    follower.first_delta(hanging).await;
    let (server, there) = binary.serve().await;
    let steered = post_body(&there, room, json!({"text": "left", "when_busy": "steer"})).await.expect_status(202);
    server.kill().await.unwrap();
    assert_eq!(runs_of(&steered), [hanging]);
    follower.until("the steered text", |event| text_of(std::slice::from_ref(event)).contains("[steered: left]")).await;

    let (server, there) = binary.serve().await;
    let accepted = post_body(&there, room, json!({"text": "!count 3", "when_busy": "interrupt"})).await;
    server.kill().await.unwrap();
    let next = runs_of(&accepted.expect_status(202))[0];
    assert_eq!(wait_for_end(&here, hanging).await.status, RunStatus::Interrupted);
    assert_eq!(wait_for_end(&here, next).await.status, RunStatus::Completed);
    first.finish().await;
}

/// The server that holds the run is killed: an answer on the other one is not accepted, and does not hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_for_a_killed_server_says_that_the_run_has_ended() {
    let first = TestServer::start_with(TestDatabase::postgres(), &SETTINGS).await;
    let here = first.api().clone();
    let mut binary = Binary::on(first.database()).with("GREENROOM_RUNS__LEASE_SECONDS", "3");
    let (server, there) = binary.serve().await;
    let room = room(&here).await;
    let (run, approval, _follower) = asking(&there, room, ASK).await;
    server.kill().await.unwrap();
    decide(&here, run, &approval, &json!({"decision": "allow"})).await.expect_problem(409, "run_ended");
    assert_eq!(here.run(run).await.unwrap().status, RunStatus::Interrupted);
    first.finish().await;
}

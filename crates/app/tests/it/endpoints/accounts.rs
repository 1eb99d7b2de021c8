//! Accounts: required beyond this machine, turned on by the first token, and isolated from each other.

use super::{
    binary::Binary,
    requests::{
        RoomFollower, agent, delete, get, post, post_and_wait, post_text, response_to, room, room_of, wait_for_end,
        within,
    },
};
use domain::{event::EventType, position::Position, run::RunStatus};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::{SseReader, TestClient, TestClientError, WsReader},
    database::TestDatabase,
};
use tokio::time::{Instant, sleep};

on_both_databases! {
    database: public_address_without_accounts_is_rejected, first_token_turns_accounts_on,
              invariant_15_owner_two_users_are_isolated_on_all_endpoints,
              invariant_15_owner_stream_ends_when_access_is_lost,
              invariant_17_secrets_stay_out_of_logs_events_and_errors;
}

const STOP: Duration = Duration::from_secs(30);

async fn token(binary: &Binary, user: &str) -> String {
    let made = binary.run_command(&["token", "create", "--user", user]).await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    made.stdout.trim().to_owned()
}

async fn public_address_without_accounts_is_rejected(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let refused = binary.run_command(&["serve", "--listen", "0.0.0.0:0"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let said = refused.stderr.lines().last().unwrap();
    assert!(
        said.contains("greenroom token create") && said.contains("127.0.0.1"),
        "the error must say what to do: {said}"
    );

    let token = token(&binary, "local").await;
    binary.launch.listen = "0.0.0.0:0".into();
    let (server, api) = binary.serve().await;
    let api = TestClient::new(api.base_url().replace("0.0.0.0", "127.0.0.1")).unwrap();
    get(&api, "/api/agents").await.expect_problem(401, "unauthorized");
    let agents = api.with_token(token).agents().await.unwrap();
    assert_eq!(agents.len(), 1, "the first account must own the data of the local owner");
    server.terminate(STOP).await.unwrap();
}

async fn first_token_turns_accounts_on(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let token = token(&binary, "local").await;
    let made = Instant::now();
    within("requests to be rejected", async {
        while get(&api, "/api/agents").await.status != 401 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(made.elapsed() < Duration::from_secs(2), "{:?}", made.elapsed());

    // All endpoints need the token, except those without data.
    for request in [
        api.request(Method::GET, &format!("/api/rooms/{room}/events")).header("accept", "text/event-stream"),
        api.request(Method::GET, "/api/ws"),
        api.request(Method::GET, "/metrics"),
        api.request(Method::GET, "/api/rooms").bearer_auth("grm_wrong"),
        api.request(Method::GET, "/api/rooms").header("authorization", format!("Basic {token}")),
    ] {
        let refused = response_to(request).await;
        refused.expect_problem(401, "unauthorized");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
    }
    assert!(matches!(WsReader::connect(&api).await, Err(TestClientError::Connection(_))));
    get(&api, "/healthz").await.expect_status(200);

    let mine = api.clone().with_token(&token);
    assert_eq!(post_and_wait(&mine, room, "!count 3").await.status, RunStatus::Completed, "by REST and SSE");
    let mut socket = WsReader::connect(&mine).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    within("by WebSocket", socket.next()).await.unwrap().unwrap();

    let listed = binary.run_command(&["token", "list"]).await.stdout;
    assert!(!listed.contains(&token), "{listed}");
    let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(binary.run_command(&["token", "revoke", id]).await.code, Some(0));
    get(&mine, "/api/rooms").await.expect_problem(401, "unauthorized");
    assert!(matches!(
        SseReader::connect(&mine, room, &Position::START).await,
        Err(TestClientError::Problem { status: 401, .. })
    ));
    get(&api, "/api/rooms").await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

/// Reads to the end and returns the code of the final error.
async fn final_error_code(mut stream: SseReader) -> String {
    loop {
        match within("the stream to end", stream.next_frame()).await.unwrap() {
            Some(frame) if frame.event.as_deref() == Some("error") => {
                let data: Value = serde_json::from_str(&frame.data).unwrap();
                assert!(
                    within("the end", stream.next_frame()).await.unwrap().is_none(),
                    "the error must be the last frame"
                );
                return data["code"].as_str().unwrap().to_owned();
            }
            Some(_) => {}
            None => panic!("the stream ended without an error"),
        }
    }
}

async fn invariant_15_owner_stream_ends_when_access_is_lost(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_FEED__HEARTBEAT_SECONDS", "1");
    let (server, api) = binary.serve().await;
    let (kept, deleted) = (room(&api).await, room(&api).await);
    let implied = SseReader::connect(&api, kept, &Position::START).await.unwrap();
    let gone = SseReader::connect(&api, deleted, &Position::START).await.unwrap();
    assert_eq!(delete(&api, &format!("/api/rooms/{deleted}")).await.status, 204);
    assert_eq!(final_error_code(gone).await, "not_found");

    let mine = api.clone().with_token(token(&binary, "local").await);
    assert_eq!(final_error_code(implied).await, "unauthorized", "accounts are on now");
    let (stream, mut socket) =
        (SseReader::connect(&mine, kept, &Position::START).await.unwrap(), WsReader::connect(&mine).await.unwrap());
    socket.subscribe(kept, &Position::START).await.unwrap();
    let listed = binary.run_command(&["token", "list"]).await.stdout;
    let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(binary.run_command(&["token", "revoke", id]).await.code, Some(0));
    assert_eq!(final_error_code(stream).await, "unauthorized");
    within("the socket to close", async { while matches!(socket.next().await, Ok(Some(_))) {} }).await;
    server.terminate(STOP).await.unwrap();
}

async fn invariant_15_owner_two_users_are_isolated_on_all_endpoints(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (ada, bob) = (token(&binary, "ada").await, token(&binary, "bob").await);
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "echo", json!({})).await;
    let room = room_of(&ada, &[hers]).await;
    let mut follower = RoomFollower::start(&ada, room).await;
    let run = post_text(&ada, room, "!ask Bash {}").await;
    let requested = follower.until_kind(EventType::ApprovalRequested, run).await;
    let requested: Value = serde_json::from_str(&requested.data).unwrap();
    let approval = requested["approval_id"].as_str().unwrap();

    agent(&bob, "echo", json!({})).await;
    assert_eq!(bob.agents().await.unwrap().len(), 1, "his own agent of the same name");
    for list in ["rooms", "runs"] {
        assert_eq!(get(&bob, &format!("/api/{list}")).await.expect_status(200)[list], json!([]));
    }
    assert_eq!(get(&bob, &format!("/api/runs?room_id={room}")).await.expect_status(200)["runs"], json!([]));
    let nothing = get(&bob, &format!("/api/rooms/{}", uuid::Uuid::now_v7())).await.json();
    for path in [
        format!("/api/agents/{hers}"),
        format!("/api/rooms/{room}"),
        format!("/api/rooms/{room}/events"),
        format!("/api/rooms/{room}/messages"),
        format!("/api/runs/{run}"),
        format!("/api/runs/{run}/stream"),
        format!("/api/execute/agent/{hers}?message=hi"),
    ] {
        let problem = get(&bob, &path).await.expect_problem(404, "not_found");
        assert_eq!(problem, nothing, "a foreign id and an unknown id must look the same");
    }
    let writes = [
        (format!("/api/rooms/{room}/messages"), json!({"text": "hi"})),
        (format!("/api/rooms/{room}/cancel"), json!({})),
        (format!("/api/runs/{run}/cancel"), json!({})),
        (format!("/api/runs/{run}/approvals/{approval}"), json!({"decision": "allow"})),
        (format!("/api/execute/agent/{hers}"), json!({"message": "hi"})),
    ];
    for (path, body) in writes {
        post(&bob, &path, &body).await.expect_problem(404, "not_found");
    }
    for path in [format!("/api/agents/{hers}"), format!("/api/rooms/{room}")] {
        response_to(bob.request(Method::PATCH, &path).json(&json!({"name": "mine"})))
            .await
            .expect_problem(404, "not_found");
        delete(&bob, &path).await.expect_problem(404, "not_found");
    }
    post(&bob, "/api/rooms", &json!({"name": "r", "agents": [hers]})).await.expect_problem(400, "invalid_request");
    assert!(matches!(
        SseReader::connect(&bob, room, &Position::START).await,
        Err(TestClientError::Problem { status: 404, .. })
    ));
    let mut socket = WsReader::connect(&bob).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    let refused = within("a refusal", socket.next()).await;
    assert!(refused.is_err_and(|error| error.code() == Some("not_found")));

    // Idempotency keys are per owner.
    for who in [&ada, &bob] {
        let make =
            who.request(Method::POST, "/api/rooms").header("idempotency-key", "k").json(&json!({"name": "mine"}));
        response_to(make).await.expect_status(201);
    }
    assert_eq!(ada.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "her run must be unchanged");
    ada.cancel_run(run).await.unwrap();
    wait_for_end(&ada, run).await;
    server.terminate(STOP).await.unwrap();
}

async fn invariant_17_secrets_stay_out_of_logs_events_and_errors(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LOG__LEVEL", "debug");
    let token = token(&binary, "local").await;
    let (server, api) = binary.serve().await;
    let mine = api.clone().with_token(&token);
    let room = room(&mine).await;
    post_and_wait(&mine, room, "!count 3").await;
    let wrong = get(&api.with_token(format!("{token}x")), "/api/rooms").await;
    assert!(!wrong.text.contains(&token), "{wrong:?}");
    let metrics = get(&mine, "/metrics").await;
    server.terminate(STOP).await.unwrap();
    let log = binary.log();
    assert!(log.contains("request"), "the log must not be empty: {log}");
    for text in [&log, &metrics.text] {
        assert!(!text.contains(token.trim_start_matches("grm_")));
    }
    if database.is_sqlite() {
        let stored = std::fs::read(database.file()).unwrap();
        assert!(!stored.windows(token.len()).any(|window| window == token.as_bytes()), "only the hash may be stored");
    }
}

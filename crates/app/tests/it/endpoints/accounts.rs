//! Accounts: nothing is open without a credential, and users are isolated from each other.

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
    client::{SseReader, TestClient, TestClientError, WsReader, socket_request},
    database::TestDatabase,
};

on_both_databases! {
    database: c2_without_authentication_only_loopback_is_served, c2_nothing_is_open_without_a_token_or_the_key,
              c2_no_auth_serves_direct_requests_of_this_machine_only,
              invariant_15_owner_two_users_are_isolated_on_all_endpoints,
              invariant_15_owner_stream_ends_when_access_is_lost,
              invariant_17_secrets_stay_out_of_logs_events_and_errors;
}

const STOP: Duration = Duration::from_secs(30);

async fn token(binary: &Binary, user: &str) -> String {
    let made = binary.run_command(&["token", "create", "--user", user, "--scopes", "all"]).await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    made.stdout.trim().to_owned()
}

async fn c2_without_authentication_only_loopback_is_served(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let refused = binary.run_command(&["serve", "--no-auth", "--listen", "0.0.0.0:0"]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let said = refused.stderr.lines().last().unwrap();
    assert!(said.contains("--no-auth") && said.contains("127.0.0.1"), "the error must say what to do: {said}");

    binary.launch.listen = "0.0.0.0:0".into();
    binary.launch.arguments = vec!["--behind-tls-proxy".into()];
    let (server, api) = binary.serve().await;
    let api = TestClient::new(api.base_url().replace("0.0.0.0", "127.0.0.1")).unwrap();
    get(&api, "/api/agents").await.expect_problem(401, "unauthorized");
    let agents = api.with_token(server.local_key()).agents().await.unwrap();
    assert_eq!(agents.len(), 1, "with the key every address is served");
    server.terminate(STOP).await.unwrap();
}

async fn c2_no_auth_serves_direct_requests_of_this_machine_only(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    binary.launch.arguments = vec!["--no-auth".into()];
    let (server, api) = binary.serve().await;
    let api = api.anonymous();
    assert_eq!(
        get(&api, "/api/session").await.expect_status(200),
        json!({"accounts": false, "signed_in": true, "name": "local"})
    );
    assert_eq!(api.agents().await.unwrap().len(), 1);
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=203.0.113.9"),
        ("via", "1.1 proxy"),
        ("x-real-ip", "203.0.113.9"),
        ("cf-connecting-ip", "203.0.113.9"),
    ] {
        let request = api.request(Method::GET, "/api/agents").header(name, value);
        response_to(request).await.expect_problem(403, "forbidden_host");
    }
    for origin in ["http://localhost:3000", "http://127.0.0.1:1", "https://evil.example"] {
        let write = api.request(Method::POST, "/api/rooms").header("origin", origin).json(&json!({"name": "x"}));
        response_to(write).await.expect_problem(403, "forbidden_origin");
        let mut socket = socket_request(&api).unwrap();
        socket.headers_mut().insert("origin", origin.parse().unwrap());
        assert!(tokio_tungstenite::connect_async(socket).await.is_err(), "{origin}");
    }
    let wrong = api.request(Method::GET, "/api/agents").bearer_auth("grm_wrong");
    response_to(wrong).await.expect_problem(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

async fn c2_nothing_is_open_without_a_token_or_the_key(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, operator) = binary.serve().await;
    let (api, room) = (operator.anonymous(), room(&operator).await);
    let token = token(&binary, "local").await;

    // All endpoints need a credential, except those without data.
    for request in [
        api.request(Method::GET, "/api/agents"),
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
    get(&operator, "/api/rooms").await.expect_status(200);
    server.terminate(STOP).await.unwrap();
}

/// Reads to the end and returns the code of the final error.
async fn final_error_code(mut stream: SseReader) -> String {
    loop {
        match within("the stream to end", stream.next_frame()).await.unwrap() {
            Some(frame) if frame.event.as_deref() == Some("problem") => {
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
    let gone = SseReader::connect(&api, deleted, &Position::START).await.unwrap();
    assert_eq!(delete(&api, &format!("/api/rooms/{deleted}")).await.status, 204);
    assert_eq!(final_error_code(gone).await, "not_found");

    let mine = api.clone().with_token(token(&binary, "local").await);
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
    let nothing = get(&bob, &format!("/api/rooms/{}", uuid::Uuid::now_v7())).await.expect_problem(404, "not_found");
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
    post(&bob, "/api/rooms", &json!({"name": "r", "agents": [hers]})).await.expect_problem(422, "unprocessable");
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
    let wrong = get(&api.clone().with_token(format!("{token}x")), "/api/rooms").await;
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

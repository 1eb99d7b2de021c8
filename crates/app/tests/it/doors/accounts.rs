//! Who is asking: accounts are needed beyond this machine, come on with the first token, and keep people apart.

use super::{
    binary::Binary,
    scene::{Audience, agent, answer, answered, delete, ended, get, post, room, room_of, say, within},
};
use domain::{event::EventType, position::Position, run::RunStatus};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{
    client::{Api, Error, SseReader, WsReader},
    database::TestDatabase,
};
use tokio::time::{Instant, sleep};

doors! {
    database: an_open_address_without_accounts_is_refused, the_first_token_turns_accounts_on,
              invariant_15_owner_two_users_do_not_see_each_other_by_any_door,
              invariant_15_owner_a_stream_ends_with_the_right_to_it,
              invariant_17_secrets_stay_out_of_logs_events_and_errors;
}

const STOP: Duration = Duration::from_secs(30);

async fn token(binary: &Binary, user: &str) -> String {
    let made = binary.beside(&["token", "create", "--user", user]).await;
    assert_eq!(made.code, Some(0), "{}", made.side);
    made.out.trim().to_owned()
}

async fn an_open_address_without_accounts_is_refused(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let refused = binary.beside(&["serve", "--listen", "0.0.0.0:0"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    let said = refused.side.lines().last().unwrap();
    assert!(said.contains("greenroom token create") && said.contains("127.0.0.1"), "it says what to do: {said}");

    let token = token(&binary, "local").await;
    binary.launch.listen = "0.0.0.0:0".into();
    let (server, api) = binary.serve().await;
    let api = Api::new(api.base().replace("0.0.0.0", "127.0.0.1")).unwrap();
    get(&api, "/api/agents").await.is_refused(401, "unauthorized");
    let agents = api.with_token(token).agents().await.unwrap();
    assert_eq!(agents.len(), 1, "what was the local owner's is the first account's");
    server.terminate(STOP).await.unwrap();
}

async fn the_first_token_turns_accounts_on(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (server, api) = binary.serve().await;
    let room = room(&api).await;
    let token = token(&binary, "local").await;
    let made = Instant::now();
    within("the door to close", async {
        while get(&api, "/api/agents").await.status != 401 {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(made.elapsed() < Duration::from_secs(2), "{:?}", made.elapsed());

    // Nothing but the token opens any of the doors; those that show nothing stay open.
    for request in [
        api.request(Method::GET, &format!("/api/rooms/{room}/events")).header("accept", "text/event-stream"),
        api.request(Method::GET, "/api/ws"),
        api.request(Method::GET, "/metrics"),
        api.request(Method::GET, "/api/rooms").bearer_auth("grm_wrong"),
        api.request(Method::GET, "/api/rooms").header("authorization", format!("Basic {token}")),
    ] {
        let refused = answer(request).await;
        refused.is_refused(401, "unauthorized");
        assert_eq!(refused.header("www-authenticate"), "Bearer");
    }
    assert!(matches!(WsReader::connect(&api).await, Err(Error::Connection(_))));
    get(&api, "/healthz").await.is(200);

    let mine = api.clone().with_token(&token);
    assert_eq!(answered(&mine, room, "!count 3").await.status, RunStatus::Completed, "by REST and SSE");
    let mut socket = WsReader::connect(&mine).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    within("by WebSocket", socket.next()).await.unwrap().unwrap();

    let listed = binary.beside(&["token", "list"]).await.out;
    assert!(!listed.contains(&token), "{listed}");
    let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(binary.beside(&["token", "revoke", id]).await.code, Some(0));
    get(&mine, "/api/rooms").await.is_refused(401, "unauthorized");
    assert!(matches!(SseReader::connect(&mine, room, &Position::START).await, Err(Error::Problem { status: 401, .. })));
    get(&api, "/api/rooms").await.is_refused(401, "unauthorized");
    server.terminate(STOP).await.unwrap();
}

/// Reads to the end and says with which code it was told to go.
async fn told_to_go(mut stream: SseReader) -> String {
    loop {
        match within("the stream to end", stream.next_frame()).await.unwrap() {
            Some(frame) if frame.event.as_deref() == Some("error") => {
                let data: Value = serde_json::from_str(&frame.data).unwrap();
                assert!(within("the end", stream.next_frame()).await.unwrap().is_none(), "nothing follows");
                return data["code"].as_str().unwrap().to_owned();
            }
            Some(_) => {}
            None => panic!("it ended without a word"),
        }
    }
}

async fn invariant_15_owner_a_stream_ends_with_the_right_to_it(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_FEED__HEARTBEAT_SECONDS", "1");
    let (server, api) = binary.serve().await;
    let (kept, deleted) = (room(&api).await, room(&api).await);
    let implied = SseReader::connect(&api, kept, &Position::START).await.unwrap();
    let gone = SseReader::connect(&api, deleted, &Position::START).await.unwrap();
    assert_eq!(delete(&api, &format!("/api/rooms/{deleted}")).await.status, 204);
    assert_eq!(told_to_go(gone).await, "not_found");

    let mine = api.clone().with_token(token(&binary, "local").await);
    assert_eq!(told_to_go(implied).await, "unauthorized", "accounts are on now");
    let (stream, mut socket) =
        (SseReader::connect(&mine, kept, &Position::START).await.unwrap(), WsReader::connect(&mine).await.unwrap());
    socket.subscribe(kept, &Position::START).await.unwrap();
    let listed = binary.beside(&["token", "list"]).await.out;
    let id = listed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert_eq!(binary.beside(&["token", "revoke", id]).await.code, Some(0));
    assert_eq!(told_to_go(stream).await, "unauthorized");
    within("the socket to close", async { while matches!(socket.next().await, Ok(Some(_))) {} }).await;
    server.terminate(STOP).await.unwrap();
}

async fn invariant_15_owner_two_users_do_not_see_each_other_by_any_door(database: TestDatabase) {
    let mut binary = Binary::on(&database);
    let (ada, bob) = (token(&binary, "ada").await, token(&binary, "bob").await);
    let (server, api) = binary.serve().await;
    let (ada, bob) = (api.clone().with_token(ada), api.with_token(bob));
    let hers = agent(&ada, "echo", json!({})).await;
    let room = room_of(&ada, &[hers]).await;
    let mut audience = Audience::of(&ada, room).await;
    let run = say(&ada, room, "!ask Bash {}").await;
    let requested = audience.until_kind(EventType::ApprovalRequested, run).await;
    let requested: Value = serde_json::from_str(&requested.data).unwrap();
    let approval = requested["approval_id"].as_str().unwrap();

    agent(&bob, "echo", json!({})).await;
    assert_eq!(bob.agents().await.unwrap().len(), 1, "his own, of the same name");
    for list in ["rooms", "runs"] {
        assert_eq!(get(&bob, &format!("/api/{list}")).await.is(200)[list], json!([]));
    }
    assert_eq!(get(&bob, &format!("/api/runs?room_id={room}")).await.is(200)["runs"], json!([]));
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
        let problem = get(&bob, &path).await.is_refused(404, "not_found");
        assert_eq!(problem, nothing, "a foreign id and an unknown id look the same");
    }
    let writes = [
        (format!("/api/rooms/{room}/messages"), json!({"text": "hi"})),
        (format!("/api/rooms/{room}/cancel"), json!({})),
        (format!("/api/runs/{run}/cancel"), json!({})),
        (format!("/api/runs/{run}/approvals/{approval}"), json!({"decision": "allow"})),
        (format!("/api/execute/agent/{hers}"), json!({"message": "hi"})),
    ];
    for (path, body) in writes {
        post(&bob, &path, &body).await.is_refused(404, "not_found");
    }
    for path in [format!("/api/agents/{hers}"), format!("/api/rooms/{room}")] {
        answer(bob.request(Method::PATCH, &path).json(&json!({"name": "mine"}))).await.is_refused(404, "not_found");
        delete(&bob, &path).await.is_refused(404, "not_found");
    }
    post(&bob, "/api/rooms", &json!({"name": "r", "agents": [hers]})).await.is_refused(400, "invalid_request");
    assert!(matches!(SseReader::connect(&bob, room, &Position::START).await, Err(Error::Problem { status: 404, .. })));
    let mut socket = WsReader::connect(&bob).await.unwrap();
    socket.subscribe(room, &Position::START).await.unwrap();
    let refused = within("a refusal", socket.next()).await;
    assert!(refused.is_err_and(|error| error.code() == Some("not_found")));

    // A key is the owner's own: his does not meet hers.
    for who in [&ada, &bob] {
        let make =
            who.request(Method::POST, "/api/rooms").header("idempotency-key", "k").json(&json!({"name": "mine"}));
        answer(make).await.is(201);
    }
    assert_eq!(ada.run(run).await.unwrap().status, RunStatus::WaitingForApproval, "nothing was done to hers");
    ada.cancel_run(run).await.unwrap();
    ended(&ada, run).await;
    server.terminate(STOP).await.unwrap();
}

async fn invariant_17_secrets_stay_out_of_logs_events_and_errors(database: TestDatabase) {
    let mut binary = Binary::on(&database).with("GREENROOM_LOG__LEVEL", "debug");
    let token = token(&binary, "local").await;
    let (server, api) = binary.serve().await;
    let mine = api.clone().with_token(&token);
    let room = room(&mine).await;
    answered(&mine, room, "!count 3").await;
    let wrong = get(&api.with_token(format!("{token}x")), "/api/rooms").await;
    assert!(!wrong.text.contains(&token), "{wrong:?}");
    let metrics = get(&mine, "/metrics").await;
    server.terminate(STOP).await.unwrap();
    let log = binary.log();
    assert!(log.contains("request"), "it does log: {log}");
    for text in [&log, &metrics.text] {
        assert!(!text.contains(token.trim_start_matches("grm_")));
    }
    if database.is_sqlite() {
        let stored = std::fs::read(database.file()).unwrap();
        assert!(!stored.windows(token.len()).any(|window| window == token.as_bytes()), "only its hash is stored");
    }
}

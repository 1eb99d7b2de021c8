//! The one-shot endpoint: a message to an agent, answered as a stream.

use super::requests::{ApiResponse, RoomFollower, agent, get, head, journal, post, response_to, wait_for_end, within};
use domain::{
    event::EventType,
    ids::{AgentId, RunId},
    position::Position,
    run::RunStatus,
};
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use testkit::client::{ReceivedFrameParser, SseReader, TestClient};
use uuid::Uuid;

on_both_databases! {
    server: post_and_get_give_the_same_answer, every_kind_of_frame, conversation_continues, addressed_agent_joins_the_room,
            errors_before_the_stream_are_problem_responses, errors_in_the_stream_are_events, disconnect_does_not_stop_the_run,
            disconnect_stops_the_run_if_requested, cancel_is_reported_in_the_stream, invariant_07_idempotent_repeated_one_shot,
            complete_answer_is_not_cancelled_by_disconnect;
}

/// Returns the name and data of each frame of a one-shot answer.
fn frames_of(answer: &ApiResponse) -> Vec<(String, Value)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"), "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-cache, no-transform");
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    let last = frames.pop().unwrap();
    assert_eq!((last.event, last.data.as_str()), (None, "done"));
    assert!(frames.iter().all(|frame| frame.id.is_some()), "every frame has the position to resume at");
    assert!(answer.text.starts_with(": connected\n\nretry: 1000\nid: "), "{}", answer.text);
    frames.into_iter().map(|frame| (frame.event.unwrap(), serde_json::from_str(&frame.data).unwrap())).collect()
}

fn path(agent: AgentId) -> String {
    format!("/api/execute/agent/{agent}")
}

async fn ask(api: &TestClient, body: Value) -> ApiResponse {
    let agent = api.scripted_agent().await.unwrap();
    post(api, &path(agent), &body).await
}

fn by_url(api: &TestClient, agent: AgentId, query: &[(&str, &str)]) -> RequestBuilder {
    let query: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", value.replace(' ', "%20"))).collect();
    api.request(Method::GET, &format!("{}?{}", path(agent), query.join("&")))
}

fn id(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn post_and_get_give_the_same_answer(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    let posted = frames_of(&ask(api, json!({"message": "!count 4"})).await);
    let got = frames_of(&response_to(by_url(api, agent, &[("message", "!count 4")])).await);
    for frames in [posted, got] {
        let text: String =
            frames.iter().filter(|(name, _)| name == "message").map(|(_, data)| id(&data["delta"])).collect();
        assert_eq!(text, "1 2 3 4");
        let (name, completion) = frames.last().unwrap();
        assert_eq!((name.as_str(), &completion["text"]), ("completion", &json!("1 2 3 4")));
    }
}

async fn every_kind_of_frame(api: &TestClient) {
    let script = r#"!script [{"status":{"status":"warming_up","message":"Warm"}},{"thinking":"hm"},{"text":"no","item":"x"},
        {"retract":"x"},{"tool_use":{"id":"t","name":"look","input":{"at":1}}},
        {"tool_result":{"id":"t","content":"seen","is_error":true}},{"text":"yes"}]"#;
    let frames = frames_of(&ask(api, json!({"message": script})).await);
    let words: Vec<_> = frames.iter().map(|(name, data)| (name.as_str(), data.clone())).collect();
    assert_eq!(words[0].1["status"], "queued");
    assert_eq!((words[1].0, &words[1].1["status"]), ("status", &json!("running")));
    assert_eq!(words[2], ("status", json!({"status": "warming_up", "message": "Warm"})));
    assert_eq!(words[3], ("message", json!({"type": "thinking", "delta": "hm"})));
    assert_eq!(words[4], ("message", json!({"type": "assistant", "delta": "no"})));
    assert_eq!(words[5], ("status", json!({"status": "retracted", "item": "x"})));
    assert_eq!(words[6], ("message", json!({"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}})));
    assert_eq!(words[7], ("message", json!({"type": "tool_result", "id": "t", "content": "seen", "is_error": true})));
    assert_eq!(words[8], ("message", json!({"type": "assistant", "delta": "yes"})));
    assert_eq!((words[9].0, &words[9].1["text"]), ("completion", &json!("yes")), "retracted text must not be in it");
    assert_eq!(words.len(), 10);
}

async fn conversation_continues(api: &TestClient) {
    let first = frames_of(&ask(api, json!({"message": "!count 2"})).await);
    let conversation = first[0].1["conversationId"].clone();
    let second = frames_of(&ask(api, json!({"message": "!count 3", "conversationId": conversation})).await);
    assert_eq!(second[0].1["conversationId"], conversation);
    let history = api.messages(id(&conversation).parse().unwrap(), None, 10).await.unwrap();
    let texts: Vec<_> = history.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["!count 2", "1 2", "!count 3", "1 2 3"]);
    assert_eq!(
        get(api, "/api/rooms").await.expect_status(200)["rooms"][0]["name"],
        "!count 2",
        "the room must be named after the first message"
    );
}

async fn addressed_agent_joins_the_room(api: &TestClient) {
    let first = frames_of(&ask(api, json!({"message": "!count 2"})).await);
    let conversation = first[0].1["conversationId"].clone();
    let guest = agent(api, "guest", json!({})).await;
    let body = json!({"message": "!count 3", "conversationId": conversation});
    frames_of(&post(api, &path(guest), &body).await);
    let room = id(&conversation).parse().unwrap();
    assert_eq!(api.room(room).await.unwrap().agents.len(), 2);
    let runs = journal(api, room).await.iter().filter(|event| event.kind == EventType::RunQueued).count();
    assert_eq!(runs, 2, "only the addressed agent may answer");
}

async fn errors_before_the_stream_are_problem_responses(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    for unknown in [Uuid::now_v7().to_string(), "nobody".to_owned()] {
        let asked = post(api, &format!("/api/execute/agent/{unknown}"), &json!({"message": "hi"})).await;
        asked.expect_problem(404, "not_found");
    }
    ask(api, json!({"message": "hi", "conversationId": Uuid::now_v7()})).await.expect_problem(404, "not_found");
    for bad in [
        json!({}),
        json!({"message": 1}),
        json!({"message": "hi", "conversationId": "x"}),
        json!({"message": "hi", "on_disconnect": "panic"}),
        json!({"message": "hi", "conversation_id": null}),
    ] {
        ask(api, bad).await.expect_problem(400, "invalid_request");
    }
    ask(api, json!({"message": " "})).await.expect_problem(422, "unprocessable");
    response_to(by_url(api, agent, &[])).await.expect_problem(400, "invalid_request");
    response_to(by_url(api, agent, &[("message", "hi"), ("mood", "good")]))
        .await
        .expect_problem(400, "invalid_request");
    let long = json!({"message": "x".repeat(600_000)});
    ask(api, long).await.expect_problem(400, "invalid_request");
    assert_eq!(get(api, "/api/rooms").await.expect_status(200)["rooms"], json!([]), "no room may be created");
}

async fn errors_in_the_stream_are_events(api: &TestClient) {
    let frames = frames_of(&ask(api, json!({"message": "!fail over_loaded Try later"})).await);
    let (name, error) = frames.last().unwrap();
    assert_eq!(name, "error");
    assert_eq!((&error["code"], &error["message"]), (&json!("over_loaded"), &json!("Try later")));
    assert_eq!(frames.iter().filter(|(name, _)| name == "error").count(), 1);
}

/// Sends a message, waits for the first delta, and disconnects.
async fn ask_and_disconnect(api: &TestClient, message: &str, on_disconnect: Option<&str>) -> RunId {
    let agent = api.scripted_agent().await.unwrap();
    let mut query = format!("?message={}", message.replace(' ', "%20"));
    if let Some(choice) = on_disconnect {
        query.push_str(&format!("&on_disconnect={choice}"));
    }
    within("the first word", async {
        let mut stream = SseReader::open(api, &(path(agent) + &query), &Position::START).await.unwrap();
        let queued: Value = serde_json::from_str(&stream.next_frame().await.unwrap().unwrap().data).unwrap();
        while stream.next_frame().await.unwrap().unwrap().event.as_deref() != Some("message") {}
        id(&queued["run_id"]).parse().unwrap()
    })
    .await
}

async fn disconnect_does_not_stop_the_run(api: &TestClient) {
    for choice in [None, Some("continue")] {
        let run = ask_and_disconnect(api, "!count 40 10", choice).await;
        assert_eq!(wait_for_end(api, run).await.status, RunStatus::Completed);
    }
}

async fn disconnect_stops_the_run_if_requested(api: &TestClient) {
    let run = ask_and_disconnect(api, "!hang", Some("cancel")).await;
    assert_eq!(wait_for_end(api, run).await.status, RunStatus::Cancelled);
}

async fn complete_answer_is_not_cancelled_by_disconnect(api: &TestClient) {
    let frames = frames_of(&ask(api, json!({"message": "!count 3", "on_disconnect": "cancel"})).await);
    let run = id(&frames[0].1["run_id"]).parse().unwrap();
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Completed);
}

async fn cancel_is_reported_in_the_stream(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    let asked = api.request(Method::POST, &path(agent)).json(&json!({"message": "!hang"}));
    let response = within("a head", asked.send()).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let rooms = get(api, "/api/rooms").await.expect_status(200);
    let room = id(&rooms["rooms"][0]["id"]).parse().unwrap();
    let mut follower = RoomFollower::start(api, room).await;
    let started = follower.until("its first word", |event| event.kind == EventType::ContentDelta).await;
    api.cancel_run(started.run_id.unwrap()).await.unwrap();
    let text = within("the rest", response.text()).await.unwrap();
    let mut frames = Vec::new();
    ReceivedFrameParser::default().push(text.as_bytes(), &mut frames).unwrap();
    let [.., cancelled, done] = frames.as_slice() else { panic!("{frames:?}") };
    let data: Value = serde_json::from_str(&cancelled.data).unwrap();
    assert_eq!((cancelled.event.as_deref(), &data["status"]), (Some("cancelled"), &json!("cancelled")));
    assert_eq!((&data["text"], done.data.as_str()), (&json!("Hanging"), "done"));
}

async fn invariant_07_idempotent_repeated_one_shot(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    let ask =
        |body: Value| response_to(api.request(Method::POST, &path(agent)).header("idempotency-key", "k").json(&body));
    let asked = futures_util::future::join_all((0..10).map(|_| ask(json!({"message": "!count 3 20"})))).await;
    let first = frames_of(&asked[0]);
    for again in asked.iter().chain([&ask(json!({"message": "!count 3 20"})).await]) {
        let again = frames_of(again);
        assert_eq!(again[0], first[0], "the same run must be returned");
        assert_eq!(again.last(), first.last());
    }
    let room = id(&first[0].1["room_id"]).parse().unwrap();
    let before = head(api, room).await;
    ask(json!({"message": "!count 4"})).await.expect_problem(409, "idempotency_conflict");
    assert_eq!(head(api, room).await, before);
    assert_eq!(get(api, "/api/rooms").await.expect_status(200)["rooms"].as_array().unwrap().len(), 1);
}

//! One shot: a message to an agent, answered in few words.

use super::scene::{Answer, Audience, agent, answer, ended, get, head, journal, post, within};
use domain::{
    event::EventType,
    ids::{AgentId, RunId},
    position::Position,
    run::RunStatus,
};
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use testkit::client::{Api, FrameParser, SseReader};
use uuid::Uuid;

doors! {
    server: by_post_and_by_get, every_kind_of_word, a_conversation_goes_on, whoever_was_not_there_joins,
            errors_before_the_stream_are_problems, errors_after_it_are_events, a_client_that_leaves_does_not_stop_it,
            a_client_that_leaves_stops_it_if_it_said_so, cancelled_is_said, invariant_07_idempotent_asking_twice,
            a_whole_answer_is_not_cancelled_by_leaving;
}

/// The frames of a one-shot answer: name and data.
fn told(answer: &Answer) -> Vec<(String, Value)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"), "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-cache, no-transform");
    let mut frames = Vec::new();
    FrameParser::default().push(answer.text.as_bytes(), &mut frames).unwrap();
    let last = frames.pop().unwrap();
    assert_eq!((last.event, last.data.as_str()), (None, "done"));
    assert!(frames.iter().all(|frame| frame.id.is_none()), "there is no resuming by id here");
    frames.into_iter().map(|frame| (frame.event.unwrap(), serde_json::from_str(&frame.data).unwrap())).collect()
}

fn path(agent: AgentId) -> String {
    format!("/api/execute/agent/{agent}")
}

async fn ask(api: &Api, body: Value) -> Answer {
    let agent = api.scripted_agent().await.unwrap();
    post(api, &path(agent), &body).await
}

fn by_url(api: &Api, agent: AgentId, query: &[(&str, &str)]) -> RequestBuilder {
    let query: Vec<String> = query.iter().map(|(key, value)| format!("{key}={}", value.replace(' ', "%20"))).collect();
    api.request(Method::GET, &format!("{}?{}", path(agent), query.join("&")))
}

fn id(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

async fn by_post_and_by_get(api: &Api) {
    let agent = api.scripted_agent().await.unwrap();
    let posted = told(&ask(api, json!({"message": "!count 4"})).await);
    let got = told(&answer(by_url(api, agent, &[("message", "!count 4")])).await);
    for told in [posted, got] {
        let text: String =
            told.iter().filter(|(name, _)| name == "message").map(|(_, data)| id(&data["delta"])).collect();
        assert_eq!(text, "1 2 3 4");
        let (name, completion) = told.last().unwrap();
        assert_eq!((name.as_str(), &completion["text"]), ("completion", &json!("1 2 3 4")));
    }
}

async fn every_kind_of_word(api: &Api) {
    let script = r#"!script [{"status":{"status":"warming_up","message":"Warm"}},{"thinking":"hm"},{"text":"no","item":"x"},
        {"retract":"x"},{"tool_use":{"id":"t","name":"look","input":{"at":1}}},
        {"tool_result":{"id":"t","content":"seen","is_error":true}},{"text":"yes"}]"#;
    let told = told(&ask(api, json!({"message": script})).await);
    let words: Vec<_> = told.iter().map(|(name, data)| (name.as_str(), data.clone())).collect();
    assert_eq!(words[0].1["status"], "queued");
    assert_eq!((words[1].0, &words[1].1["status"]), ("status", &json!("running")));
    assert_eq!(words[2], ("status", json!({"status": "warming_up", "message": "Warm"})));
    assert_eq!(words[3], ("message", json!({"type": "thinking", "delta": "hm"})));
    assert_eq!(words[4], ("message", json!({"type": "assistant", "delta": "no"})));
    assert_eq!(words[5], ("status", json!({"status": "retracted", "item": "x"})));
    assert_eq!(words[6], ("message", json!({"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}})));
    assert_eq!(words[7], ("message", json!({"type": "tool_result", "id": "t", "content": "seen", "is_error": true})));
    assert_eq!(words[8], ("message", json!({"type": "assistant", "delta": "yes"})));
    assert_eq!((words[9].0, &words[9].1["text"]), ("completion", &json!("yes")), "what was taken back is not in it");
    assert_eq!(words.len(), 10);
}

async fn a_conversation_goes_on(api: &Api) {
    let first = told(&ask(api, json!({"message": "!count 2"})).await);
    let conversation = first[0].1["conversationId"].clone();
    let second = told(&ask(api, json!({"message": "!count 3", "conversationId": conversation})).await);
    assert_eq!(second[0].1["conversationId"], conversation);
    let history = api.messages(id(&conversation).parse().unwrap(), None, 10).await.unwrap();
    let texts: Vec<_> = history.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["!count 2", "1 2", "!count 3", "1 2 3"]);
    assert_eq!(get(api, "/api/rooms").await.is(200)["rooms"][0]["name"], "!count 2", "named by how it began");
}

async fn whoever_was_not_there_joins(api: &Api) {
    let first = told(&ask(api, json!({"message": "!count 2"})).await);
    let conversation = first[0].1["conversationId"].clone();
    let guest = agent(api, "guest", json!({})).await;
    let body = json!({"message": "!count 3", "conversationId": conversation});
    told(&post(api, &path(guest), &body).await);
    let room = id(&conversation).parse().unwrap();
    assert_eq!(api.room(room).await.unwrap().agents.len(), 2);
    let runs = journal(api, room).await.iter().filter(|event| event.kind == EventType::RunQueued).count();
    assert_eq!(runs, 2, "only who was asked answers");
}

async fn errors_before_the_stream_are_problems(api: &Api) {
    let agent = api.scripted_agent().await.unwrap();
    for unknown in [Uuid::now_v7().to_string(), "nobody".to_owned()] {
        let asked = post(api, &format!("/api/execute/agent/{unknown}"), &json!({"message": "hi"})).await;
        asked.is_refused(404, "not_found");
    }
    ask(api, json!({"message": "hi", "conversationId": Uuid::now_v7()})).await.is_refused(404, "not_found");
    for bad in [
        json!({}),
        json!({"message": ""}),
        json!({"message": 1}),
        json!({"message": "hi", "conversationId": "x"}),
        json!({"message": "hi", "on_disconnect": "panic"}),
        json!({"message": "hi", "conversation_id": null}),
    ] {
        ask(api, bad).await.is_refused(400, "invalid_request");
    }
    answer(by_url(api, agent, &[])).await.is_refused(400, "invalid_request");
    answer(by_url(api, agent, &[("message", "hi"), ("mood", "good")])).await.is_refused(400, "invalid_request");
    let long = json!({"message": "x".repeat(600_000)});
    ask(api, long).await.is_refused(400, "invalid_request");
    assert_eq!(get(api, "/api/rooms").await.is(200)["rooms"], json!([]), "no room was opened for any of them");
}

async fn errors_after_it_are_events(api: &Api) {
    let told = told(&ask(api, json!({"message": "!fail over_loaded Try later"})).await);
    let (name, error) = told.last().unwrap();
    assert_eq!(name, "error");
    assert_eq!((&error["code"], &error["message"]), (&json!("over_loaded"), &json!("Try later")));
    assert_eq!(told.iter().filter(|(name, _)| name == "error").count(), 1);
}

/// Asks, hears the first word, and hangs up.
async fn ask_and_leave(api: &Api, message: &str, on_disconnect: Option<&str>) -> RunId {
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

async fn a_client_that_leaves_does_not_stop_it(api: &Api) {
    for choice in [None, Some("continue")] {
        let run = ask_and_leave(api, "!count 40 10", choice).await;
        assert_eq!(ended(api, run).await.status, RunStatus::Completed);
    }
}

async fn a_client_that_leaves_stops_it_if_it_said_so(api: &Api) {
    let run = ask_and_leave(api, "!hang", Some("cancel")).await;
    assert_eq!(ended(api, run).await.status, RunStatus::Cancelled);
}

async fn a_whole_answer_is_not_cancelled_by_leaving(api: &Api) {
    let told = told(&ask(api, json!({"message": "!count 3", "on_disconnect": "cancel"})).await);
    let run = id(&told[0].1["run_id"]).parse().unwrap();
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Completed);
}

async fn cancelled_is_said(api: &Api) {
    let agent = api.scripted_agent().await.unwrap();
    let asked = api.request(Method::POST, &path(agent)).json(&json!({"message": "!hang"}));
    let response = within("a head", asked.send()).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let rooms = get(api, "/api/rooms").await.is(200);
    let room = id(&rooms["rooms"][0]["id"]).parse().unwrap();
    let mut audience = Audience::of(api, room).await;
    let started = audience.until("its first word", |event| event.kind == EventType::ContentDelta).await;
    api.cancel_run(started.run_id.unwrap()).await.unwrap();
    let text = within("the rest", response.text()).await.unwrap();
    let mut frames = Vec::new();
    FrameParser::default().push(text.as_bytes(), &mut frames).unwrap();
    let [.., cancelled, done] = frames.as_slice() else { panic!("{frames:?}") };
    let data: Value = serde_json::from_str(&cancelled.data).unwrap();
    assert_eq!((cancelled.event.as_deref(), &data["status"]), (Some("cancelled"), &json!("cancelled")));
    assert_eq!((&data["text"], done.data.as_str()), (&json!("Hanging"), "done"));
}

async fn invariant_07_idempotent_asking_twice(api: &Api) {
    let agent = api.scripted_agent().await.unwrap();
    let ask = |body: Value| answer(api.request(Method::POST, &path(agent)).header("idempotency-key", "k").json(&body));
    let asked = futures_util::future::join_all((0..10).map(|_| ask(json!({"message": "!count 3 20"})))).await;
    let first = told(&asked[0]);
    for again in asked.iter().chain([&ask(json!({"message": "!count 3 20"})).await]) {
        let again = told(again);
        assert_eq!(again[0], first[0], "the same run, answered alike");
        assert_eq!(again.last(), first.last());
    }
    let room = id(&first[0].1["room_id"]).parse().unwrap();
    let before = head(api, room).await;
    ask(json!({"message": "!count 4"})).await.is_refused(409, "idempotency_conflict");
    assert_eq!(head(api, room).await, before);
    assert_eq!(get(api, "/api/rooms").await.is(200)["rooms"].as_array().unwrap().len(), 1);
}

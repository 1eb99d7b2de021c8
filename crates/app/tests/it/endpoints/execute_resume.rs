//! One-shot streams that are cut: the client continues the same run and never starts another.

use super::requests::{ApiResponse, agent, counted, get, response_to, wait_for_end, within};
use domain::ids::RunId;
use greenroom::serve::RunningServer;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::{
    client::{ReceivedFrame, ReceivedFrameParser, TestClient},
    database::TestDatabase,
    server::{TestServer, config, operator_of},
};

on_both_databases! {
    server: d1_a_stream_that_is_cut_continues_its_run, d1_a_ticket_starts_one_run, d1_requests_with_one_ticket_at_once_start_one_run,
            d1_whole_messages_are_neither_lost_nor_repeated, d1_a_position_that_is_none_starts_nothing, d1_a_post_is_resumed_too;
}

/// What a client has of a stream: frames, and the id of the last one.
#[derive(Default)]
struct Received {
    frames: Vec<ReceivedFrame>,
    last_id: Option<String>,
}

impl Received {
    /// Reads until the end, or until there are `limit` more frames. Returns whether it was the end.
    async fn read(&mut self, request: RequestBuilder, limit: usize) -> bool {
        let request = self.last_id.iter().fold(request, |request, id| request.header("last-event-id", id));
        let mut response = within("a head", request.send()).await.unwrap();
        // It was cut after the last event: there is nothing more to read.
        if self.last_id.is_some() && response.status().as_u16() == 204 {
            return true;
        }
        assert_eq!(response.status().as_u16(), 200);
        let (mut parser, mut new) = (ReceivedFrameParser::default(), Vec::new());
        while new.len() < limit {
            match within("more of the stream", response.chunk()).await.unwrap() {
                Some(bytes) => parser.push(&bytes, &mut new).unwrap(),
                None => break,
            }
        }
        let is_end = new.len() <= limit && new.last().is_some_and(|frame| frame.data == "done");
        // A client that is cut may have received less than was sent.
        new.truncate(limit);
        self.last_id = new.iter().rev().find_map(|frame| frame.id.clone()).or(self.last_id.take());
        self.frames.extend(new);
        is_end
    }

    fn data(&self) -> Vec<Value> {
        let json = self.frames.iter().filter(|frame| frame.data != "done");
        json.map(|frame| serde_json::from_str(&frame.data).unwrap()).collect()
    }

    /// The answer, piece by piece.
    fn text(&self) -> String {
        self.data().iter().filter_map(|data| data["delta"].as_str()).collect()
    }

    fn run(&self) -> RunId {
        self.frames[0].id.as_ref().unwrap().split_once('/').unwrap().0.parse().unwrap()
    }
}

async fn task_url(api: &TestClient, message: &str) -> String {
    let agent = api.scripted_agent().await.unwrap();
    format!("/api/execute/agent/{agent}?message={}", message.replace(' ', "%20"))
}

async fn ticket(api: &TestClient) -> String {
    let created = response_to(api.request(Method::POST, "/api/tickets")).await.expect_status(201);
    created["ticket"].as_str().unwrap().to_owned()
}

async fn run_count(api: &TestClient) -> usize {
    get(api, "/api/runs").await.expect_status(200)["runs"].as_array().unwrap().len()
}

async fn d1_a_stream_that_is_cut_continues_its_run(api: &TestClient) {
    let url = task_url(api, "!count 60 10").await;
    let mut client = Received::default();
    for _ in 0..10 {
        assert!(!client.read(api.request(Method::GET, &url), 3).await);
    }
    assert!(client.read(api.request(Method::GET, &url), usize::MAX).await);
    assert_eq!(client.text(), counted(60), "nothing is missing, nothing is twice");
    let ends = client.data().iter().filter(|data| data["text"].is_string()).count();
    assert_eq!((ends, run_count(api).await), (1, 1));
    // As a browser does after the end of a stream.
    for _ in 0..3 {
        let again = api.request(Method::GET, &url).header("last-event-id", client.last_id.as_ref().unwrap());
        let again = response_to(again).await;
        assert_eq!((again.status, again.text.as_str()), (204, ""));
    }
    // The run's own stream has the same frames.
    let path = format!("/api/runs/{}/stream?dialect=deltas", client.run());
    let mut whole = Received::default();
    assert!(whole.read(api.request(Method::GET, &path), usize::MAX).await);
    assert_eq!(whole.text(), counted(60));
    assert_eq!((whole.data().first(), whole.data().last()), (client.data().first(), client.data().last()));
    assert_eq!(run_count(api).await, 1);
}

async fn d1_a_ticket_starts_one_run(api: &TestClient) {
    let url = format!("{}&ticket={}", task_url(api, "!count 40 10").await, ticket(api).await);
    let browser = api.anonymous();
    assert_eq!(response_to(browser.request(Method::HEAD, &url)).await.status, 405);
    assert_eq!(run_count(api).await, 0);
    // Cut before the first frame: the browser has no id.
    within("a head", browser.request(Method::GET, &url).send()).await.unwrap();
    let mut client = Received::default();
    assert!(!client.read(browser.request(Method::GET, &url), 5).await);
    assert!(client.read(browser.request(Method::GET, &url), usize::MAX).await);
    assert_eq!((client.text(), run_count(api).await), (counted(40), 1));
    let resumed = browser.request(Method::GET, &url).header("last-event-id", client.last_id.as_ref().unwrap());
    assert_eq!(response_to(resumed).await.status, 204);
    assert_eq!(response_to(browser.request(Method::GET, &url)).await.status, 204, "all of it was sent");
    // The ticket opens nothing else.
    let mut second = Received::default();
    assert!(second.read(api.request(Method::GET, &task_url(api, "!count 2").await), usize::MAX).await);
    let foreign = browser.request(Method::GET, &url).header("last-event-id", second.last_id.as_ref().unwrap());
    response_to(foreign).await.expect_problem(400, "invalid_request");
    assert_eq!(run_count(api).await, 2);
}

async fn d1_requests_with_one_ticket_at_once_start_one_run(api: &TestClient) {
    let url = format!("{}&ticket={}", task_url(api, "!count 5 20").await, ticket(api).await);
    let browser = api.anonymous();
    let asked = (0..8).map(|_| response_to(browser.request(Method::GET, &url)));
    let answers: Vec<ApiResponse> = futures_util::future::join_all(asked).await;
    assert!(answers.iter().any(|answer| answer.text.ends_with("data: done\n\n")));
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 204)), "{answers:?}");
    assert_eq!(run_count(api).await, 1);
}

async fn d1_whole_messages_are_neither_lost_nor_repeated(api: &TestClient) {
    let script = r#"!script [{"thinking":"hm"},{"text":"one "},{"status":{"status":"working","message":"Working"}},
        {"text":"block"},{"tool_use":{"id":"t","name":"look","input":{}}},{"tool_result":{"id":"t","content":"seen"}},
        {"text":"yes"}]"#;
    let agent = api.scripted_agent().await.unwrap();
    let path = format!("/api/execute/agent/{agent}?dialect=messages");
    let ask = || api.request(Method::POST, &path).json(&json!({"message": script}));
    let mut whole = Received::default();
    assert!(whole.read(ask(), usize::MAX).await);
    let expected = whole.data();
    // Cut after every single frame, also between two frames of one event.
    let stream = format!("/api/runs/{}/stream?dialect=messages", whole.run());
    let mut cut = Received::default();
    while !cut.read(api.request(Method::GET, &stream), 1).await {
        assert!(cut.frames.len() <= expected.len(), "{:?}", cut.data());
        if cut.frames.len() == expected.len() {
            break;
        }
    }
    assert_eq!(cut.data(), expected);
}

async fn d1_a_position_that_is_none_starts_nothing(api: &TestClient) {
    let url = task_url(api, "!count 2").await;
    let mut client = Received::default();
    assert!(client.read(api.request(Method::GET, &url), usize::MAX).await);
    let other = agent(api, "other", json!({})).await;
    let unknown = RunId::generate();
    let id = client.last_id.clone().unwrap();
    for (bad, status) in [("17", 400), ("7c9e6f2a-17", 400), ("x", 400), (&*format!("{unknown}/7c9e6f2a-17"), 404)] {
        let answer = response_to(api.request(Method::GET, &url).header("last-event-id", bad)).await;
        assert_eq!(answer.status, status, "{bad}: {answer:?}");
    }
    let elsewhere = format!("/api/execute/agent/{other}?message=hi");
    let answer = response_to(api.request(Method::GET, &elsewhere).header("last-event-id", &id)).await;
    answer.expect_problem(404, "not_found");
    assert_eq!(run_count(api).await, 1);
}

async fn d1_a_post_is_resumed_too(api: &TestClient) {
    let agent = api.scripted_agent().await.unwrap();
    let path = format!("/api/execute/agent/{agent}");
    let ask = || api.request(Method::POST, &path).json(&json!({"message": "!count 30 10"}));
    let mut client = Received::default();
    while !client.read(ask(), 8).await {}
    assert_eq!((client.text(), run_count(api).await), (counted(30), 1));
    wait_for_end(api, client.run()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_a_stream_continues_on_another_server() {
    let first = TestServer::start(TestDatabase::postgres()).await;
    let second = RunningServer::start(&config(first.database(), &[])).await.unwrap();
    let (here, there) = (first.api().clone(), operator_of(&second));
    let url = task_url(&here, "!count 60 20").await;
    let mut client = Received::default();
    for api in [&here, &there, &here] {
        assert!(!client.read(api.request(Method::GET, &url), 4).await);
    }
    assert!(client.read(there.request(Method::GET, &url), usize::MAX).await);
    assert_eq!((client.text(), run_count(&here).await), (counted(60), 1));
    // A ticket is known to the server that gave it; elsewhere it starts nothing.
    let url = format!("{url}&ticket={}", ticket(&here).await);
    let stranger = response_to(there.anonymous().request(Method::GET, &url)).await;
    stranger.expect_problem(401, "unauthorized");
    assert_eq!(run_count(&here).await, 1);
    second.stop().await;
    first.finish().await;
}

//! A web server and a worker on one PostgreSQL.

use super::requests::{RoomFollower, counted, get, journal, message_of, post, post_text, room, wait_for_end, within};
use domain::run::RunStatus;
use greenroom::serve::RunningServer;
use serde_json::json;
use testkit::{
    client::TestClient,
    database::TestDatabase,
    server::{TestServer, config, operator_of},
};

async fn start_worker(database: &TestDatabase) -> (RunningServer, TestClient) {
    let settings = [("server.role".to_owned(), "worker".to_owned())];
    let worker = within("a worker", RunningServer::start(&config(database, &settings))).await.unwrap();
    let api = operator_of(&worker);
    (worker, api)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_the_web_server_is_answered_by_the_worker() {
    let web = TestServer::start_with(TestDatabase::postgres(), &[("server.role", "web")]).await;
    let api = web.api();
    let room = room(api).await;
    let run = post_text(api, room, "!count 3").await;
    assert_eq!(api.run(run).await.unwrap().status, RunStatus::Queued, "a web server claims nothing");
    let mut reader = RoomFollower::start(api, room).await;

    let (worker, _) = start_worker(web.database()).await;
    reader.end_of(run).await;
    let second = post_text(api, room, "!count 5").await;
    reader.end_of(second).await;
    assert_eq!(reader.seen, journal(api, room).await, "a reader at the web server gets every event");
    let ended = wait_for_end(api, second).await;
    assert_eq!(message_of(api, &ended).await.text, counted(5));
    within("the worker's stop", worker.stop()).await;

    let third = post_text(api, room, "!count 1").await;
    assert_eq!(api.run(third).await.unwrap().status, RunStatus::Queued, "there is no worker");
    let (worker, _) = start_worker(web.database()).await;
    assert_eq!(wait_for_end(api, third).await.status, RunStatus::Completed);
    within("the worker's stop", worker.stop()).await;
    web.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_serves_health_and_metrics_only() {
    let database = TestDatabase::postgres();
    let (worker, api) = start_worker(&database).await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(get(&api, path).await.status, 200, "{path}");
    }
    for path in ["/api/rooms", "/api/agents", "/openapi.json", "/", "/sse"] {
        get(&api, path).await.expect_problem(404, "not_found");
    }
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
    post(&api, "/mcp", &initialize).await.expect_problem(404, "not_found");
    within("the worker's stop", worker.stop()).await;
}

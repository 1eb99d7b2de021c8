//! Every outside source is bounded where it enters: the test walks the list of them and sends each far more.

use crate::endpoints::requests::{agent, get, post, post_and_wait, room_of};
use serde_json::json;
use std::{
    io::Cursor,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use testkit::{client::TestClient, database::TestDatabase, server::TestServer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};
use workbench::{
    outside::{ErrorText, OutsideSource},
    process::{LineError, OutputLines, StderrTail},
};

const MB: usize = 1024 * 1024;
/// What a flooding server would send if it was read to the end.
const FLOOD: usize = 200 * MB;
/// What the system may buffer beyond the bound before the sender notices that nobody reads.
const SLACK: usize = 24 * MB;

/// An HTTP server that answers every request with a head and an endless body.
struct FloodingServer {
    url: String,
    /// The largest number of bytes that one client took.
    taken: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl FloodingServer {
    async fn start(head: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::<AtomicUsize>::default();
        let (mut tasks, counted) = (JoinSet::new(), Arc::clone(&taken));
        tasks.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                clients.spawn(async move {
                    // One read is enough of the request: its answer does not depend on it.
                    drop(client.read(&mut [0; 65_536]).await);
                    if client.write_all(head.as_bytes()).await.is_err() {
                        return;
                    }
                    let block = vec![b'x'; 65_536];
                    for sent in (0..FLOOD).step_by(block.len()) {
                        if client.write_all(&block).await.is_err() {
                            return;
                        }
                        counted.fetch_max(sent + block.len(), Ordering::Relaxed);
                    }
                });
            }
        });
        Self { url, taken, _tasks: tasks }
    }

    fn assert_bounded(&self, source: OutsideSource) {
        let taken = self.taken.load(Ordering::Relaxed);
        assert!(taken <= source.max_bytes() + SLACK, "{source:?}: {taken} bytes were taken");
    }
}

/// The test of an MCP server fails with a short text, and takes no more than the bound.
async fn mcp_is_bounded(api: &TestClient, source: OutsideSource, kind: &str, head: &'static str) {
    let flooding = FloodingServer::start(head).await;
    let name = format!("{source:?}");
    let spec = json!({"name": name, "type": kind, "url": flooding.url});
    post(api, "/api/mcp-servers", &spec).await.expect_status(201);
    let tested = post(api, &format!("/api/mcp-servers/{name}/test"), &json!({})).await;
    assert_eq!(tested.expect_status(200)["ok"], false, "{source:?}");
    assert!(tested.text.len() < 4 * ErrorText::MAX_CHARS, "{source:?}: {} bytes were repeated", tested.text.len());
    flooding.assert_bounded(source);
}

/// A run on the model API fails, and neither its journal nor its memory grows by more than the bound.
async fn model_is_bounded(source: OutsideSource, head: &'static str) {
    let flooding = FloodingServer::start(head).await;
    let endpoint = format!("flood = {}", flooding.url);
    let settings = [("openai.endpoints", endpoint.as_str()), ("direct.retries", "0")];
    let server = TestServer::start_with(TestDatabase::sqlite(), &settings).await;
    let ada = agent(server.api(), "Ada", json!({"provider": "flood", "model": "m"})).await;
    let room = room_of(server.api(), &[ada]).await;
    let run = post_and_wait(server.api(), room, "hello").await;
    assert!(run.error.is_some_and(|error| error.message.len() < 4 * ErrorText::MAX_CHARS), "{source:?}");
    let events = get(server.api(), &format!("/api/rooms/{room}/events?raw=true")).await.text;
    assert!(events.len() < 100_000, "{source:?}: {} bytes of events", events.len());
    flooding.assert_bounded(source);
    server.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h4_every_outside_source_is_bounded() {
    let server = TestServer::start(TestDatabase::sqlite()).await;
    let api = server.api();
    for source in OutsideSource::ALL {
        match source {
            OutsideSource::McpHttpAnswer => {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"jsonrpc\":\"";
                mcp_is_bounded(api, source, "http", head).await;
            }
            OutsideSource::McpHttpEvent => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
                mcp_is_bounded(api, source, "http", head).await;
            }
            OutsideSource::McpHttpError => {
                let head = "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
                mcp_is_bounded(api, source, "http", head).await;
            }
            OutsideSource::McpSseEvent => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
                mcp_is_bounded(api, source, "sse", head).await;
            }
            OutsideSource::McpProgramLine => {
                let fake = json!({"name": "fake", "command": testkit::programs::fake_mcp(), "args": ["good"]});
                post(api, "/api/mcp-servers", &fake).await.expect_status(201);
                let called = post(api, "/api/mcp-servers/fake/call", &json!({"tool": "huge"})).await;
                assert!(
                    called.text.contains("the limit is 16 MB") && called.text.len() < 4096,
                    "{}",
                    called.text.len()
                );
            }
            OutsideSource::ProgramLine => {
                let mut lines = OutputLines::new(Cursor::new(vec![b'x'; source.max_bytes() + 1]));
                assert!(matches!(lines.next().await, Err(LineError::TooLong)));
            }
            OutsideSource::ProgramStderr => {
                let stderr = StderrTail::default();
                (0..100).for_each(|_| stderr.push(&[b'x'; 10_000]));
                assert_eq!(stderr.text().len(), source.max_bytes());
            }
            OutsideSource::ModelEvent => {
                model_is_bounded(source, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ").await;
            }
            OutsideSource::ModelList => {
                let flooding =
                    FloodingServer::start("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"").await;
                let new = json!({"id": "flood", "base_url": flooding.url});
                post(api, "/api/providers", &new).await.expect_status(201);
                let listed = get(api, "/api/providers/flood/models").await.expect_problem(502, "provider_failed");
                assert!(listed["detail"].as_str().unwrap().len() < ErrorText::MAX_CHARS, "{listed}");
                flooding.assert_bounded(source);
            }
            OutsideSource::ModelError => {
                model_is_bounded(source, "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n\r\n").await;
            }
        }
    }
    server.finish().await;
}

/// The reproduction of the finding: one failing server in a run made a status of 31 MB in the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h4_a_failing_mcp_server_is_reported_in_the_room_in_a_few_words() {
    let head = "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n";
    let flooding = FloodingServer::start(head).await;
    let models = testkit::models::ModelDouble::start().await.unwrap();
    let endpoint = format!("local = {}/v1", models.url());
    let server = TestServer::start_with(TestDatabase::sqlite(), &[("openai.endpoints", &endpoint)]).await;
    let api = server.api();
    post(api, "/api/mcp-servers", &json!({"name": "web", "url": flooding.url})).await.expect_status(201);
    let ada = agent(api, "Ada", json!({"provider": "local", "model": "double", "mcp_servers": ["web"]})).await;
    let room = room_of(api, &[ada]).await;
    post_and_wait(api, room, "!count 3").await;
    let events = get(api, &format!("/api/rooms/{room}/events?raw=true")).await.text;
    assert!(events.contains("HTTP 404") && events.len() < 50_000, "{} bytes of events", events.len());
    flooding.assert_bounded(OutsideSource::McpHttpError);
    tokio::time::timeout(Duration::from_secs(60), server.finish()).await.unwrap();
    models.stop().await;
}

//! The accept loop on real sockets. Every wait is for an event, with a deadline that only a failing test reaches.

use crate::test_app::{LOCAL_KEY, TestApp, config};
use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use futures_util::stream;
use server::{
    HttpServerConfig, ServerSockets,
    auth::{AuthSettings, client_address::TrustedProxies},
    feed::client_socket::SocketUpgrade,
    listen::{ConnectionLimits, serve},
};
use std::{future::Future, io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(20);

pub fn limits() -> ConnectionLimits {
    let long = DEADLINE * 2;
    ConnectionLimits {
        connections: 100,
        connections_per_address: 100,
        trusted_proxies: TrustedProxies::default(),
        handshakes: 100,
        header_read: long,
        write_stall: long,
        stop: long,
    }
}

struct Running {
    address: SocketAddr,
    cancel: CancellationToken,
    server: JoinHandle<()>,
}

#[expect(clippy::disallowed_methods, reason = "the test owns the handle and awaits it")]
async fn run(router: impl FnOnce(&CancellationToken) -> Router, limits: ConnectionLimits) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let server = tokio::spawn(serve(listener, None, router(&cancel), limits, cancel.clone()));
    Running { address, cancel, server }
}

fn sockets(clients: TcpListener) -> ServerSockets {
    ServerSockets { clients, host_tools: None }
}

async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, event).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

async fn request(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

async fn until(stream: &mut TcpStream, word: &str) -> String {
    let mut seen = Vec::new();
    soon(word, async {
        while !String::from_utf8_lossy(&seen).contains(word) {
            assert_ne!(
                stream.read_buf(&mut seen).await.unwrap(),
                0,
                "closed after {:?}",
                String::from_utf8_lossy(&seen)
            );
        }
    })
    .await;
    String::from_utf8_lossy(&seen).into_owned()
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut seen = Vec::new();
    // A reset also ends the stream.
    if let Err(error) = soon("the end", stream.read_to_end(&mut seen)).await {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
    seen
}

/// Sends one frame, then nothing until `cancel`. Sends a message on `dropped` when it is dropped.
fn quiet_stream(cancel: CancellationToken, dropped: mpsc::Sender<()>) -> Body {
    struct NotifyOnDrop(mpsc::Sender<()>);
    impl Drop for NotifyOnDrop {
        fn drop(&mut self) {
            self.0.try_send(()).unwrap_or_default();
        }
    }
    let notifier = NotifyOnDrop(dropped);
    Body::from_stream(stream::unfold((0, cancel, notifier), |(n, cancel, notifier)| async move {
        if n > 0 {
            cancel.cancelled().await;
            return None;
        }
        Some((Ok::<_, io::Error>(Bytes::from_static(b"first")), (n + 1, cancel, notifier)))
    }))
}

#[tokio::test]
async fn the_complete_server_answers_and_stops() {
    let test_app = TestApp::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server::serve(test_app.app.clone(), sockets(listener));
    let asking = async {
        let mut stream = request(address, "/healthz").await;
        let answer = until(&mut stream, "ok\"}").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("x-request-id"), "{answer}");
        let credential = format!("authorization: Bearer {LOCAL_KEY}");
        let head = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n{credential}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        until(&mut stream, "greenroom_http_connections").await;
        test_app.app.stopping.cancel();
        assert_eq!(rest(&mut stream).await.iter().filter(|b| **b == b'\0').count(), 0);
    };
    let (served, ()) = soon("the end", async { tokio::join!(serving, asking) }).await;
    served.unwrap();
}

#[tokio::test]
async fn a_public_address_without_authentication_is_refused() {
    let open = AuthSettings { no_auth: true, ..config().auth };
    let test_app = TestApp::with(HttpServerConfig { auth: open, ..config() });
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = soon("the refusal", server::serve(test_app.app.clone(), sockets(listener))).await.unwrap_err();
    assert!(refused.to_string().contains("--no-auth"), "{refused}");
}

#[tokio::test]
async fn a_large_body_is_answered_while_it_is_still_being_sent() {
    let test_app = TestApp::new();
    let running = run(|_| test_app.router.clone(), limits()).await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let length = 20 * 1024 * 1024;
    let head = format!(
        "POST /test/notes HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {LOCAL_KEY}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n",
        running.address
    );
    soon("the upload", async {
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; length]).await.unwrap();
    })
    .await;
    let answer = until(&mut stream, "payload_too_large").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");

    let mut expecting = TcpStream::connect(running.address).await.unwrap();
    let asking = head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    expecting.write_all(asking.as_bytes()).await.unwrap();
    let answer = until(&mut expecting, "payload_too_large").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "the client is not asked to send the body: {answer}");
}

#[tokio::test]
async fn stopping_lets_streams_that_watch_the_token_finish() {
    let (dropped, _keep) = mpsc::channel(1);
    let stream = |cancel: &CancellationToken| {
        let cancel = cancel.clone();
        Router::new().route("/", get(move || async move { quiet_stream(cancel.clone(), dropped.clone()) }))
    };
    let running = run(stream, limits()).await;
    let mut open = request(running.address, "/").await;
    until(&mut open, "first").await;
    let mut idle = TcpStream::connect(running.address).await.unwrap();
    running.cancel.cancel();
    assert!(rest(&mut open).await.ends_with(b"0\r\n\r\n"), "the stream ends properly");
    assert!(rest(&mut idle).await.is_empty());
    soon("the server's end", running.server).await.unwrap();
    assert!(TcpStream::connect(running.address).await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn a_websocket_keeps_its_permit_and_is_waited_for() {
    let talk = |cancel: &CancellationToken| {
        let cancel = cancel.clone();
        let upgrade = |upgrade: SocketUpgrade| async move {
            upgrade.serve(|mut socket| async move {
                socket.send(Bytes::from_static(b"hello")).await.unwrap();
                cancel.cancelled().await;
                socket.send(Bytes::from_static(b"goodbye")).await.unwrap();
            })
        };
        Router::new().route("/", get(upgrade))
    };
    let running = run(talk, ConnectionLimits { connections: 1, ..limits() }).await;
    let mut open = TcpStream::connect(running.address).await.unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        running.address
    );
    open.write_all(head.as_bytes()).await.unwrap();
    assert!(until(&mut open, "hello").await.starts_with("HTTP/1.1 101"));
    let second = request(running.address, "/").await;
    let early = tokio::time::timeout(Duration::from_millis(100), second.readable()).await;
    assert!(early.is_err(), "the only permit is taken");
    running.cancel.cancel();
    until(&mut open, "goodbye").await;
    soon("the server's end", running.server).await.unwrap();
}

#[tokio::test]
async fn stopping_aborts_a_stream_that_does_not_end() {
    let (dropped, mut was_dropped) = mpsc::channel(1);
    let silent = |_: &CancellationToken| {
        Router::new().route("/", get(move || async move { quiet_stream(CancellationToken::new(), dropped.clone()) }))
    };
    let running = run(silent, ConnectionLimits { stop: Duration::from_millis(50), ..limits() }).await;
    let mut open = request(running.address, "/").await;
    until(&mut open, "first").await;
    running.cancel.cancel();
    soon("the server's end", running.server).await.unwrap();
    soon("the stream's drop", was_dropped.recv()).await;
    rest(&mut open).await;
}

#[tokio::test]
async fn invariant_10_a_client_that_never_reads_is_disconnected() {
    let (dropped, mut was_dropped) = mpsc::channel(1);
    let flood = |_: &CancellationToken| {
        Router::new().route(
            "/",
            get(move || async move {
                struct NotifyOnDrop(mpsc::Sender<()>);
                impl Drop for NotifyOnDrop {
                    fn drop(&mut self) {
                        self.0.try_send(()).unwrap_or_default();
                    }
                }
                let block = Bytes::from(vec![b'x'; 64 * 1024]);
                let notifier = NotifyOnDrop(dropped.clone());
                Body::from_stream(stream::unfold((block, notifier), |(block, notifier)| async {
                    Some((Ok::<_, io::Error>(block.clone()), (block, notifier)))
                }))
            }),
        )
    };
    let running = run(flood, ConnectionLimits { write_stall: Duration::from_millis(300), ..limits() }).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut silent = socket.connect(running.address).await.unwrap();
    silent.write_all(format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", running.address).as_bytes()).await.unwrap();
    soon("the disconnect", was_dropped.recv()).await;
    running.cancel.cancel();
    soon("the server's end", running.server).await.unwrap();
}

#[tokio::test]
async fn a_connection_over_the_limit_waits_for_a_permit() {
    let test_app = TestApp::new();
    let running = run(|_| test_app.router.clone(), ConnectionLimits { connections: 1, ..limits() }).await;
    let mut first = request(running.address, "/healthz").await;
    until(&mut first, "ok\"}").await;
    let mut second = request(running.address, "/healthz").await;
    let early = tokio::time::timeout(Duration::from_millis(100), second.readable()).await;
    assert!(early.is_err(), "there is no free permit yet");
    drop(first);
    until(&mut second, "ok\"}").await;
}

#[tokio::test]
async fn a_slow_or_huge_request_head_is_refused() {
    let test_app = TestApp::new();
    let running =
        run(|_| test_app.router.clone(), ConnectionLimits { header_read: Duration::from_millis(50), ..limits() }).await;
    let mut slow = TcpStream::connect(running.address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nhost: ").await.unwrap();
    rest(&mut slow).await;
    let mut huge = TcpStream::connect(running.address).await.unwrap();
    let head = format!("GET / HTTP/1.1\r\nhost: {}\r\nx-long: {}\r\n\r\n", running.address, "y".repeat(40_000));
    huge.write_all(head.as_bytes()).await.unwrap();
    assert!(rest(&mut huge).await.starts_with(b"HTTP/1.1 431"));
}

#[tokio::test]
async fn l3_one_address_cannot_take_all_connections() {
    let running = run(|_| slow_routes(), ConnectionLimits { connections_per_address: 2, ..limits() }).await;
    let (mut first, _second) = (request(running.address, "/hold").await, request(running.address, "/hold").await);
    let mut third = request(running.address, "/hold").await;
    let refused = until(&mut third, "content-length").await;
    assert!(refused.contains("429") && refused.contains("connection: close"), "{refused}");
    first.shutdown().await.unwrap();
    drop(first);
    soon("a free place", async {
        loop {
            let mut next = request(running.address, "/now").await;
            if until(&mut next, "HTTP/1.1").await.contains("200") {
                break;
            }
        }
    })
    .await;
    running.cancel.cancel();
}

/// `/hold` never answers, `/now` does at once.
fn slow_routes() -> Router {
    let hold = || async { std::future::pending::<()>().await };
    Router::new().route("/hold", get(hold)).route("/now", get(|| async { "now" }))
}

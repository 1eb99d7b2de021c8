//! TLS on real sockets: handshakes that fail, are slow or never begin, and certificates that change.

use crate::sockets::limits;
use axum::{Router, routing::get};
use server::listen::{ConnectionLimits, EncryptedConnection, serve, tls::ServerTls};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use testkit::certificates::{TestCertificate, client_config};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(20);

struct TlsServer {
    address: SocketAddr,
    tls: ServerTls,
    cancel: CancellationToken,
    running: JoinSet<()>,
}

impl TlsServer {
    async fn start(certificate: &TestCertificate, limits: ConnectionLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tls = ServerTls::new(certificate.load(), false).unwrap();
        let router = Router::new().route(
            "/",
            get(|request: axum::extract::Request| async move {
                assert!(request.extensions().get::<EncryptedConnection>().is_some());
                "hello"
            }),
        );
        let (cancel, mut running) = (CancellationToken::new(), JoinSet::new());
        running.spawn(serve(listener, Some(tls.clone()), router, limits, cancel.clone()));
        Self { address, tls, cancel, running }
    }

    async fn connect(&self, trusted: &TestCertificate) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(client_config(&trusted.pem()));
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        soon("the handshake", connector.connect(name, stream)).await
    }

    async fn stop(mut self) {
        self.cancel.cancel();
        soon("the end of the server", self.running.join_next()).await.unwrap().unwrap();
    }
}

async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, event).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// The answer to one more request on this connection.
async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut seen = Vec::new();
    soon("the answer", async {
        while !seen.ends_with(b"hello") {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "closed after {seen:?}");
        }
    })
    .await;
    String::from_utf8(seen).unwrap()
}

/// Everything until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    // A reset is a close, too.
    drop(soon("the close", stream.read_to_end(&mut seen)).await);
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn m13_silent_handshakes_make_room_for_others() {
    let certificate = TestCertificate::generate();
    let server = TlsServer::start(&certificate, ConnectionLimits { handshakes: 3, ..limits() }).await;
    let mut silent = Vec::new();
    for number in 0..20 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Every other one begins a handshake and does not go on.
        if number % 2 == 1 {
            stream.write_all(&[22, 3, 1, 2, 0, 1, 0]).await.unwrap();
        }
        silent.push(stream);
    }
    let mut client = server.connect(&certificate).await.unwrap();
    assert!(ask(&mut client).await.starts_with("HTTP/1.1 200 OK"));
    for mut stream in silent.drain(..17) {
        rest(&mut stream).await;
    }
    assert!(ask(&mut client).await.starts_with("HTTP/1.1 200 OK"), "a served connection does not make room");
    drop(silent);
    server.stop().await;
}

#[tokio::test]
async fn m13_a_handshake_has_a_deadline() {
    let certificate = TestCertificate::generate();
    let short = ConnectionLimits { header_read: Duration::from_millis(200), ..limits() };
    let server = TlsServer::start(&certificate, short).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    server.stop().await;
}

#[tokio::test]
async fn m13_a_plain_request_is_told_to_use_https() {
    let certificate = TestCertificate::generate();
    let server = TlsServer::start(&certificate, limits()).await;
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET /api/rooms HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    plain.shutdown().await.unwrap();
    let answer = rest(&mut plain).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("https_required"), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["status"], 400);
    let mut noise = TcpStream::connect(server.address).await.unwrap();
    noise.write_all(&[0, 1, 2, 3]).await.unwrap();
    assert_eq!(rest(&mut noise).await, "", "what is no HTTP gets no answer");
    let mut client = server.connect(&certificate).await.unwrap();
    ask(&mut client).await;
    server.stop().await;
}

#[tokio::test]
async fn m13_a_replaced_certificate_is_for_new_connections() {
    let (old, new) = (TestCertificate::generate(), TestCertificate::generate());
    let server = TlsServer::start(&old, limits()).await;
    let mut open = server.connect(&old).await.unwrap();
    assert!(server.connect(&new).await.is_err(), "another certificate is not trusted");
    server.tls.replace(new.load());
    ask(&mut open).await;
    assert!(server.connect(&old).await.is_err());
    ask(&mut server.connect(&new).await.unwrap()).await;
    server.stop().await;
}

#[tokio::test]
async fn m13_an_idle_client_is_let_go_when_the_server_stops() {
    let certificate = TestCertificate::generate();
    let server = TlsServer::start(&certificate, limits()).await;
    let mut idle = server.connect(&certificate).await.unwrap();
    ask(&mut idle).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    server.stop().await;
    let mut after = Vec::new();
    assert_eq!(soon("the end", idle.read_to_end(&mut after)).await.unwrap(), 0, "closed as TLS wants it");
    drop((Arc::new(silent), after));
}

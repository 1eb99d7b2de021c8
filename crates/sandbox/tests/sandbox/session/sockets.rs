//! The network of a sandbox: loopback inside, listeners that are passed out, and connections into it.

use super::Session;
use sandbox::SandboxError;
use std::{io::ErrorKind, net::TcpStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn read_all(mut stream: tokio::net::TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_service_is_reached_inside_and_by_the_server_only() {
    let session = Session::open().await;
    let port = session.scene.on_loopback.local_addr().unwrap().port();
    let local = format!("127.0.0.1:{port}");
    // The same port is taken on the machine's own loopback, by a listener that answers nothing.
    let mut service = session.start(session.fixture(&["serve", &local, "from inside"])).await;
    assert_eq!(service.line().await, "ready");
    assert_eq!(session.capture(session.fixture(&["fetch", &local])).await.stdout.text(), "from inside\n");
    assert_eq!(read_all(session.sandbox.connect(port).await.unwrap()).await, "from inside");
    assert!(TcpStream::connect(&local).unwrap().set_nonblocking(true).is_ok(), "the machine's own listener is another");
}

#[tokio::test]
async fn a_service_on_the_other_address_of_localhost_is_reached_too() {
    let session = Session::open().await;
    let mut service = session.start(session.fixture(&["serve", "[::1]:4321", "six"])).await;
    assert_eq!(service.line().await, "ready");
    assert_eq!(read_all(session.sandbox.connect(4321).await.unwrap()).await, "six");
}

#[tokio::test]
async fn a_listener_inside_is_served_by_the_server() {
    let session = Session::open().await;
    let listener = session.sandbox.listen(8081).await.unwrap();
    let serve = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        connection.write_all(b"from the server").await.unwrap();
    };
    let (captured, ()) = tokio::join!(session.capture(session.fixture(&["fetch", "127.0.0.1:8081"])), serve);
    assert_eq!(captured.stdout.text(), "from the server\n");
    assert!(TcpStream::connect("127.0.0.1:8081").is_err(), "it is not on the machine's own loopback");
    let any = session.sandbox.listen(0).await.unwrap();
    assert_ne!(any.local_addr().unwrap().port(), 0);
    let taken = session.sandbox.listen(8081).await.unwrap_err();
    assert!(matches!(&taken, SandboxError::Port { source, .. } if source.kind() == ErrorKind::AddrInUse), "{taken}");
}

#[tokio::test]
async fn a_port_without_a_service_is_refused() {
    let session = Session::open().await;
    let refused = session.sandbox.connect(9).await.unwrap_err();
    let is_refused =
        matches!(&refused, SandboxError::Port { source, .. } if source.kind() == ErrorKind::ConnectionRefused);
    assert!(is_refused, "{refused}");
}

/// Connections to a service that accepts none wait in the kernel; the broker must not wait with them.
#[tokio::test]
async fn a_service_that_accepts_nothing_does_not_stop_the_broker() {
    let session = Session::open().await;
    let listener = session.sandbox.listen(8082).await.unwrap();
    let mut connections = Vec::new();
    for _ in 0..200 {
        let waiting = tokio::time::timeout(std::time::Duration::from_secs(1), session.sandbox.connect(8082));
        match waiting.await {
            Ok(connection) => connections.push(connection.unwrap()),
            Err(_) => break,
        }
    }
    assert!((100..200).contains(&connections.len()), "{} connections fill the queue", connections.len());
    assert_eq!(session.output("echo on").await, "on\n");
    drop(listener);
}

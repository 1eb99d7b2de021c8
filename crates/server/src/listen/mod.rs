//! The accept loop: accepts connections, serves HTTP/1 on them, with or without TLS, and shuts them down gracefully. It is
//! our own because streams last for days: they need small buffers, a bound on connections, a timeout for readers that do
//! not read, and a signal to end.
//!
//! It knows the router and nothing behind it.

mod by_address;
mod client_stream;
mod handshakes;
mod stall;
pub mod tls;

use crate::{HttpServerConfig, auth::client_address::TrustedProxies};
use axum::Router;
use by_address::{AddressConnections, AddressPermit, ConnectionUse, ResponseInProgress};
use client_stream::ClientStream;
use handshakes::OpenHandshakes;
use hyper::{StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use stall::StallTimeoutStream;
use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tls::ServerTls;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use tower::Service;

/// Both directions of a connection share this; an idle stream holds about half of it.
const BUFFER_BYTES: usize = 16 * 1024;

const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// How many TLS handshakes may be unfinished at the same time.
const MAX_HANDSHAKES: usize = 1024;

/// Pauses after a failed accept. Without free file descriptors it fails until a connection is closed.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long aborted connections may take to end after the stop deadline.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// The two addresses of the connection that a request came in on. Stored in the request's extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionAddrs {
    pub remote: SocketAddr,
    pub local: SocketAddr,
}

/// Present in the extensions of requests that came by TLS of this server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncryptedConnection;

#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    pub connections: usize,
    pub connections_per_address: usize,
    /// Proxies, which have the connections of many clients.
    pub trusted_proxies: TrustedProxies,
    /// How many TLS handshakes may be unfinished; the oldest one makes room.
    pub handshakes: usize,
    /// How long the head of a request may take, and a TLS handshake before the first.
    pub header_read: Duration,
    pub write_stall: Duration,
    /// How long open connections may take to end after cancellation.
    pub stop: Duration,
}

impl From<&HttpServerConfig> for ConnectionLimits {
    fn from(config: &HttpServerConfig) -> Self {
        Self {
            connections: config.max_connections,
            connections_per_address: config.max_connections_per_address,
            trusted_proxies: config.trusted_proxies.clone(),
            handshakes: MAX_HANDSHAKES,
            header_read: config.header_read_timeout,
            write_stall: config.write_stall,
            stop: config.stop_deadline,
        }
    }
}

/// Counts a connection against the limit. Owned by the socket's wrapper, so that a WebSocket, which outlives its HTTP
/// connection, holds it until it closes.
struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _of_address: AddressPermit,
    _tracked: TaskTrackerToken,
}

impl ConnectionPermit {
    fn new(permit: OwnedSemaphorePermit, of_address: AddressPermit, tracked: TaskTrackerToken) -> Self {
        metrics::gauge!(crate::metrics::CONNECTIONS).increment(1);
        Self { _permit: permit, _of_address: of_address, _tracked: tracked }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        metrics::gauge!(crate::metrics::CONNECTIONS).decrement(1);
    }
}

/// Serves until cancelled and then for at most `limits.stop`. Streams must watch the same token: nothing else ends
/// them.
pub async fn serve(
    listener: TcpListener,
    tls: Option<ServerTls>,
    router: Router,
    limits: ConnectionLimits,
    cancel: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_read).max_buf_size(BUFFER_BYTES);
    let permits = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let by_address = AddressConnections::new(limits.connections_per_address, limits.trusted_proxies);
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let handshakes = OpenHandshakes::new(limits.handshakes);

    while let Some((permit, stream, remote)) = accept_next(&listener, &permits, &cancel).await {
        let Some((of_address, in_use)) = by_address.admit(remote.ip()) else {
            refuse(&stream);
            continue;
        };
        let permit = ConnectionPermit::new(permit, of_address, connections.token());
        let prepared = prepare(&stream, limits.write_stall).and_then(|()| stream.local_addr());
        // The client may already have disconnected.
        let Ok(local) = prepared else { continue };
        let accepted = AcceptedConnection { peer: ConnectionAddrs { remote, local }, in_use };
        let (http, router, cancel, abort) = (http.clone(), router.clone(), cancel.clone(), abort.clone());
        let wrap = move |stream| StallTimeoutStream::new(stream, limits.write_stall, permit);
        let Some(tls) = tls.clone() else {
            connections.spawn(connection(http, ClientStream::Plain(wrap(stream)), accepted, router, cancel, abort));
            continue;
        };
        let handshake = handshakes.begin(remote.ip());
        connections.spawn(async move {
            // In a box of its own, which is gone when the connection is served.
            let encrypted = Box::pin(async {
                tokio::select! {
                    encrypted = tokio::time::timeout(limits.header_read, tls.accept(stream, wrap)) => encrypted.ok(),
                    () = handshake.closed() => None,
                    () = cancel.cancelled() => None,
                }
            });
            match encrypted.await {
                Some(Ok(Some(stream))) => {
                    drop(handshake);
                    connection(http, ClientStream::Tls(Box::new(stream)), accepted, router, cancel, abort).await;
                }
                Some(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Some(Ok(None)) | None => tracing::debug!("a connection ended without a TLS handshake"),
            }
        });
    }

    drop(listener);
    connections.close();
    if tokio::time::timeout(limits.stop, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "closing connections that did not end in time");
        abort.cancel();
        if tokio::time::timeout(ABORT_GRACE, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "upgraded connections did not end before the deadline");
        }
    }
}

/// Waits for a permit, then for a connection. Returns `None` once cancelled; no error ends the loop.
async fn accept_next(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    cancel: &CancellationToken,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let arrival = async {
        // The semaphore is never closed, so this does not fail.
        let permit = Arc::clone(permits).acquire_owned().await.ok()?;
        let mut pause = FIRST_PAUSE;
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => return Some((permit, stream, remote)),
                Err(error) if concerns_one_connection(&error) => {
                    tracing::debug!(%error, "a connection was closed before it was accepted");
                }
                Err(error) => {
                    tracing::error!(%error, "could not accept a connection; retrying");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        arrived = arrival => arrived,
    }
}

/// Answers a connection of an address that has too many. One attempt: the server must not wait for such a client.
fn refuse(stream: &TcpStream) {
    const RESPONSE: &[u8] =
        b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    metrics::counter!(crate::metrics::CONNECTIONS_REFUSED).increment(1);
    if let Err(error) = stream.try_write(RESPONSE) {
        tracing::debug!(%error, "a refused connection was closed without a response");
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
fn prepare(stream: &TcpStream, stall: Duration) -> io::Result<()> {
    // Tokens are small writes; Nagle's algorithm would delay every one of them.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE / 4))?;
    // A vanished client acknowledges nothing, and heartbeats alone would take hours to fill the send buffer.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(stall))?;
    Ok(())
}

struct AcceptedConnection {
    peer: ConnectionAddrs,
    in_use: Arc<ConnectionUse>,
}

async fn connection(
    http: http1::Builder,
    stream: ClientStream,
    AcceptedConnection { peer, in_use }: AcceptedConnection,
    router: Router,
    cancel: CancellationToken,
    abort: CancellationToken,
) {
    let is_encrypted = stream.is_encrypted();
    in_use.can_be_closed();
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        if is_encrypted {
            request.extensions_mut().insert(EncryptedConnection);
        }
        let in_progress = in_use.begin_request();
        let response = router.clone().call(request);
        async move {
            let response = response.await?;
            let request = match response.status() {
                StatusCode::SWITCHING_PROTOCOLS => {
                    in_progress.upgraded();
                    None
                }
                _ => Some(in_progress),
            };
            Ok::<_, Infallible>(response.map(|body| ResponseInProgress { body, _request: request }))
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let closed = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = in_use.closed() => {}
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closed => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = abort.cancelled() => return,
            }
        }
    };
    // A client that disconnects is not a server failure.
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use super::connection;
    use crate::feed::size_of_result;

    #[test]
    fn an_idle_connection_takes_less_than_3_kib() {
        let size = size_of_result(|(http, stream, accepted, router, cancel, abort)| {
            connection(http, stream, accepted, router, cancel, abort)
        });
        assert!(size < 3 * 1024, "{size} bytes; box what runs rarely");
    }
}

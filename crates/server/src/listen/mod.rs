//! The sockets: accept, hand to HTTP/1, and end in good order. Our own loop because a stream may last for days: it needs
//! small buffers, a bound on connections and on readers that take nothing, and a signal to end.
//!
//! It knows a router and nothing of what is behind it.

mod stall;

use crate::Config;
use axum::Router;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use stall::Guarded;
use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
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

/// How long a failed accept is waited for. Out of descriptors, it fails until something is closed.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// After the deadline: how long dropped connections get to be gone.
const LAST_CALL: Duration = Duration::from_secs(1);

/// The two ends of the connection a request came in on; found in its extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub remote: SocketAddr,
    pub local: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    pub header_read: Duration,
    pub write_stall: Duration,
    /// How long what is open gets to end after the cancel.
    pub stop: Duration,
}

impl From<&Config> for Limits {
    fn from(config: &Config) -> Self {
        Self {
            connections: config.max_connections,
            header_read: config.header_read_timeout,
            write_stall: config.write_stall,
            stop: config.stop_deadline,
        }
    }
}

/// A connection's place among the allowed number. It lies in the socket's wrapper, so that a WebSocket, which outlives
/// its HTTP connection, keeps it until its own end.
struct Place {
    _permit: OwnedSemaphorePermit,
    _tracked: TaskTrackerToken,
}

impl Place {
    fn take(permit: OwnedSemaphorePermit, tracked: TaskTrackerToken) -> Self {
        metrics::gauge!(crate::metrics::CONNECTIONS).increment(1);
        Self { _permit: permit, _tracked: tracked }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        metrics::gauge!(crate::metrics::CONNECTIONS).decrement(1);
    }
}

/// Serves until cancelled and then for at most `limits.stop`. Streams must watch the same token: nobody else ends them.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, cancel: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_read).max_buf_size(BUFFER_BYTES);
    let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();

    while let Some((permit, stream, remote)) = next(&listener, &places, &cancel).await {
        let place = Place::take(permit, connections.token());
        let prepared = prepare(&stream, limits.write_stall).and_then(|()| stream.local_addr());
        // The peer may be gone before we look at it.
        let Ok(local) = prepared else { continue };
        let io = TokioIo::new(Guarded::new(stream, limits.write_stall, place));
        let peer = Peer { remote, local };
        connections.spawn(connection(http.clone(), io, peer, router.clone(), cancel.clone(), abort.clone()));
    }

    drop(listener);
    connections.close();
    if tokio::time::timeout(limits.stop, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "closing connections that did not end in time");
        abort.cancel();
        if tokio::time::timeout(LAST_CALL, connections.wait()).await.is_err() {
            tracing::warn!(connections = connections.len(), "leaving upgraded connections to the end of the process");
        }
    }
}

/// The next connection there is a place for; `None` once cancelled. No error ends the loop.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    cancel: &CancellationToken,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let arrival = async {
        // Never closed, so there is no error to meet.
        let permit = Arc::clone(places).acquire_owned().await.ok()?;
        let mut pause = FIRST_PAUSE;
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => return Some((permit, stream, remote)),
                Err(error) if concerns_one_connection(&error) => tracing::debug!(%error, "a connection was gone"),
                Err(error) => {
                    tracing::error!(%error, "cannot accept connections; trying again");
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

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
fn prepare(stream: &TcpStream, stall: Duration) -> io::Result<()> {
    // A token is one small write; waiting to fill a packet would hold back every one of them.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE / 4))?;
    // A vanished reader acknowledges nothing, but heartbeats alone would take hours to fill its buffer.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(stall))?;
    Ok(())
}

async fn connection(
    http: http1::Builder,
    io: TokioIo<Guarded<Place>>,
    peer: Peer,
    router: Router,
    cancel: CancellationToken,
    abort: CancellationToken,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.clone().call(request)
    });
    let mut connection = pin!(http.serve_connection(io, service).with_upgrades());
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = cancel.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = abort.cancelled() => return,
            }
        }
    };
    // A client that leaves is no failure of ours.
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

//! Connections by client address: one address cannot take all of them. At its limit a new connection takes the place of the
//! one that has been idle for longest, so that clients behind one address do not lock each other out with connections that
//! nobody uses. A trusted proxy is exempt, because its connections are those of many clients.

use crate::auth::{client_address::TrustedProxies, rate_limit::network_of};
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Instant,
};
use tokio::sync::Notify;

pub(super) struct AddressConnections {
    max: usize,
    exempt: TrustedProxies,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    /// Counts all connections ever opened.
    next: u64,
    by_network: HashMap<IpAddr, BTreeMap<u64, Arc<ConnectionUse>>>,
}

/// A connection of an address; `None` for an exempt one.
pub(super) struct AddressPermit(Option<(IpAddr, u64, Arc<AddressConnections>)>);

/// Whether a connection has a request in progress.
pub(super) struct ConnectionUse {
    state: Mutex<UseState>,
    close: Notify,
}

struct UseState {
    /// One too many until the connection can be closed, and from an upgrade on.
    requests: usize,
    /// When `requests` last changed.
    changed: Instant,
}

impl AddressConnections {
    pub(super) fn new(max: usize, exempt: TrustedProxies) -> Arc<Self> {
        Arc::new(Self { max, exempt, open: Mutex::default() })
    }

    /// `None` if the address has too many connections, and all of them are in use.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<(AddressPermit, Arc<ConnectionUse>)> {
        let connection = Arc::new(ConnectionUse {
            state: Mutex::new(UseState { requests: 1, changed: Instant::now() }),
            close: Notify::new(),
        });
        if self.exempt.contains(address) {
            return Some((AddressPermit(None), connection));
        }
        let network = network_of(address);
        let mut open = self.lock();
        let number = open.next;
        let of_network = open.by_network.entry(network).or_default();
        if of_network.len() >= self.max {
            let idle = of_network.iter().filter_map(|(number, connection)| Some((connection.idle_since()?, *number)));
            let (_, longest) = idle.min()?;
            of_network.remove(&longest)?.close.notify_one();
        }
        of_network.insert(number, Arc::clone(&connection));
        open.next += 1;
        Some((AddressPermit(Some((network, number, Arc::clone(self)))), connection))
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        // Maps, which no panic can leave inconsistent.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let Some((network, number, connections)) = self.0.take() else { return };
        let mut open = connections.lock();
        if let Some(of_network) = open.by_network.get_mut(&network) {
            of_network.remove(&number);
            if of_network.is_empty() {
                open.by_network.remove(&network);
            }
        }
    }
}

impl ConnectionUse {
    /// From now on the connection waits for [`Self::closed`], and may be closed when it is idle.
    pub(super) fn can_be_closed(&self) {
        self.end_request();
    }

    /// Resolves when the connection has to make room for another one.
    pub(super) async fn closed(&self) {
        self.close.notified().await;
    }

    pub(super) fn begin_request(self: &Arc<Self>) -> RequestInProgress {
        self.change(|requests| requests + 1);
        RequestInProgress(Arc::clone(self))
    }

    fn end_request(&self) {
        self.change(|requests| requests.saturating_sub(1));
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.lock();
        *state = UseState { requests: change(state.requests), changed: Instant::now() };
    }

    fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (state.requests == 0).then_some(state.changed)
    }

    fn lock(&self) -> MutexGuard<'_, UseState> {
        // A counter, which no panic can leave inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct RequestInProgress(Arc<ConnectionUse>);

impl RequestInProgress {
    /// The connection is no longer HTTP, and in use until it ends.
    pub(super) fn upgraded(self) {
        self.0.change(|requests| requests + 1);
    }
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// The body of a response. Its request is in progress until all of it is sent.
pub(super) struct ResponseInProgress {
    pub(super) body: Body,
    pub(super) _request: Option<RequestInProgress>,
}

impl HttpBody for ResponseInProgress {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::AddressConnections;
    use crate::auth::client_address::{AddressRange, TrustedProxies};

    #[test]
    fn l3_one_address_has_a_limited_number_of_connections() {
        let proxy = TrustedProxies(vec![AddressRange::parse("10.0.0.1").unwrap()]);
        let connections = AddressConnections::new(2, proxy);
        let admit = |address: &str| connections.admit(address.parse().unwrap());
        let (first, second) = (admit("192.0.2.1").unwrap(), admit("192.0.2.1").unwrap());
        assert!(admit("192.0.2.1").is_none() && admit("::ffff:192.0.2.1").is_none());
        let other = admit("192.0.2.2").unwrap();
        let network = [admit("2001:db8::1").unwrap(), admit("2001:db8::2").unwrap()];
        assert!(admit("2001:db8::3").is_none(), "one customer has a whole /64");
        drop(first);
        assert!(admit("192.0.2.1").is_some());
        assert!((0..9).map(|_| admit("10.0.0.1")).collect::<Vec<_>>().iter().all(Option::is_some), "a trusted proxy");
        drop((second, other, network));
        assert!(connections.lock().by_network.is_empty());
    }

    #[tokio::test]
    async fn l3_at_the_limit_the_longest_idle_connection_makes_room() {
        let connections = AddressConnections::new(3, TrustedProxies::default());
        let admit = || connections.admit([192, 0, 2, 1].into());
        let [begins, first, second] = [admit().unwrap(), admit().unwrap(), admit().unwrap()];
        assert!(admit().is_none(), "none of them can be closed yet");
        second.1.can_be_closed();
        first.1.can_be_closed();
        let request = second.1.begin_request();
        let third = admit().unwrap();
        first.1.closed().await;
        assert!(admit().is_none(), "one has a request in progress, two have not begun");
        drop(request);
        let fourth = admit().unwrap();
        second.1.closed().await;
        // An upgrade ends the request, but not the use of the connection.
        fourth.1.can_be_closed();
        fourth.1.begin_request().upgraded();
        drop((first, second));
        assert!(admit().is_none(), "a closed connection gives its place once");
        drop((begins, third, fourth));
        assert!(connections.lock().by_network.is_empty());
    }
}

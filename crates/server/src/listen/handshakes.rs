//! The TLS handshakes that have not ended. When there are too many, of one address or of all, the oldest of them is closed:
//! a client that means it is done within moments, so clients that stay silent make room for it. One address alone cannot make
//! others give way.

use crate::auth::rate_limit::network_of;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// A single address may have at most this fraction of all handshakes.
const ADDRESS_SHARE: usize = 8;

#[derive(Clone)]
pub(super) struct OpenHandshakes {
    limit: usize,
    limit_per_address: usize,
    open: Arc<Mutex<HandshakeTable>>,
}

#[derive(Default)]
struct HandshakeTable {
    begun: u64,
    /// By number, so the first is the oldest.
    by_number: BTreeMap<u64, TableEntry>,
}

struct TableEntry {
    /// An IPv6 address by its network.
    address: IpAddr,
    closed: CancellationToken,
}

/// A handshake in progress, until it is dropped.
pub(super) struct OpenHandshake {
    all: OpenHandshakes,
    number: u64,
    closed: CancellationToken,
}

impl OpenHandshakes {
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self { limit, limit_per_address: limit.div_ceil(ADDRESS_SHARE), open: Arc::default() }
    }

    pub(super) fn begin(&self, address: IpAddr) -> OpenHandshake {
        let (address, closed) = (network_of(address), CancellationToken::new());
        let mut table = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let number = table.begun;
        table.begun += 1;
        table.by_number.insert(number, TableEntry { address, closed: closed.clone() });
        let mut own = table.by_number.iter().filter(|(_, entry)| entry.address == address).map(|(number, _)| *number);
        let oldest = match own.next() {
            Some(oldest) if own.count() >= self.limit_per_address => Some(oldest),
            _ if table.by_number.len() > self.limit => table.by_number.keys().next().copied(),
            _ => None,
        };
        if let Some(entry) = oldest.and_then(|oldest| table.by_number.remove(&oldest)) {
            entry.closed.cancel();
        }
        drop(table);
        OpenHandshake { all: self.clone(), number, closed }
    }
}

impl OpenHandshake {
    /// Waits until this handshake has to make room for others.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

impl Drop for OpenHandshake {
    fn drop(&mut self) {
        self.all.open.lock().unwrap_or_else(PoisonError::into_inner).by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::{ADDRESS_SHARE, OpenHandshakes};

    fn is_closed(handshake: &super::OpenHandshake) -> bool {
        handshake.closed.is_cancelled()
    }

    #[test]
    fn the_oldest_handshake_makes_room() {
        let all = OpenHandshakes::new(2);
        let begin = |last: u8| all.begin([192, 0, 2, last].into());
        let (first, second) = (begin(1), begin(2));
        assert!(!is_closed(&first) && !is_closed(&second));
        let third = begin(3);
        assert!(is_closed(&first) && !is_closed(&second) && !is_closed(&third));
        drop((first, second));
        let fourth = begin(4);
        assert!(!is_closed(&third) && !is_closed(&fourth), "what has ended takes no room");
        assert_eq!(all.open.lock().unwrap().by_number.len(), 2);
    }

    #[test]
    fn m13_handshakes_of_one_address_close_only_its_own() {
        let all = OpenHandshakes::new(8 * ADDRESS_SHARE);
        let honest = all.begin([192, 0, 2, 1].into());
        let silent: Vec<_> = (0..100).map(|_| all.begin([203, 0, 113, 9].into())).collect();
        assert!(!is_closed(&honest), "it is the oldest, and another address has too many");
        assert_eq!(silent.iter().filter(|handshake| !is_closed(handshake)).count(), 8);
        let network = |last: u16| all.begin([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into());
        let one: Vec<_> = (0..20).map(network).collect();
        assert_eq!(one.iter().filter(|handshake| !is_closed(handshake)).count(), 8, "one customer has a whole /64");
    }
}

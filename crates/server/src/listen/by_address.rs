//! Connections by client address: one address cannot take all of them. A trusted proxy is exempt, because its connections
//! are those of many clients.

use crate::auth::{client_address::TrustedProxies, rate_limit::network_of};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub(super) struct AddressConnections {
    max: usize,
    exempt: TrustedProxies,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection of an address; `None` for an exempt one.
pub(super) struct AddressPermit(Option<(IpAddr, Arc<AddressConnections>)>);

impl AddressConnections {
    pub(super) fn new(max: usize, exempt: TrustedProxies) -> Arc<Self> {
        Arc::new(Self { max, exempt, open: Mutex::default() })
    }

    /// `None` if the address has too many connections.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<AddressPermit> {
        if self.exempt.contains(address) {
            return Some(AddressPermit(None));
        }
        let network = network_of(address);
        let mut open = self.lock();
        let count = open.entry(network).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(AddressPermit(Some((network, Arc::clone(self)))))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // A map of counters, which no panic can leave inconsistent.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let Some((network, connections)) = self.0.take() else { return };
        let mut open = connections.lock();
        if let Some(count) = open.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                open.remove(&network);
            }
        }
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
        assert!(connections.lock().is_empty());
    }
}

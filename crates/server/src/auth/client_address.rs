//! The address of the client of a request. Behind a proxy it is in a header, which is believed only if a trusted proxy sent
//! the request: anybody else can write what they like into it.

use axum::http::{HeaderMap, HeaderName, header};
use std::net::{IpAddr, Ipv6Addr};

/// The address that a request came from, as far as it can be believed. Stored in the request's extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientAddress(pub IpAddr);

/// The headers of a trusted proxy, of this address, name two clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardingConflict(pub IpAddr);

/// An address, or a network such as `10.0.0.0/8`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// A chain of proxies is short; a longer header is somebody's attempt to keep us busy.
const MAX_HOPS: usize = 32;

impl AddressRange {
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.trim().parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            // `+8` is a number to Rust.
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => prefix.parse().ok()?,
            Some(_) => return None,
            None => bits,
        };
        (prefix <= bits).then_some(Self { address, prefix })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let keep = |bits: u32, prefix: u32| u128::MAX.checked_shl(bits - prefix).unwrap_or(0);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u128::from(own.to_bits()) ^ u128::from(other.to_bits())) & keep(32, self.prefix.into()) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()) & keep(128, self.prefix.into()) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TrustedProxies(pub Vec<AddressRange>);

impl TrustedProxies {
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }

    /// The nearest address in the chain that is not a trusted proxy. `X-Forwarded-For` and `Forwarded` must agree if both
    /// are there: a proxy that sets one of them passes the other on as the client wrote it, and to believe neither would
    /// hide who the client is.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> Result<ClientAddress, ForwardingConflict> {
        let peer = peer.to_canonical();
        if !self.contains(peer) {
            return Ok(ClientAddress(peer));
        }
        let by = |name: HeaderName, parse: fn(&str) -> Option<IpAddr>| {
            headers.contains_key(&name).then(|| self.nearest(peer, headers, &name, parse))
        };
        match (by(X_FORWARDED_FOR, hop), by(header::FORWARDED, forwarded_hop)) {
            (Some(one), Some(other)) if one != other => Err(ForwardingConflict(peer)),
            (Some(client), _) | (None, Some(client)) => Ok(ClientAddress(client)),
            (None, None) => Ok(ClientAddress(peer)),
        }
    }

    fn nearest(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        name: &HeaderName,
        parse: fn(&str) -> Option<IpAddr>,
    ) -> IpAddr {
        let lines: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let mut client = peer;
        for text in lines.iter().rev().flat_map(|line| line.rsplit(',')).take(MAX_HOPS) {
            // What cannot be read hides everything before it.
            let Some(address) = parse(text.trim()) else { break };
            client = address.to_canonical();
            if !self.contains(client) {
                break;
            }
        }
        client
    }
}

/// An address with or without a port.
fn hop(text: &str) -> Option<IpAddr> {
    if let Some((inside, _)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return inside.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let parsed = text.parse().ok();
    parsed.or_else(|| text.rsplit_once(':').and_then(|(address, _)| address.parse().ok()))
}

/// The `for=` of an element of `Forwarded` (RFC 7239).
fn forwarded_hop(element: &str) -> Option<IpAddr> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| hop(value.trim().trim_matches('"'))).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, TrustedProxies};
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    fn trusted(ranges: &[&str]) -> TrustedProxies {
        TrustedProxies(ranges.iter().map(|range| AddressRange::parse(range).unwrap()).collect())
    }

    fn client(proxies: &TrustedProxies, peer: &str, headers: &[(&'static str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        let client = proxies.client(peer.parse().unwrap(), &map);
        client.map_or_else(|conflict| format!("conflict at {}", conflict.0), |client| client.0.to_string())
    }

    #[test]
    fn l2_only_a_trusted_proxy_says_who_the_client_is() {
        let none = TrustedProxies::default();
        let proxies = trusted(&["10.0.0.0/8", "::1"]);
        let spoofed = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=203.0.113.9")];
        assert_eq!(client(&none, "127.0.0.1", &spoofed), "127.0.0.1");
        assert_eq!(client(&proxies, "192.0.2.1", &spoofed), "192.0.2.1", "an untrusted peer");
        assert_eq!(client(&proxies, "10.1.2.3", &spoofed), "203.0.113.9");
        assert_eq!(client(&proxies, "::ffff:10.1.2.3", &spoofed), "203.0.113.9");
        assert_eq!(client(&proxies, "10.1.2.3", &[]), "10.1.2.3");
    }

    #[test]
    fn l2_the_nearest_hop_that_is_not_trusted_counts() {
        let proxies = trusted(&["10.0.0.0/8"]);
        let at = |headers: &[(&'static str, &str)]| client(&proxies, "10.0.0.1", headers);
        assert_eq!(at(&[("x-forwarded-for", "1.1.1.1, 203.0.113.9, 10.0.0.2")]), "203.0.113.9");
        assert_eq!(at(&[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.9")]), "203.0.113.9");
        assert_eq!(at(&[("x-forwarded-for", "10.0.0.3, 10.0.0.2")]), "10.0.0.3", "only proxies");
        assert_eq!(at(&[("x-forwarded-for", "1.1.1.1, unknown")]), "10.0.0.1", "what cannot be read");
        assert_eq!(at(&[("x-forwarded-for", "203.0.113.9:1234")]), "203.0.113.9");
        assert_eq!(at(&[("forwarded", "for=1.1.1.1, for=\"[2001:db8::1]:80\";proto=https")]), "2001:db8::1");
        let both = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=1.1.1.1")];
        assert_eq!(at(&both), "conflict at 10.0.0.1", "one of them is the client's own");
        let same = [("x-forwarded-for", "203.0.113.9, 10.0.0.2"), ("forwarded", "for=1.1.1.1, for=203.0.113.9")];
        assert_eq!(at(&same), "203.0.113.9", "the same client by both");
        let unreadable = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=_hidden")];
        assert_eq!(at(&unreadable), "conflict at 10.0.0.1");
        assert_eq!(client(&proxies, "192.0.2.1", &both), "192.0.2.1", "not by a proxy that is trusted: neither counts");
    }

    #[test]
    fn ranges_are_parsed_strictly() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "10.0.0.0/", "proxy", "10.0.0.0/8/8"] {
            assert_eq!(AddressRange::parse(wrong), None, "{wrong}");
        }
        assert!(trusted(&["0.0.0.0/0"]).contains("203.0.113.9".parse().unwrap()));
        assert!(!trusted(&["0.0.0.0/0"]).contains("::1".parse().unwrap()));
        assert!(trusted(&["2001:db8::/32"]).contains("2001:db8:1::2".parse().unwrap()));
        assert!(!trusted(&["192.0.2.0/31"]).contains("192.0.2.2".parse().unwrap()));
    }
}

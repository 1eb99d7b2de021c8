//! Which addresses the servers of people other than the operator may be at. Without a rule, a user of this server could
//! let it connect to what only the server can reach: itself, its network, the metadata service of its cloud.
//!
//! The check is made on the address that is connected to: [`EgressResolver`] gives the HTTP client only addresses that
//! passed, so a name that resolves differently the next time gains nothing. An address in the URL itself is not
//! resolved; [`EgressPolicy::check_url`] checks it.

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::{
    error::Error,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

/// What other people than the operator may reach besides public addresses: the setting `mcp.egress_allow`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EgressPolicy {
    pub allow: Vec<EgressRule>,
}

/// One entry of `mcp.egress_allow`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EgressRule {
    /// An address, or a network such as `10.1.0.0/16`.
    Network { address: IpAddr, prefix: u8 },
    /// A host name: whatever it resolves to may be reached.
    Host(String),
}

/// A connection that the policy refuses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{host} is at a {kind} address, which only servers of the operator may use; the operator can allow it with \
     mcp.egress_allow in the configuration"
)]
pub struct EgressRefused {
    pub host: String,
    /// The rule that refuses the address.
    pub kind: &'static str,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not an address, a network such as 10.0.0.0/8, or a host name")]
pub struct InvalidEgressRule;

impl FromStr for EgressRule {
    type Err = InvalidEgressRule;

    fn from_str(text: &str) -> Result<Self, InvalidEgressRule> {
        let text = text.trim();
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        match address.parse::<IpAddr>() {
            Ok(address) => {
                let max = if address.is_ipv4() { 32 } else { 128 };
                let prefix = prefix.map_or(Ok(max), str::parse).map_err(|_| InvalidEgressRule)?;
                if prefix > max { Err(InvalidEgressRule) } else { Ok(Self::Network { address, prefix }) }
            }
            Err(_) => {
                let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
                let is_host = (1..=253).contains(&text.len()) && text.chars().all(letter);
                // A text of digits and dots is a mistyped address.
                let is_name = text.chars().any(|c| c.is_ascii_alphabetic());
                if is_host && is_name { Ok(Self::Host(normal_host(text))) } else { Err(InvalidEgressRule) }
            }
        }
    }
}

impl EgressRule {
    fn allows(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::Host(name) => *name == normal_host(host),
            Self::Network { address: network, prefix } => match (network, address) {
                (IpAddr::V4(network), IpAddr::V4(address)) => {
                    same_prefix(u128::from(network.to_bits()) << 96, u128::from(address.to_bits()) << 96, *prefix)
                }
                (IpAddr::V6(network), IpAddr::V6(address)) => {
                    same_prefix(network.to_bits(), address.to_bits(), *prefix)
                }
                _ => false,
            },
        }
    }
}

fn same_prefix(one: u128, other: u128, prefix: u8) -> bool {
    prefix == 0 || (one ^ other) >> (128 - u32::from(prefix)) == 0
}

/// Lower case, without the dot at the end of a fully qualified name.
fn normal_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

impl EgressPolicy {
    /// Checks an address that a host name resolved to, or that is the host itself.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), EgressRefused> {
        // An IPv4 address in another form is reached as the IPv4 address.
        let address = embedded_v4(address).map_or(address, IpAddr::V4);
        match refused_kind(address) {
            Some(kind) if !self.allow.iter().any(|rule| rule.allows(host, address)) => {
                Err(EgressRefused { host: host.to_owned(), kind })
            }
            _ => Ok(()),
        }
    }

    /// Checks the address in a URL, in any spelling. A URL with a host name passes: its addresses are checked when it is
    /// resolved.
    pub fn check_url(&self, url: &str) -> Result<(), EgressRefused> {
        // An invalid URL is never connected to. The parser is that of the HTTP client, so both see the same host.
        let Ok(url) = Url::parse(url) else { return Ok(()) };
        let Some(host) = url.host_str() else { return Ok(()) };
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(host, address),
            Err(_) => Ok(()),
        }
    }
}

/// The IPv4 address inside of a mapped, compatible, NAT64 or 6to4 address.
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let low = |[high, low]: [u16; 2]| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0xffff | 0, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => Some(low([a, b])),
        _ => None,
    }
}

/// Returns why an address is not a public one.
fn refused_kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => refused_v4(address),
        IpAddr::V6(address) => refused_v6(address),
    }
}

fn refused_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Some("loopback"),
        (169, 254, _) => Some("link-local or metadata"),
        _ if address.is_private() => Some("private"),
        (100, 64..=127, _) => Some("carrier-grade NAT"),
        (0, ..) => Some("unspecified"),
        (224..=239, ..) => Some("multicast"),
        (240.., ..) | (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            Some("reserved")
        }
        _ => None,
    }
}

fn refused_v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfc00..=0xfdff, ..] => Some("unique-local"),
        [0xfec0..=0xfeff, ..] => Some("site-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        // Translated by a gateway of the network to an address that cannot be told here.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0, ..] => Some("translated"),
        [0x2001, 0xdb8, ..] | [0x100, 0, 0, 0, ..] | [0x3fff, 0..=0x0fff, ..] | [0x5f00, ..] => Some("reserved"),
        _ => None,
    }
}

/// Resolves host names with the system's resolver, and returns only addresses that the policy allows.
#[derive(Clone, Debug)]
pub struct EgressResolver(pub Arc<EgressPolicy>);

impl Resolve for EgressResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in found {
                match policy.check(&host, address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(refused) if allowed.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// Finds the refusal among the causes of an error of the HTTP client.
pub fn refusal_in(error: &(dyn Error + 'static)) -> Option<EgressRefused> {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        let boxed = inner.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let refused = boxed.and_then(|inner| inner.downcast_ref()).or_else(|| inner.downcast_ref::<EgressRefused>());
        if let Some(refused) = refused {
            return Some(refused.clone());
        }
        cause = inner.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{EgressPolicy, EgressRule};

    fn kind(url: &str) -> Option<&'static str> {
        EgressPolicy::default().check_url(url).err().map(|refused| refused.kind)
    }

    #[test]
    fn m1_addresses_that_are_not_public_are_refused_in_every_spelling() {
        for (host, expected) in [
            ("127.0.0.1", "loopback"),
            ("127.1", "loopback"),
            ("2130706433", "loopback"),
            ("0x7f000001", "loopback"),
            ("0177.0.0.1", "loopback"),
            ("0x7f.1", "loopback"),
            ("[::1]", "loopback"),
            ("[0:0:0:0:0:0:0:1]", "loopback"),
            ("[::ffff:127.0.0.1]", "loopback"),
            ("[::ffff:7f00:1]", "loopback"),
            ("[::127.0.0.1]", "loopback"),
            ("[::ffff:0:127.0.0.1]", "loopback"),
            ("[64:ff9b::127.0.0.1]", "loopback"),
            ("[2002:7f00:1::]", "loopback"),
            ("0.0.0.0", "unspecified"),
            ("0", "unspecified"),
            ("[::]", "unspecified"),
            ("169.254.169.254", "link-local or metadata"),
            ("[::ffff:169.254.169.254]", "link-local or metadata"),
            ("[fe80::1]", "link-local"),
            ("[fd00:ec2::254]", "unique-local"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("[64:ff9b::a00:1]", "private"),
            ("100.64.0.1", "carrier-grade NAT"),
            ("224.0.0.1", "multicast"),
            ("[ff02::1]", "multicast"),
            ("255.255.255.255", "reserved"),
            ("198.18.0.1", "reserved"),
            ("[64:ff9b:1::1]", "translated"),
            ("[2001::1]", "translated"),
        ] {
            assert_eq!(kind(&format!("http://{host}:8080/mcp")), Some(expected), "{host}");
        }
        for host in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "[2606:4700::1111]", "[64:ff9b::808:808]", "example.org"] {
            assert_eq!(kind(&format!("http://user@{host}/mcp")), None, "{host}");
        }
    }

    #[test]
    fn m1_the_operator_can_allow_networks_and_hosts() {
        let allow = ["10.1.0.0/16", "127.0.0.1", "fd00::/8", "Files.internal"];
        let policy = EgressPolicy { allow: allow.map(|rule| rule.parse().unwrap()).into() };
        let allowed = |host: &str, address: &str| policy.check(host, address.parse().unwrap()).is_ok();
        for (host, address) in [
            ("x", "10.1.2.3"),
            ("x", "127.0.0.1"),
            ("x", "::ffff:127.0.0.1"),
            ("x", "fd12::1"),
            ("files.internal", "192.168.0.1"),
            ("FILES.internal.", "::1"),
        ] {
            assert!(allowed(host, address), "{host} {address}");
        }
        for (host, address) in [("x", "10.2.0.1"), ("x", "127.0.0.2"), ("x", "fc00::1"), ("y.files.internal", "::1")] {
            assert!(!allowed(host, address), "{host} {address}");
        }
        for bad in ["", "10.0.0.0/33", "::/129", "10.0.0", "a b", "host/8", "10.0.0.0/x", "*"] {
            assert!(bad.parse::<EgressRule>().is_err(), "{bad:?}");
        }
    }
}

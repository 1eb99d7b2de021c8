//! Rate limit per caller. Requests are counted by user, with all tokens and sessions together, by agent token, or by client
//! address if there is neither.

use crate::{
    error::{Code, Problem},
    shares::UserKey,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use domain::actor::{Actor, Credential};
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::keyed::DefaultKeyedStateStore,
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RateLimitKey {
    /// Not by token: a user may have a hundred of them.
    User(UserKey),
    /// The number of an agent token.
    AgentToken(u64),
    Address(IpAddr),
}

impl RateLimitKey {
    /// By the user, if the request has a credential; else by address.
    pub fn for_actor(actor: &Actor, address: Self) -> Self {
        match actor.credential {
            Credential::Token(_) | Credential::BrowserSession { .. } | Credential::LocalKey => {
                Self::User(UserKey::of(actor))
            }
            Credential::NoAuth | Credential::Agent(_) | Credential::System => address,
        }
    }

    pub fn for_address(address: Option<IpAddr>) -> Self {
        Self::Address(address.map_or(Ipv4Addr::UNSPECIFIED.into(), network_of))
    }
}

/// What counts as one client: an IPv4 address, or the /64 of an IPv6 address, because one customer has a whole /64.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// The headers of draft-ietf-httpapi-ratelimit-headers.
const LEFT: HeaderName = HeaderName::from_static("ratelimit");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

pub struct RequestRateLimiter {
    limiter: RateLimiter<RateLimitKey, DefaultKeyedStateStore<RateLimitKey>, DefaultClock, StateInformationMiddleware>,
    policy: HeaderValue,
}

impl RequestRateLimiter {
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let seconds = burst.get().div_ceil(per_second.get());
        Self {
            limiter: RateLimiter::keyed(Quota::per_second(per_second).allow_burst(burst)).with_middleware(),
            policy: header_value(&format!("\"default\";q={burst};w={seconds}")),
        }
    }

    /// Counts a request. Returns how many more the caller can send at once.
    pub fn check(&self, key: &RateLimitKey) -> Result<u32, Problem> {
        let refused = match self.limiter.check_key(key) {
            Ok(state) => return Ok(state.remaining_burst_capacity()),
            Err(refused) => refused,
        };
        let wait = refused.wait_time_from(DefaultClock::default().now());
        // Rounded up, so that a client that waits exactly this long is accepted.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let seconds = seconds.max(1);
        metrics::counter!(crate::metrics::RATE_LIMITED).increment(1);
        Err(Problem::new(Code::TooManyRequests, format!("Too many requests; retry in {seconds} s."))
            .header(header::RETRY_AFTER, seconds.into())
            .header(LEFT, header_value(&format!("\"default\";r=0;t={seconds}")))
            .header(POLICY, self.policy.clone()))
    }

    /// Tells a client how many requests it has left, so that it can slow down before it is refused.
    pub fn describe(&self, left: u32, headers: &mut HeaderMap) {
        headers.insert(LEFT, header_value(&format!("\"default\";r={left}")));
        headers.insert(POLICY, self.policy.clone());
    }

    /// Removes callers whose quota is full again. Called periodically.
    pub fn prune(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }

    pub fn callers(&self) -> usize {
        self.limiter.len()
    }
}

/// Of ASCII, which does not fail.
fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("\"default\""))
}

#[cfg(test)]
mod tests {
    use super::{RateLimitKey, RequestRateLimiter};
    use crate::error::Code;
    use std::num::NonZeroU32;

    #[test]
    fn callers_are_counted_separately_and_pruned_when_idle() {
        let one = NonZeroU32::MIN;
        let rate = RequestRateLimiter::new(NonZeroU32::new(1_000_000_000).unwrap(), one);
        let slow = RequestRateLimiter::new(one, NonZeroU32::new(2).unwrap());
        let (a, b) = (
            RateLimitKey::for_address(Some([127, 0, 0, 1].into())),
            RateLimitKey::for_address(Some([127, 0, 0, 2].into())),
        );
        assert_eq!((slow.check(&a).unwrap(), slow.check(&a).unwrap()), (1, 0), "how many are left");
        assert_eq!(slow.check(&a).unwrap_err().code(), Code::TooManyRequests);
        assert!(slow.check(&b).is_ok());
        slow.prune();
        assert_eq!(slow.callers(), 2, "both are still being counted");
        assert!(rate.check(&a).is_ok());
        while rate.callers() > 0 {
            rate.prune();
        }
    }

    #[test]
    fn an_ipv6_network_is_one_caller() {
        let key = |ip: &str| RateLimitKey::for_address(Some(ip.parse().unwrap()));
        assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:1:ffff::2"));
        assert_ne!(key("2001:db8:0:1::1"), key("2001:db8:0:2::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
    }
}

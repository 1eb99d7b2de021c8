//! How often one caller may ask. Counted by token or pass, or by address where there is none.

use crate::error::{Code, Problem};
use axum::http::{HeaderName, HeaderValue, header};
use domain::ids::TokenId;
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    state::keyed::DefaultKeyedStateStore,
};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    Token(TokenId),
    /// Of an agent's program, by its number.
    Pass(u64),
    Peer(IpAddr),
}

impl Key {
    /// One IPv6 customer holds a whole /64: counting single addresses would count nothing.
    pub fn peer(address: Option<IpAddr>) -> Self {
        Self::Peer(match address.map(|ip| ip.to_canonical()) {
            Some(IpAddr::V6(ip)) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
            Some(ip) => ip,
            None => Ipv4Addr::UNSPECIFIED.into(),
        })
    }
}

pub struct Rate {
    limiter: RateLimiter<Key, DefaultKeyedStateStore<Key>, DefaultClock>,
    policy: HeaderValue,
}

impl Rate {
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let seconds = burst.get().div_ceil(per_second.get());
        Self {
            limiter: RateLimiter::keyed(Quota::per_second(per_second).allow_burst(burst)),
            // Digits and ASCII only.
            policy: HeaderValue::try_from(format!("\"default\";q={burst};w={seconds}"))
                .unwrap_or(HeaderValue::from_static("\"default\"")),
        }
    }

    pub fn check(&self, key: &Key) -> Result<(), Problem> {
        let Err(refused) = self.limiter.check_key(key) else { return Ok(()) };
        let wait = refused.wait_time_from(DefaultClock::default().now());
        // Rounded up: a client that waits exactly this long is let in.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let seconds = seconds.max(1);
        metrics::counter!(crate::metrics::RATE_LIMITED).increment(1);
        Err(Problem::new(Code::TooManyRequests, format!("Too many requests; wait {seconds} s and try again."))
            .header(header::RETRY_AFTER, seconds.into())
            .header(HeaderName::from_static("ratelimit-policy"), self.policy.clone()))
    }

    /// Forgets callers that have been quiet long enough to be as good as new. Called from time to time.
    pub fn prune(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }

    pub fn callers(&self) -> usize {
        self.limiter.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Rate};
    use crate::error::Code;
    use std::num::NonZeroU32;

    #[test]
    fn counts_each_caller_alone_and_forgets_the_quiet() {
        let one = NonZeroU32::MIN;
        let rate = Rate::new(NonZeroU32::new(1_000_000_000).unwrap(), one);
        let slow = Rate::new(one, NonZeroU32::new(2).unwrap());
        let (a, b) = (Key::peer(Some([127, 0, 0, 1].into())), Key::peer(Some([127, 0, 0, 2].into())));
        assert!(slow.check(&a).is_ok() && slow.check(&a).is_ok());
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
    fn a_whole_v6_network_is_one_caller() {
        let key = |ip: &str| Key::peer(Some(ip.parse().unwrap()));
        assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:1:ffff::2"));
        assert_ne!(key("2001:db8:0:1::1"), key("2001:db8:0:2::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
    }
}

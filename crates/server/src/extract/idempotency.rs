//! The Idempotency-Key: a write that is retried with its key happens once. The fingerprint tells a retry from a
//! different request with the same key (invariant 7).

use crate::{App, error::Problem};
use axum::{
    extract::FromRequestParts,
    http::{Method, Uri, request},
};
use sha2::{Digest, Sha256};

pub const HEADER: &str = "idempotency-key";
pub const MAX_BYTES: usize = 255;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey(pub Option<String>);

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, _: &App) -> Result<Self, Problem> {
        let mut sent = parts.headers.get_all(HEADER).iter();
        let key = match (sent.next(), sent.next()) {
            (None, _) => return Ok(Self(None)),
            (Some(key), None) => key.as_bytes(),
            _ => return Err(Problem::invalid("Send one Idempotency-Key, not several.")),
        };
        let fits = (1..=MAX_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
        match std::str::from_utf8(key) {
            Ok(key) if fits => Ok(Self(Some(key.to_owned()))),
            _ => Err(Problem::invalid("An Idempotency-Key has 1 to 255 visible ASCII characters, for example a UUID.")),
        }
    }
}

/// SHA-256 over method, target and body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    pub fn of(method: &Method, uri: &Uri, body: &[u8]) -> Self {
        let mut print = FingerprintBuilder::of(method, uri);
        print.add(body);
        print.finish()
    }
}

/// Computes a [`Fingerprint`] of a body that is too large for memory.
pub struct FingerprintBuilder(Sha256);

impl FingerprintBuilder {
    pub fn of(method: &Method, uri: &Uri) -> Self {
        let target = uri.path_and_query().map_or("", |target| target.as_str());
        // Neither can contain a line feed, so no two requests hash the same bytes.
        let hash = Sha256::new().chain_update(method.as_str()).chain_update("\n").chain_update(target);
        Self(hash.chain_update("\n"))
    }

    pub fn add(&mut self, body: &[u8]) {
        self.0.update(body);
    }

    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

/// For requests without a body.
impl FromRequestParts<App> for Fingerprint {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &App) -> Result<Self, Self::Rejection> {
        Ok(Self::of(&parts.method, &parts.uri, &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::Fingerprint;
    use axum::http::{Method, Uri};

    #[test]
    fn method_target_and_body_change_the_fingerprint() {
        let of = |method, uri, body: &str| Fingerprint::of(&method, &Uri::from_static(uri), body.as_bytes());
        let first = of(Method::POST, "/a?b=1", "{}");
        assert_eq!(first, of(Method::POST, "/a?b=1", "{}"));
        for other in [
            of(Method::PUT, "/a?b=1", "{}"),
            of(Method::POST, "/a?b=2", "{}"),
            of(Method::POST, "/b?b=1", "{}"),
            of(Method::POST, "/a?b=1", "{ }"),
        ] {
            assert_ne!(first, other);
        }
    }
}

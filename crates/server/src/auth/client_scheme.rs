//! Whether a client uses https. With TLS of our own that is certain; behind a proxy, headers say it.

use crate::listen::EncryptedConnection;
use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, request},
};
use std::convert::Infallible;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientScheme {
    Http,
    Https,
}

impl ClientScheme {
    pub fn of(extensions: &Extensions, headers: &HeaderMap) -> Self {
        let begins = |name: &str, https: &[u8]| {
            let mut values = headers.get_all(name).iter();
            values.any(|value| value.as_bytes().to_ascii_lowercase().starts_with(https))
        };
        let is_encrypted = extensions.get::<EncryptedConnection>().is_some();
        match is_encrypted || begins("origin", b"https://") || begins("x-forwarded-proto", b"https") {
            true => Self::Https,
            false => Self::Http,
        }
    }

    pub fn is_https(self) -> bool {
        self == Self::Https
    }

    /// As in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl<S: Sync> FromRequestParts<S> for ClientScheme {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions, &parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::ClientScheme;
    use crate::listen::EncryptedConnection;
    use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn l4_our_own_tls_is_certain_and_headers_are_a_proxys_word() {
        let with = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
        };
        let plain = Extensions::new();
        let mut encrypted = Extensions::new();
        encrypted.insert(EncryptedConnection);
        for (headers, behind_a_proxy) in [
            (HeaderMap::new(), ClientScheme::Http),
            (with("origin", "http://127.0.0.1:7878"), ClientScheme::Http),
            (with("x-forwarded-proto", "http"), ClientScheme::Http),
            (with("x-forwarded-proto", "HTTPS"), ClientScheme::Https),
            (with("origin", "https://green.example.org"), ClientScheme::Https),
        ] {
            assert_eq!(ClientScheme::of(&plain, &headers), behind_a_proxy, "{headers:?}");
            assert_eq!(ClientScheme::of(&encrypted, &headers), ClientScheme::Https, "{headers:?}");
        }
    }
}

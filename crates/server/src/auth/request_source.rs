//! How a request reached the server: over which connection, for which host, from which page, and whether a proxy passed
//! it on.

use super::{
    client_address::ClientAddress,
    client_scheme::ClientScheme,
    origin::{HostKind, OriginKind},
};
use crate::{
    error::{Code, Problem},
    listen::ConnectionAddrs,
};
use axum::{
    extract::{FromRequestParts, Request},
    http::{Extensions, HeaderMap, Version, header, request},
};
use std::{convert::Infallible, net::IpAddr};

#[derive(Clone, Copy, Debug)]
pub struct RequestSource {
    peer: Option<ConnectionAddrs>,
    host: Option<HostKind>,
    origin: OriginKind,
    version: Version,
    scheme: ClientScheme,
    client: Option<ClientAddress>,
}

impl RequestSource {
    pub fn of(request: &Request) -> Self {
        Self::read(request.extensions(), request.headers(), request.version())
    }

    fn read(extensions: &Extensions, headers: &HeaderMap, version: Version) -> Self {
        Self {
            peer: extensions.get().copied(),
            host: extensions.get().copied(),
            origin: extensions.get().copied().unwrap_or(OriginKind::Absent),
            version,
            scheme: ClientScheme::of(extensions, headers),
            client: extensions.get().copied(),
        }
    }

    pub fn scheme(&self) -> ClientScheme {
        self.scheme
    }

    /// The address of the client, as far as the server knows it. Limits, the audit log and decisions use this one.
    pub fn client_address(&self) -> Option<IpAddr> {
        self.client.map(|ClientAddress(address)| address)
    }

    /// Whether a program on this machine sent the request, as far as the request shows it. A loopback address is not
    /// enough: a proxy on this machine has one too and forwards requests of other machines.
    pub fn is_direct(&self, headers: &HeaderMap) -> bool {
        let is_same_machine = |peer: ConnectionAddrs| peer.remote.ip().to_canonical() == peer.local.ip().to_canonical();
        self.host == Some(HostKind::Local) && self.peer.is_some_and(is_same_machine) && !self.is_proxied(headers)
    }

    /// Proxies are recognized by what they add. `proxy_pass` of nginx adds nothing, but speaks HTTP/1.0 by default.
    fn is_proxied(&self, headers: &HeaderMap) -> bool {
        let is_added = |name: &str| {
            matches!(name, "forwarded" | "via" | "x-real-ip" | "true-client-ip")
                || name.starts_with("x-forwarded-")
                || name.starts_with("cf-")
        };
        self.version < Version::HTTP_11 || headers.keys().any(|name| is_added(name.as_str()))
    }

    /// For a server without authentication: refuses requests that anything but a program or a page of its own on this
    /// machine may have sent.
    pub fn refuse_unless_local(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let is_loopback = self.peer.is_some_and(|peer| peer.remote.ip().to_canonical().is_loopback());
        if !is_loopback || self.host != Some(HostKind::Local) || self.is_proxied(headers) {
            return Err(Problem::new(
                Code::ForbiddenHost,
                "This server runs without authentication (--no-auth) and answers only direct requests from its own \
                 machine; behind a proxy, start it without --no-auth.",
            ));
        }
        let site = headers.get("sec-fetch-site").map(axum::http::HeaderValue::as_bytes);
        let is_own_page = self.origin == OriginKind::SameServer
            || self.origin == OriginKind::Absent && matches!(site, None | Some(b"same-origin" | b"none"));
        // A browser always names the page that opens a WebSocket.
        let is_socket_of_a_page =
            headers.contains_key(header::UPGRADE) && site.is_some() && self.origin == OriginKind::Absent;
        match is_own_page && !is_socket_of_a_page {
            true => Ok(()),
            false => Err(Problem::new(Code::ForbiddenOrigin, "Only pages of this server may call it.")),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestSource {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(&parts.extensions, &parts.headers, parts.version))
    }
}

#[cfg(test)]
mod tests {
    use super::RequestSource;
    use crate::{
        auth::{
            client_scheme::ClientScheme,
            origin::{HostKind, OriginKind},
        },
        listen::ConnectionAddrs,
    };
    use axum::http::{HeaderMap, HeaderName, HeaderValue, Version};

    fn source(remote: &str, host: HostKind, origin: OriginKind, version: Version) -> RequestSource {
        let (remote, local) = (remote.parse().unwrap(), ([127, 0, 0, 1], 7878).into());
        let (peer, scheme) = (Some(ConnectionAddrs { remote, local }), ClientScheme::Http);
        RequestSource { peer, host: Some(host), origin, version, scheme, client: None }
    }

    #[test]
    fn c2_every_sign_of_a_proxy_is_refused_without_authentication() {
        let (here, http) = ("127.0.0.1:5000", Version::HTTP_11);
        let direct = source(here, HostKind::Local, OriginKind::Absent, http);
        assert!(direct.refuse_unless_local(&HeaderMap::new()).is_ok() && direct.is_direct(&HeaderMap::new()));
        let names = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "via", "x-real-ip"];
        for name in names.into_iter().chain(["cf-connecting-ip", "cf-ray", "true-client-ip"]) {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("x"))]);
            assert!(direct.refuse_unless_local(&headers).is_err(), "{name}");
            assert!(!direct.is_direct(&headers), "{name}");
        }
        for wrong in [
            source("192.0.2.7:5000", HostKind::Local, OriginKind::Absent, http),
            source(here, HostKind::Public, OriginKind::Absent, http),
            source(here, HostKind::Local, OriginKind::Absent, Version::HTTP_10),
            source(here, HostKind::Local, OriginKind::OtherLocal, http),
            source(here, HostKind::Local, OriginKind::Configured { with_cookie: true }, http),
        ] {
            assert!(wrong.refuse_unless_local(&HeaderMap::new()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn h1_a_page_of_another_port_is_refused_without_authentication() {
        let at = |origin| source("127.0.0.1:5000", HostKind::Local, origin, Version::HTTP_11);
        let with = |pairs: &[(&'static str, &'static str)]| {
            let pairs =
                pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            HeaderMap::from_iter(pairs)
        };
        let own = with(&[("sec-fetch-site", "same-origin")]);
        assert!(at(OriginKind::SameServer).refuse_unless_local(&own).is_ok());
        assert!(at(OriginKind::Absent).refuse_unless_local(&with(&[("sec-fetch-site", "none")])).is_ok());
        for site in ["same-site", "cross-site"] {
            assert!(at(OriginKind::Absent).refuse_unless_local(&with(&[("sec-fetch-site", site)])).is_err(), "{site}");
        }
        let socket = with(&[("sec-fetch-site", "same-origin"), ("upgrade", "websocket")]);
        assert!(at(OriginKind::Absent).refuse_unless_local(&socket).is_err());
        assert!(at(OriginKind::Absent).refuse_unless_local(&with(&[("upgrade", "websocket")])).is_ok(), "a program");
    }
}

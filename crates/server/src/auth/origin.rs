//! Checks which host names the server accepts and which websites may call it. A browser on this machine can reach
//! loopback from any page, so the client's address proves nothing: the Host check stops DNS rebinding, the Origin and
//! `Sec-Fetch-Site` checks stop other sites. GET is checked as well, because a WebSocket starts as a GET.

use super::cors;
use crate::{
    App,
    error::{Code, Problem},
    listen::{ConnectionAddrs, EncryptedConnection},
};
use axum::{
    body::HttpBody as _,
    extract::{Request, State},
    http::{HeaderMap, Uri, header, uri::Authority},
    middleware::Next,
    response::Response,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of host name in a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostKind {
    /// The local address of the connection, or a loopback name on a loopback connection.
    Local,
    /// A name from the configuration.
    Public,
}

/// Which page sent the request, by its Origin header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OriginKind {
    /// A page of this server: its origin is the requested host or a configured one.
    SameServer,
    /// A page on another port of this machine, or of the other scheme. It may call the API with a token only: browsers send
    /// the session cookie to every port.
    OtherLocal,
    /// A page of an origin in `server.cors_origins`. It may call the API with a token, and with the session cookie only if
    /// the operator allows that.
    Configured { with_cookie: bool },
    /// No Origin header: a program, or a browser request that only reads.
    Absent,
}

/// Configured host names, such as `greenroom.example.org`. A name with a port is valid for that port only.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Vec<Authority>);

impl AllowedHosts {
    pub fn new(public: &[String]) -> Result<Self, String> {
        let parse = |name: &String| {
            authority(name.as_bytes())
                .ok_or_else(|| format!("public_hosts: {name:?} is not a host name such as `greenroom.example.org`"))
        };
        public.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Compares host and port: a page on another port of a public host may belong to someone else.
    fn contains_exactly(&self, page: &Authority) -> bool {
        self.0.iter().any(|known| known.host().eq_ignore_ascii_case(page.host()) && known.port_u16() == page.port_u16())
    }

    fn classify(&self, asked: &Authority, local: IpAddr) -> Option<HostKind> {
        let host = asked.host();
        let literal = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let local = local.to_canonical();
        let is_local = match literal.parse::<IpAddr>() {
            Ok(ip) => ip == local || local.is_loopback() && (ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST),
            Err(_) => local.is_loopback() && host.eq_ignore_ascii_case("localhost"),
        };
        let matches = |known: &&Authority| {
            known.host().eq_ignore_ascii_case(host) && (known.port().is_none() || known.port_u16() == asked.port_u16())
        };
        match is_local {
            true => Some(HostKind::Local),
            false => self.0.iter().find(matches).map(|_| HostKind::Public),
        }
    }
}

/// Middleware for every request, including unknown paths.
pub async fn check(State(app): State<App>, mut request: Request, next: Next) -> Result<Response, Problem> {
    // A connection has the real address even if the server listens on 0.0.0.0; else use the configured one.
    let local = request.extensions().get::<ConnectionAddrs>().map_or(app.config.listen, |peer| peer.local).ip();
    if request.headers().get_all(header::HOST).iter().count() != 1 {
        return Err(Problem::invalid("A request needs one Host header."));
    }
    let asked = host(&request);
    let reach = asked.as_ref().and_then(|host| app.allowed_hosts.classify(host, local)).ok_or_else(|| {
        Problem::new(
            Code::ForbiddenHost,
            "This server does not accept this Host; use its address, or add the name to server.public_hosts in the \
             configuration.",
        )
    })?;
    let settings = &app.config.cors;
    let configured = settings.allowed_origin(request.headers());
    let origin_kind = match request.headers().contains_key(header::ORIGIN) {
        false => OriginKind::Absent,
        true => {
            let page = origin(request.headers()).ok_or_else(forbidden_origin)?;
            let from = app.allowed_hosts.classify(&page.authority, local);
            let is_own = (from.is_some() && asked.as_ref() == Some(&page.authority)
                || from == Some(HostKind::Public) && app.allowed_hosts.contains_exactly(&page.authority))
                && page.is_of_scheme(&request, reach);
            match (is_own, configured.is_some(), from) {
                (true, _, _) => OriginKind::SameServer,
                (false, true, _) => OriginKind::Configured { with_cookie: settings.credentials },
                (false, false, Some(_)) => OriginKind::OtherLocal,
                (false, false, None) => return Err(forbidden_origin()),
            }
        }
    };
    request.extensions_mut().insert(reach);
    request.extensions_mut().insert(origin_kind);
    let mut response = match configured.is_some() && cors::is_preflight(&request) {
        true => cors::answer_preflight(&app, &request)?,
        false => next.run(request).await,
    };
    settings.add_headers(response.headers_mut(), configured);
    Ok(response)
}

/// A page can make a browser send a GET without an Origin, with an image, a link or a form. For routes that act for an
/// owner, `Sec-Fetch-Site` decides.
pub fn refuse_cross_site(headers: &HeaderMap) -> Result<(), Problem> {
    let cross_site = headers.get("sec-fetch-site").is_some_and(|site| site.as_bytes() == b"cross-site");
    // With an Origin, the check above has already decided.
    if cross_site && !headers.contains_key(header::ORIGIN) { Err(forbidden_origin()) } else { Ok(()) }
}

/// Browsers send the session cookie with every request, whichever page caused it. Writes and upgrades must come from a
/// page of this server; reads must not be known to come from another page.
pub fn refuse_other_pages(request: &Request) -> Result<(), Problem> {
    let origin_kind = request.extensions().get::<OriginKind>().copied().unwrap_or(OriginKind::Absent);
    let only_reads = request.method().is_safe() && !request.headers().contains_key(header::UPGRADE);
    let site = request.headers().get("sec-fetch-site").map(axum::http::HeaderValue::as_bytes);
    let from_here = matches!(site, None | Some(b"same-origin" | b"none"));
    match origin_kind {
        OriginKind::SameServer | OriginKind::Configured { with_cookie: true } => Ok(()),
        OriginKind::Absent if only_reads && from_here => Ok(()),
        OriginKind::Absent | OriginKind::OtherLocal | OriginKind::Configured { with_cookie: false } => {
            Err(Problem::new(
                Code::ForbiddenOrigin,
                "The session cookie works only for pages of this server, with its Origin; programs send a token instead.",
            ))
        }
    }
}

fn forbidden_origin() -> Problem {
    Problem::new(
        Code::ForbiddenOrigin,
        "The request comes from a website that this server does not trust; to allow it, add its origin to \
         server.cors_origins in the configuration, or its host to server.public_hosts if it is this server's own.",
    )
}

/// The requested host. A target with an authority overrides the header (RFC 9112, 3.2.2); two headers, or a header that
/// disagrees with the target, are refused.
pub fn host(request: &Request) -> Option<Authority> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let (Some(value), None) = (named.next(), named.next()) else { return None };
    let host = authority(value.as_bytes())?;
    match request.uri().authority() {
        Some(target) if *target != host => None,
        _ => Some(host),
    }
}

/// The origin of a page.
struct PageOrigin {
    is_https: bool,
    authority: Authority,
}

impl PageOrigin {
    /// Whether the page was loaded by the scheme of this request. With TLS of our own that is https; a proxy with TLS says so
    /// in its header. One that does not is trusted for a public name only, where the server cannot know.
    fn is_of_scheme(&self, request: &Request, host: HostKind) -> bool {
        if request.extensions().get::<EncryptedConnection>().is_some() {
            return self.is_https;
        }
        let mut forwarded = request.headers().get_all("x-forwarded-proto").iter();
        match (forwarded.next(), forwarded.next()) {
            (Some(proto), None) => {
                proto.as_bytes().eq_ignore_ascii_case(if self.is_https { b"https" } else { b"http" })
            }
            (Some(_), Some(_)) => false,
            (None, _) => host == HostKind::Public || !self.is_https,
        }
    }
}

fn origin(headers: &HeaderMap) -> Option<PageOrigin> {
    let mut named = headers.get_all(header::ORIGIN).iter();
    let (Some(value), None) = (named.next(), named.next()) else { return None };
    // The origin `null` has no scheme and is rejected here.
    let uri = Uri::try_from(value.as_bytes()).ok()?;
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().filter(|_| web).and_then(|found| authority(found.as_str().as_bytes()))?;
    Some(PageOrigin { is_https: uri.scheme_str() == Some("https"), authority })
}

/// A page can send these types, or none, without asking first (a preflight, which only configured origins pass). With a cookie, or
/// where no credential is needed, a body of such a type must come with a header that a page cannot add either.
pub fn refuse_simple_body(request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase());
    let is_simple = kind.is_none_or(|kind| {
        let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let simple: [&[u8]; 3] = [b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data"];
        simple.contains(&essence)
    });
    let has_custom_header = ["idempotency-key", "x-requested-with"].iter().any(|name| headers.contains_key(*name));
    let has_body = !request.body().is_end_stream();
    if request.method().is_safe() || !has_body || !is_simple || has_custom_header {
        return Ok(());
    }
    Err(Problem::new(
        Code::UnsupportedMediaType,
        "With a cookie, a body of this Content-Type needs the header Idempotency-Key or X-Requested-With; programs send a \
         token instead.",
    ))
}

/// Host and port. An authority with a user name is refused.
fn authority(bytes: &[u8]) -> Option<Authority> {
    let parsed = Authority::try_from(bytes).ok()?;
    let plain = !parsed.as_str().contains('@') && !parsed.host().is_empty();
    // `host:` and `host:notaport` parse as an authority without a port; they are refused.
    let whole = parsed.host().len() == parsed.as_str().len() || parsed.port_u16().is_some();
    (plain && whole).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::{AllowedHosts, HostKind, authority};

    fn reach(asked: &str, local: &str, public: &[&str]) -> Option<HostKind> {
        let public: Vec<String> = public.iter().map(ToString::to_string).collect();
        AllowedHosts::new(&public).unwrap().classify(&authority(asked.as_bytes())?, local.parse().unwrap())
    }

    #[test]
    fn a_loopback_server_accepts_loopback_names_on_any_port_and_no_others() {
        for (name, local) in [
            ("localhost", "127.0.0.1"),
            ("LOCALHOST:7878", "127.0.0.1"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]:7878", "127.0.0.1"),
            ("[::1]", "::1"),
            ("localhost:7878", "::1"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("127.0.0.2:80", "127.0.0.2"),
        ] {
            assert_eq!(reach(name, local, &[]), Some(HostKind::Local), "{name} at {local}");
        }
        for name in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost.",
            "user@localhost",
            "127.0.0.2",
            "0.0.0.0",
            "2130706433",
            "127.1",
            "[::]",
            "10.0.0.1",
            "",
            ":80",
            "localhost:x",
            "localhost:",
            "localhost:99999",
        ] {
            assert_eq!(reach(name, "127.0.0.1", &[]), None, "{name}");
        }
    }

    #[test]
    fn a_public_server_accepts_its_address_and_configured_names() {
        assert_eq!(reach("192.168.1.4:7878", "192.168.1.4", &[]), Some(HostKind::Local));
        assert_eq!(reach("localhost:7878", "192.168.1.4", &[]), None);
        assert_eq!(reach("192.168.1.5", "192.168.1.4", &[]), None);
        let named = &["green.example.org", "other.example.org:8443"];
        assert_eq!(reach("Green.Example.org:1", "192.168.1.4", named), Some(HostKind::Public));
        assert_eq!(reach("other.example.org:8443", "127.0.0.1", named), Some(HostKind::Public));
        assert_eq!(reach("other.example.org", "127.0.0.1", named), None);
        assert_eq!(reach("sub.green.example.org", "127.0.0.1", named), None);
        assert!(AllowedHosts::new(&["https://x.example".to_owned()]).is_err());
    }
}

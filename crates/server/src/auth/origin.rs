//! Which names this server answers to, and which websites may ask it. A browser on this machine reaches loopback for
//! any page it shows, so the peer's address proves nothing: the Host stops DNS rebinding, the Origin and
//! `Sec-Fetch-Site` stop other sites. GET is checked as well, for a WebSocket begins as one.

use crate::{
    App,
    error::{Code, Problem},
    listen::Peer,
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, Uri, header, uri::Authority},
    middleware::Next,
    response::Response,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// By which kind of name the server was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// The address of the connection itself, or a name for loopback on a loopback connection.
    Local,
    /// A name from the configuration.
    Public,
}

/// Which page asks, by its Origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    /// A page of this server: of the name it was asked for, or of one from the configuration.
    Own,
    /// Another page of this machine: it may ask, but not with this server's cookie, which browsers send to every port.
    Neighbour,
    /// No Origin was sent: a program, or a browser that only reads.
    Unsaid,
}

/// Names from the configuration, such as `greenroom.example.org`; with a port they hold for that port only.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<Authority>);

impl Hosts {
    pub fn new(public: &[String]) -> Result<Self, String> {
        let parse = |name: &String| {
            authority(name.as_bytes())
                .ok_or_else(|| format!("{name:?} in public_hosts is no host name; write it as `greenroom.example.org`"))
        };
        public.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Just this name with just this port: a page on another port of a public name is somebody else's.
    fn has(&self, page: &Authority) -> bool {
        self.0.iter().any(|known| known.host().eq_ignore_ascii_case(page.host()) && known.port_u16() == page.port_u16())
    }

    fn reach(&self, asked: &Authority, local: IpAddr) -> Option<Reach> {
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
            true => Some(Reach::Local),
            false => self.0.iter().find(matches).map(|_| Reach::Public),
        }
    }
}

/// Stands before everything, unknown paths included.
pub async fn check(State(app): State<App>, mut request: Request, next: Next) -> Result<Response, Problem> {
    // A connection to 0.0.0.0 has a real local address; without a connection there is only what was configured.
    let local = request.extensions().get::<Peer>().map_or(app.config.listen, |peer| peer.local).ip();
    let asked = host(&request);
    let reach = asked.as_ref().and_then(|host| app.hosts.reach(host, local)).ok_or_else(|| {
        Problem::new(
            Code::ForbiddenHost,
            "This server does not answer to the Host that was asked for; use its address, or add the name to \
             server.public_hosts in the configuration.",
        )
    })?;
    let mut asker = Asker::Unsaid;
    if request.headers().contains_key(header::ORIGIN) {
        let page = origin(request.headers()).ok_or_else(foreign)?;
        let from = app.hosts.reach(&page, local).ok_or_else(foreign)?;
        let is_own = asked.as_ref() == Some(&page) || (from == Reach::Public && app.hosts.has(&page));
        asker = if is_own { Asker::Own } else { Asker::Neighbour };
    }
    request.extensions_mut().insert(reach);
    request.extensions_mut().insert(asker);
    Ok(next.run(request).await)
}

/// A page can make a browser GET an address without an Origin: by an image, a link, a form. Where that would act for an
/// owner, the browser's own word about who asked decides.
pub fn refuse_cross_site(headers: &HeaderMap) -> Result<(), Problem> {
    let cross_site = headers.get("sec-fetch-site").is_some_and(|site| site.as_bytes() == b"cross-site");
    // With an Origin, the check above has already decided.
    if cross_site && !headers.contains_key(header::ORIGIN) { Err(foreign()) } else { Ok(()) }
}

/// A cookie comes with whatever a browser sends here, whichever page made it. What changes something, or opens a
/// connection that can, must say that a page of ours did; what only reads must not be known to come from elsewhere.
pub fn refuse_other_pages(request: &Request) -> Result<(), Problem> {
    let asker = request.extensions().get::<Asker>().copied().unwrap_or(Asker::Unsaid);
    let only_reads = request.method().is_safe() && !request.headers().contains_key(header::UPGRADE);
    let site = request.headers().get("sec-fetch-site").map(axum::http::HeaderValue::as_bytes);
    let from_here = matches!(site, None | Some(b"same-origin" | b"none"));
    match asker {
        Asker::Own => Ok(()),
        Asker::Unsaid if only_reads && from_here => Ok(()),
        Asker::Unsaid | Asker::Neighbour => Err(Problem::new(
            Code::ForbiddenOrigin,
            "Who is signed in by a cookie asks from a page of this server, with its Origin; programs send a token instead.",
        )),
    }
}

fn foreign() -> Problem {
    Problem::new(
        Code::ForbiddenOrigin,
        "The request comes from a website this server does not belong to; add its host to server.public_hosts in the \
         configuration if it does.",
    )
}

/// The one host that was asked for. A target with an authority overrides the header (RFC 9112, 3.2.2); two headers, or
/// a header that disagrees with the target, are refused rather than ranked.
fn host(request: &Request) -> Option<Authority> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let (Some(value), None) = (named.next(), named.next()) else { return None };
    let host = authority(value.as_bytes())?;
    match request.uri().authority() {
        Some(target) if *target != host => None,
        _ => Some(host),
    }
}

fn origin(headers: &HeaderMap) -> Option<Authority> {
    let mut named = headers.get_all(header::ORIGIN).iter();
    let (Some(value), None) = (named.next(), named.next()) else { return None };
    // `null` has no scheme and ends here.
    let uri = Uri::try_from(value.as_bytes()).ok()?;
    let web = matches!(uri.scheme_str(), Some("http" | "https"));
    uri.authority().filter(|_| web).and_then(|found| authority(found.as_str().as_bytes()))
}

/// Host and port, without the user name that an authority may carry elsewhere.
fn authority(bytes: &[u8]) -> Option<Authority> {
    let parsed = Authority::try_from(bytes).ok()?;
    let plain = !parsed.as_str().contains('@') && !parsed.host().is_empty();
    // `host:` and `host:notaport` parse as an authority without a port.
    let whole = parsed.host().len() == parsed.as_str().len() || parsed.port_u16().is_some();
    (plain && whole).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::{Hosts, Reach, authority};

    fn reach(asked: &str, local: &str, public: &[&str]) -> Option<Reach> {
        let public: Vec<String> = public.iter().map(ToString::to_string).collect();
        Hosts::new(&public).unwrap().reach(&authority(asked.as_bytes())?, local.parse().unwrap())
    }

    #[test]
    fn loopback_answers_to_its_names_on_any_port_and_to_no_other() {
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
            assert_eq!(reach(name, local, &[]), Some(Reach::Local), "{name} at {local}");
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
    fn an_open_address_answers_to_itself_and_to_configured_names() {
        assert_eq!(reach("192.168.1.4:7878", "192.168.1.4", &[]), Some(Reach::Local));
        assert_eq!(reach("localhost:7878", "192.168.1.4", &[]), None);
        assert_eq!(reach("192.168.1.5", "192.168.1.4", &[]), None);
        let named = &["green.example.org", "other.example.org:8443"];
        assert_eq!(reach("Green.Example.org:1", "192.168.1.4", named), Some(Reach::Public));
        assert_eq!(reach("other.example.org:8443", "127.0.0.1", named), Some(Reach::Public));
        assert_eq!(reach("other.example.org", "127.0.0.1", named), None);
        assert_eq!(reach("sub.green.example.org", "127.0.0.1", named), None);
        assert!(Hosts::new(&["https://x.example".to_owned()]).is_err());
    }
}

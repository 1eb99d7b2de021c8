//! The proxy by which programs in a sandbox reach the hosts that their project allows: CONNECT for TLS, and plain HTTP.
//!
//! Names are checked, then every address that a name resolves to: only public ones are connected to, and exactly the one that
//! was checked. A sandbox whose project allows no host does not have the proxy's answers: everything is refused.

use super::{GuestFuture, GuestService, SandboxSpec};
use crate::egress::EgressPolicy;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional},
    net::{TcpStream, lookup_host},
    time::timeout,
};

/// The port of the proxy inside of every sandbox.
pub const EGRESS_PORT: u16 = 3128;

const MAX_HEAD_BYTES: usize = 16 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// A tunnel may be idle for long, but not forever.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(6 * 60 * 60);

/// The variables that lead programs to the proxy.
pub fn proxy_variables() -> [(&'static str, String); 6] {
    let url = format!("http://127.0.0.1:{EGRESS_PORT}");
    let direct = "127.0.0.1,localhost,::1".to_owned();
    [
        ("HTTP_PROXY", url.clone()),
        ("HTTPS_PROXY", url.clone()),
        ("NO_PROXY", direct.clone()),
        ("http_proxy", url.clone()),
        ("https_proxy", url),
        ("no_proxy", direct),
    ]
}

/// `policy` says which addresses besides public ones may be reached.
#[derive(Clone, Debug, Default)]
pub struct EgressProxy {
    pub policy: Arc<EgressPolicy>,
}

impl GuestService for EgressProxy {
    fn serve(&self, sandbox: Arc<SandboxSpec>, connection: TcpStream) -> GuestFuture {
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            if let Err(error) = serve(&sandbox, &policy, connection).await {
                tracing::debug!(%error, sandbox = %sandbox.key, "a connection through the egress proxy failed");
            }
        })
    }
}

async fn serve(sandbox: &SandboxSpec, policy: &EgressPolicy, mut client: TcpStream) -> std::io::Result<()> {
    let Ok(Ok(Some((head, rest)))) = timeout(HEAD_TIMEOUT, read_head(&mut client)).await else {
        return refuse(&mut client, 400, "not a request").await;
    };
    let request = match ProxyRequest::parse(&head) {
        Ok(request) => request,
        Err(problem) => return refuse(&mut client, 400, problem).await,
    };
    if !is_allowed(&sandbox.allowed_hosts, &request.host, request.port) {
        let message = format!("{} is not among the hosts that this project allows", request.host);
        return refuse(&mut client, 403, &message).await;
    }
    let mut server = match connect(&request, policy).await {
        Ok(server) => server,
        Err(problem) => return refuse(&mut client, 502, &problem).await,
    };
    match request.forwarded {
        None => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            server.write_all(&rest).await?;
            let tunnel = timeout(TUNNEL_TIMEOUT, copy_bidirectional(&mut client, &mut server)).await;
            tunnel.map_or(Ok(()), |ended| ended.map(drop))
        }
        // Exactly one request: a second one on the connection could name another host.
        Some(head) => {
            server.write_all(head.as_bytes()).await?;
            let length = request.body_bytes;
            let first = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
            server.write_all(first).await?;
            let exchange = async {
                copy(&mut (&mut client).take(length - first.len() as u64), &mut server).await?;
                copy(&mut server, &mut client).await
            };
            timeout(TUNNEL_TIMEOUT, exchange).await.map_or(Ok(()), |ended| ended.map(drop))
        }
    }
}

/// The head of a request, and what came after it.
async fn read_head(client: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let mut read = Vec::new();
    loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            return Ok(String::from_utf8(read).ok().map(|head| (head, rest)));
        }
        if read.len() > MAX_HEAD_BYTES || client.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    }
}

async fn refuse(client: &mut TcpStream, status: u16, message: &str) -> std::io::Result<()> {
    let reason = match status {
        403 => "Forbidden",
        502 => "Bad Gateway",
        _ => "Bad Request",
    };
    let (length, message) = (message.len() + 1, message);
    let text = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{message}\n"
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

struct ProxyRequest {
    host: String,
    port: u16,
    /// The head as the server gets it; `None` for a tunnel.
    forwarded: Option<String>,
    body_bytes: u64,
}

impl ProxyRequest {
    fn parse(head: &str) -> Result<Self, &'static str> {
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("not a request");
        };
        if method == "CONNECT" {
            let (host, port) = host_and_port(target, None).ok_or("CONNECT needs a host and a port")?;
            return Ok(Self { host, port, forwarded: None, body_bytes: 0 });
        }
        let rest =
            target.strip_prefix("http://").ok_or("this proxy takes CONNECT, and requests with an http:// URL")?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = host_and_port(authority, Some(80)).ok_or("the URL has no valid host")?;
        let mut forwarded = format!("{method} {path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
        let mut body_bytes = 0;
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a header has no name")?;
            match name.trim().to_ascii_lowercase().as_str() {
                "host" | "connection" | "proxy-connection" | "proxy-authorization" | "keep-alive" | "upgrade" => {
                    continue;
                }
                "transfer-encoding" => return Err("a body needs a Content-Length"),
                "content-length" => body_bytes = value.trim().parse().map_err(|_| "the Content-Length is invalid")?,
                _ => {}
            }
            forwarded.push_str(line);
            forwarded.push_str("\r\n");
        }
        forwarded.push_str("\r\n");
        Ok(Self { host, port, forwarded: Some(forwarded), body_bytes })
    }
}

/// Lower case, without user names and other additions.
fn host_and_port(authority: &str, default: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (authority, default?),
    };
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let is_name = (1..=253).contains(&host.len()) && host.chars().all(letter);
    is_name.then(|| (host.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// An entry is a host name, for the ports of HTTP and HTTPS, or `host:port`; `*.example.org` is every name beneath.
fn is_allowed(allowed: &[String], host: &str, port: u16) -> bool {
    allowed.iter().any(|entry| {
        let entry = entry.trim().to_ascii_lowercase();
        let (name, is_port) = match entry.rsplit_once(':') {
            Some((name, own)) => (name, own.parse() == Ok(port)),
            None => (entry.as_str(), matches!(port, 80 | 443)),
        };
        let is_name = match name.strip_prefix("*.") {
            Some(parent) => host.strip_suffix(parent).is_some_and(|start| start.len() > 1 && start.ends_with('.')),
            None => host == name,
        };
        is_name && is_port
    })
}

async fn connect(request: &ProxyRequest, policy: &EgressPolicy) -> Result<TcpStream, String> {
    let ProxyRequest { host, port, .. } = request;
    let found = timeout(CONNECT_TIMEOUT, lookup_host((host.as_str(), *port))).await;
    let found: Vec<SocketAddr> = found
        .map_err(|_| format!("{host} could not be resolved in time"))?
        .map_err(|error| format!("{host} could not be resolved: {error}"))?
        .collect();
    let mut problem = format!("{host} has no address");
    for address in found {
        match policy.check(host, address.ip()) {
            Err(refused) => problem = format!("{host} is at a {} address, which no project may reach", refused.kind),
            Ok(()) => match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(server)) => return Ok(server),
                Ok(Err(error)) => problem = format!("{host} cannot be reached: {error}"),
                Err(_) => problem = format!("{host} did not answer in time"),
            },
        }
    }
    Err(problem)
}

#[cfg(test)]
mod tests {
    use super::{EgressProxy, ProxyRequest, is_allowed};
    use crate::{
        egress::{EgressPolicy, EgressRule},
        project_sandbox::{GuestService as _, SandboxKey, SandboxSpec},
    };
    use std::sync::Arc;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
        task::JoinSet,
    };

    #[test]
    fn names_and_ports_are_checked() {
        let allowed = ["example.org".to_owned(), "*.example.net".to_owned(), "git.example.com:9418".to_owned()];
        for (host, port, expected) in [
            ("example.org", 443, true),
            ("example.org", 80, true),
            ("example.org", 22, false),
            ("www.example.org", 443, false),
            ("evil-example.org", 443, false),
            ("a.example.net", 443, true),
            ("example.net", 443, false),
            (".example.net", 443, false),
            ("git.example.com", 9418, true),
            ("git.example.com", 443, false),
        ] {
            assert_eq!(is_allowed(&allowed, host, port), expected, "{host}:{port}");
        }
        assert!(!is_allowed(&[], "example.org", 443));
    }

    #[test]
    fn requests_are_taken_apart_and_hosts_cannot_be_disguised() {
        let tunnel = ProxyRequest::parse("CONNECT Example.org.:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((tunnel.host.as_str(), tunnel.port, tunnel.forwarded), ("example.org", 443, None));
        let head = "POST http://example.org/a?b HTTP/1.1\r\nHost: evil.org\r\nContent-Length: 3\r\nX: y\r\n\r\n";
        let plain = ProxyRequest::parse(head).unwrap();
        let expected =
            "POST /a?b HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\nContent-Length: 3\r\nX: y\r\n\r\n";
        assert_eq!((plain.forwarded.as_deref(), plain.body_bytes, plain.port), (Some(expected), 3, 80));
        for head in [
            "CONNECT example.org HTTP/1.1\r\n\r\n",
            "CONNECT a@example.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.org/ HTTP/1.1\r\n\r\n",
            "GET http://user@example.org/ HTTP/1.1\r\n\r\n",
            "POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(ProxyRequest::parse(head).is_err(), "{head}");
        }
    }

    /// Sends a request through a proxy for a sandbox that may reach `localhost:port`.
    async fn ask(policy: EgressPolicy, port: u16, request: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut spec = SandboxSpec::new(SandboxKey::new("room", 1), "/w", "/h");
        spec.allowed_hosts = vec![format!("localhost:{port}")];
        let proxy = EgressProxy { policy: Arc::new(policy) };
        let served = proxy.serve(Arc::new(spec), listener.accept().await.unwrap().0);
        // The client closes the connection when it has read the answer.
        let asked = async move {
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::join!(served, asked).1
    }

    async fn web_server() -> (u16, JoinSet<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut served = JoinSet::new();
        served.spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut got = vec![0; 4096];
            let length = connection.read(&mut got).await.unwrap();
            connection.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").await.unwrap();
            String::from_utf8_lossy(&got[..length]).into_owned()
        });
        (port, served)
    }

    #[tokio::test]
    async fn allowed_hosts_are_reached_and_private_addresses_are_not() {
        let (port, _server) = web_server().await;
        let refused = ask(EgressPolicy::default(), port, format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n")).await;
        assert!(refused.starts_with("HTTP/1.1 502") && refused.contains("loopback"), "{refused}");
        let other = ask(EgressPolicy::default(), port, "CONNECT example.org:443 HTTP/1.1\r\n\r\n".to_owned()).await;
        assert!(other.starts_with("HTTP/1.1 403"), "{other}");
        let policy = || EgressPolicy { allow: vec!["localhost".parse::<EgressRule>().unwrap()] };
        let request = format!("GET http://localhost:{port}/page HTTP/1.1\r\nProxy-Authorization: x\r\n\r\n");
        let answer = ask(policy(), port, request).await;
        assert!(answer.ends_with("hello"), "{answer}");
        let (port, mut server) = web_server().await;
        let tunnel = ask(policy(), port, format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nearly")).await;
        assert!(tunnel.contains("200 Connection established") && tunnel.ends_with("hello"), "{tunnel}");
        assert_eq!(server.join_next().await.unwrap().unwrap(), "early");
    }
}

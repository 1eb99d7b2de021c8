//! An MCP client over HTTP for either era. The request is built once; only the call number changes.

use crate::{
    connection::{RawConnection, RawResponse},
    stack::LOCAL_KEY,
    stream::RawStream,
};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};

const SESSIONS: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const TIMEOUT: Duration = Duration::from_secs(60);
/// Eight digits, like all later numbers, so that the length of a request stays the same.
const FIRST_CALL: u32 = 10_000_000;

/// The two protocol eras over streamable HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BenchEra {
    /// A handshake, then a session; responses are event streams.
    Session,
    /// Every request is independent; responses are JSON if the server supports it.
    Modern,
}

/// The tool to call, and text that a correct response contains.
#[derive(Clone, Copy, Debug)]
pub struct BenchTool {
    pub name: &'static str,
    pub arguments: fn() -> Value,
    pub expected_text: &'static str,
}

pub struct BenchMcpClient {
    connection: RawConnection,
    request: Vec<u8>,
    /// The offset of the call number in the request.
    number_at: usize,
    number: u32,
    expected_text: &'static str,
}

impl BenchMcpClient {
    /// Connects, and begins a session if the era has sessions.
    pub async fn connect(address: SocketAddr, era: BenchEra, tool: BenchTool) -> anyhow::Result<Self> {
        let params = json!({"name": tool.name, "arguments": (tool.arguments)()});
        let (connection, request) = match era {
            BenchEra::Session => {
                let mut connection = RawConnection::open(address).await?;
                let session = begin_session(&mut connection, address).await?;
                let headers = session_headers(&session);
                (connection, post(address, "/mcp", &headers, &message(FIRST_CALL, "tools/call", params)))
            }
            BenchEra::Modern => {
                let request = modern_request(address, FIRST_CALL, "tools/call", Some(tool.name), params);
                (RawConnection::open(address).await?, request)
            }
        };
        let digits = FIRST_CALL.to_string();
        let number_at = position(&request, digits.as_bytes()).context("the request has no call number")?;
        Ok(Self { connection, request, number_at, number: FIRST_CALL, expected_text: tool.expected_text })
    }

    pub async fn call(&mut self) -> anyhow::Result<()> {
        self.number += 1;
        let digits = self.number.to_string();
        self.request[self.number_at..self.number_at + digits.len()].copy_from_slice(digits.as_bytes());
        let answer = self.connection.send(&self.request).await?;
        let right = answer.is_success()
            && position(answer.body, digits.as_bytes()).is_some()
            && position(answer.body, self.expected_text.as_bytes()).is_some();
        ensure!(right, "not a correct response to call {digits}: {}", answer.text());
        Ok(())
    }
}

/// Does the handshake and returns the session id.
pub async fn begin_session(connection: &mut RawConnection, address: SocketAddr) -> anyhow::Result<String> {
    let answer = connection.send(&post(address, "/mcp", "", &message(1, "initialize", initialize_params()))).await?;
    ensure!(answer.is_success(), "initialize: {}", answer.text());
    let session = answer.header("mcp-session-id").context("no session")?.to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    ensure_success(&connection.send(&post(address, "/mcp", &session_headers(&session), &initialized)).await?)?;
    Ok(session)
}

/// Opens a session and its stream of server notifications.
pub async fn session_with_stream(address: SocketAddr) -> anyhow::Result<RawStream> {
    let mut connection = RawConnection::open(address).await?;
    let session = begin_session(&mut connection, address).await?;
    let headers = session_headers(&session);
    let request = format!(
        "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {LOCAL_KEY}\r\n\
         Accept: text/event-stream\r\n{headers}\r\n"
    );
    connection.into_stream(request.as_bytes()).await
}

/// Opens a session over the legacy SSE transport. `posts` carries the messages of all such clients.
pub async fn sse_session(address: SocketAddr, posts: &mut RawConnection) -> anyhow::Result<RawStream> {
    let mut stream = RawStream::open(address, "/sse").await?;
    let mut received = Vec::new();
    let endpoint = loop {
        stream.read(&mut received, TIMEOUT).await?;
        let text = std::str::from_utf8(&received)?;
        let data = text.split_once("event: endpoint\ndata: ").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((path, _)) = data {
            break path.trim().to_owned();
        }
    };
    ensure_success(&posts.send(&post(address, &endpoint, "", &message(1, "initialize", initialize_params()))).await?)?;
    received.clear();
    while position(&received, b"\"protocolVersion\"").is_none() {
        stream.read(&mut received, TIMEOUT).await?;
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    ensure_success(&posts.send(&post(address, &endpoint, "", &initialized)).await?)?;
    Ok(stream)
}

/// The modern equivalent: one long-lived `subscriptions/listen` request.
pub async fn open_listener(address: SocketAddr) -> anyhow::Result<RawStream> {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let request = modern_request(address, 1, "subscriptions/listen", None, params);
    let mut stream = RawConnection::open(address).await?.into_stream(&request).await?;
    let mut received = Vec::new();
    while position(&received, b"notifications/subscriptions/acknowledged").is_none() {
        stream.read(&mut received, TIMEOUT).await?;
    }
    Ok(stream)
}

fn ensure_success(answer: &RawResponse<'_>) -> anyhow::Result<()> {
    ensure!(answer.is_success(), "{}", answer.text());
    Ok(())
}

fn initialize_params() -> Value {
    json!({"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
}

fn message(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn session_headers(session: &str) -> String {
    format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {SESSIONS}\r\n")
}

fn modern_request(address: SocketAddr, id: u32, method: &str, name: Option<&str>, mut params: Value) -> Vec<u8> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers = format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n");
    if let Some(name) = name {
        headers += &format!("Mcp-Name: {name}\r\n");
    }
    post(address, "/mcp", &headers, &message(id, method, params))
}

fn post(address: SocketAddr, path: &str, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {LOCAL_KEY}\r\n\
         Accept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

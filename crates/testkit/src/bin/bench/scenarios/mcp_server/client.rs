//! A client of an MCP server over HTTP, of either era. What it sends is written once; only the number of a call changes.

use crate::{
    exchange::{Answer, Connection},
    stream::Stream,
};
use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};

const SESSIONS: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(60);
/// Of eight digits, and so are all that follow: the length of a request stays the same.
const FIRST_CALL: u32 = 10_000_000;

/// Two ways to speak the protocol over streamable HTTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// A handshake, then a session; answers come as a stream of events.
    Session,
    /// Every request stands alone and is answered as JSON, where the server can.
    Modern,
}

/// What is called, and what a right answer holds.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    pub name: &'static str,
    pub arguments: fn() -> Value,
    pub answered_with: &'static str,
}

pub struct Client {
    connection: Connection,
    request: Vec<u8>,
    /// Where the number of the call stands in the request.
    number_at: usize,
    number: u32,
    answered_with: &'static str,
}

impl Client {
    /// Ready to call: with a session, where the era has them.
    pub async fn connect(address: SocketAddr, era: Era, tool: Tool) -> anyhow::Result<Self> {
        let params = json!({"name": tool.name, "arguments": (tool.arguments)()});
        let (connection, request) = match era {
            Era::Session => {
                let mut connection = Connection::open(address).await?;
                let session = begin_session(&mut connection, address).await?;
                let headers = session_headers(&session);
                (connection, post(address, "/mcp", &headers, &message(FIRST_CALL, "tools/call", params)))
            }
            Era::Modern => {
                let request = modern(address, FIRST_CALL, "tools/call", Some(tool.name), params);
                (Connection::open(address).await?, request)
            }
        };
        let digits = FIRST_CALL.to_string();
        let number_at = position(&request, digits.as_bytes()).context("a call without a number")?;
        Ok(Self { connection, request, number_at, number: FIRST_CALL, answered_with: tool.answered_with })
    }

    pub async fn call(&mut self) -> anyhow::Result<()> {
        self.number += 1;
        let digits = self.number.to_string();
        self.request[self.number_at..self.number_at + digits.len()].copy_from_slice(digits.as_bytes());
        let answer = self.connection.ask(&self.request).await?;
        let right = answer.is_success()
            && position(answer.body, digits.as_bytes()).is_some()
            && position(answer.body, self.answered_with.as_bytes()).is_some();
        ensure!(right, "not an answer to call {digits}: {}", answer.whole());
        Ok(())
    }
}

/// The handshake; returns the id of the session.
pub async fn begin_session(connection: &mut Connection, address: SocketAddr) -> anyhow::Result<String> {
    let answer = connection.ask(&post(address, "/mcp", "", &message(1, "initialize", hello()))).await?;
    ensure!(answer.is_success(), "initialize: {}", answer.whole());
    let session = answer.header("mcp-session-id").context("no session")?.to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    accepted(&connection.ask(&post(address, "/mcp", &session_headers(&session), &initialized)).await?)?;
    Ok(session)
}

/// A session with the stream that the server speaks on unasked.
pub async fn session_with_stream(address: SocketAddr) -> anyhow::Result<Stream> {
    let mut connection = Connection::open(address).await?;
    let session = begin_session(&mut connection, address).await?;
    let headers = session_headers(&session);
    let request = format!("GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{headers}\r\n");
    connection.follow(request.as_bytes()).await
}

/// The same over the oldest transport. `posts` carries the messages of all such clients.
pub async fn sse_session(address: SocketAddr, posts: &mut Connection) -> anyhow::Result<Stream> {
    let mut stream = Stream::open(address, "/sse").await?;
    let mut heard = Vec::new();
    let endpoint = loop {
        stream.read(&mut heard, PATIENCE).await?;
        let text = std::str::from_utf8(&heard)?;
        let data = text.split_once("event: endpoint\ndata: ").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((path, _)) = data {
            break path.trim().to_owned();
        }
    };
    accepted(&posts.ask(&post(address, &endpoint, "", &message(1, "initialize", hello()))).await?)?;
    heard.clear();
    while position(&heard, b"\"protocolVersion\"").is_none() {
        stream.read(&mut heard, PATIENCE).await?;
    }
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    accepted(&posts.ask(&post(address, &endpoint, "", &initialized)).await?)?;
    Ok(stream)
}

/// What a modern client has instead: one request that is answered for as long as it listens.
pub async fn listener(address: SocketAddr) -> anyhow::Result<Stream> {
    let params = json!({"notifications": {"toolsListChanged": true}});
    let request = modern(address, 1, "subscriptions/listen", None, params);
    let mut stream = Connection::open(address).await?.follow(&request).await?;
    let mut heard = Vec::new();
    while position(&heard, b"notifications/subscriptions/acknowledged").is_none() {
        stream.read(&mut heard, PATIENCE).await?;
    }
    Ok(stream)
}

fn accepted(answer: &Answer<'_>) -> anyhow::Result<()> {
    ensure!(answer.is_success(), "{}", answer.whole());
    Ok(())
}

fn hello() -> Value {
    json!({"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
}

fn message(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn session_headers(session: &str) -> String {
    format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: {SESSIONS}\r\n")
}

fn modern(address: SocketAddr, id: u32, method: &str, name: Option<&str>, mut params: Value) -> Vec<u8> {
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
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

//! Raw MCP requests, for tests that send what a correct client would not.

use super::requests::{ApiResponse, response_to, within};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use testkit::client::TestClient;

pub const ACCEPT: &str = "application/json, text/event-stream";
pub const LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";

pub fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn initialize() -> Value {
    let client = json!({"name": "a case", "version": "1"});
    message(1, "initialize", &json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}))
}

/// Returns all JSON-RPC messages in a JSON or event-stream body.
pub fn messages(body: &str) -> Vec<Value> {
    if let Ok(one) = serde_json::from_str(body) {
        return vec![one];
    }
    body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

/// Returns the response to the request with this id.
pub fn reply(answer: &ApiResponse, id: u64) -> Value {
    let all = messages(&answer.text);
    all.into_iter().find(|message| message["id"] == id).unwrap_or_else(|| panic!("no answer to {id}: {answer:?}"))
}

/// A client of a revision with sessions, on `/mcp`.
pub struct Session {
    pub api: TestClient,
    pub id: String,
}

impl Session {
    pub async fn begin(api: &TestClient) -> Self {
        let begun = response_to(api.request(Method::POST, "/mcp").header("accept", ACCEPT).json(&initialize())).await;
        assert_eq!(reply(&begun, 1)["result"]["protocolVersion"], LEGACY, "{begun:?}");
        let session = Self { api: api.clone(), id: begun.header("mcp-session-id").to_owned() };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(response_to(session.request(Method::POST).json(&initialized)).await.status, 202);
        session
    }

    pub fn request(&self, method: Method) -> RequestBuilder {
        let request = self.api.request(method, "/mcp").header("accept", ACCEPT);
        request.header("mcp-session-id", &self.id).header("mcp-protocol-version", LEGACY)
    }

    pub async fn ask(&self, method: &str, params: Value) -> Value {
        reply(&response_to(self.request(Method::POST).json(&message(7, method, &params))).await, 7)
    }

    /// Calls a tool and returns its structured content.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let told = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert_eq!(told["result"]["isError"], false, "{told}");
        told["result"]["structuredContent"].clone()
    }

    /// Calls a tool that must fail and returns the error text.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        let told = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert_eq!(told["result"]["isError"], true, "{told}");
        told["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    pub async fn listen(&self) -> Stream {
        Stream::open(self.request(Method::GET)).await
    }
}

/// A request of the revision without sessions.
pub fn modern(api: &TestClient, id: u64, method: &str, mut params: Value) -> RequestBuilder {
    let name = ["name", "uri"].into_iter().find_map(|key| params[key].as_str().map(ToOwned::to_owned));
    let mut meta = params["_meta"].take();
    meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "a case", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    params["_meta"] = meta;
    let request = api.request(Method::POST, "/mcp").header("accept", ACCEPT).header("mcp-method", method);
    let request = request.header("mcp-protocol-version", MODERN).json(&message(id, method, &params));
    name.into_iter().fold(request, |request, name| request.header("mcp-name", name))
}

/// A stream, and the text received so far.
pub struct Stream {
    response: Response,
    pub seen: String,
}

impl Stream {
    pub async fn open(request: RequestBuilder) -> Self {
        let response = within("a stream", request.send()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { response, seen: String::new() }
    }

    pub fn header(&self, name: &str) -> String {
        self.response.headers()[name].to_str().unwrap().to_owned()
    }

    pub async fn until(&mut self, mark: &str) {
        within(mark, async {
            while !self.seen.contains(mark) {
                let chunk = self.response.chunk().await.unwrap();
                let chunk = chunk.unwrap_or_else(|| panic!("the stream ended before {mark:?}: {}", self.seen));
                self.seen.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        })
        .await;
    }

    pub async fn end(mut self) -> String {
        within("the stream to end", async {
            while let Ok(Some(chunk)) = self.response.chunk().await {
                self.seen.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        })
        .await;
        self.seen
    }
}

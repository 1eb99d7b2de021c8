//! Reads the outline of a message before it is parsed in full.

use super::response::{McpResponse, json_rpc_error};
use http::{HeaderMap, StatusCode, header};
use rmcp::model::RequestId;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::borrow::Cow;

/// The first revision without sessions; revisions are dates and compare as text.
const FIRST_MODERN_VERSION: &str = "2026-07-28";

#[derive(Deserialize)]
pub struct MessageOutline<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
struct OutlineParams<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<OutlineMeta<'a>>,
}

#[derive(Deserialize)]
struct OutlineMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    version: Option<Cow<'a, str>>,
}

impl<'a> MessageOutline<'a> {
    pub fn of(body: &'a [u8]) -> Result<Self, InvalidMessage> {
        if body.trim_ascii_start().first() == Some(&b'[') && serde_json::from_slice::<Vec<&RawValue>>(body).is_ok() {
            return Err(InvalidMessage::Batch);
        }
        serde_json::from_slice(body).map_err(|error| InvalidMessage::of(&error))
    }

    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Returns `None` if the message is not a request, or has an invalid id.
    pub fn request_id(&self) -> Option<RequestId> {
        if self.jsonrpc.as_deref() != Some("2.0") || self.result.is_some() || self.error.is_some() {
            return None;
        }
        serde_json::from_str(self.id?.get()).ok()
    }

    /// Returns whether the message is a notification, which gets no answer.
    pub fn is_notification(&self) -> bool {
        self.method.is_some() && self.id.is_none()
    }

    /// Returns whether the message requests a long-lived stream.
    pub fn is_listen(&self) -> bool {
        self.method.as_deref() == Some("subscriptions/listen")
    }

    pub fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// Returns whether the sender uses a revision without sessions. The header says so; if it is missing, the message
    /// is checked, so that the service for that revision can report the missing header.
    pub fn is_modern(&self, headers: &HeaderMap) -> bool {
        if self.is_initialize() {
            return false;
        }
        if self.method.as_deref() == Some("server/discover") {
            return true;
        }
        if let Some(version) = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok()) {
            return version >= FIRST_MODERN_VERSION;
        }
        let params = self.params.and_then(|params| serde_json::from_str::<OutlineParams<'_>>(params.get()).ok());
        params.and_then(|params| params.meta?.version).is_some_and(|version| &*version >= FIRST_MODERN_VERSION)
    }
}

/// Why a body is not a single JSON-RPC message.
#[derive(Debug)]
pub enum InvalidMessage {
    NotJson(String),
    Batch,
    NotJsonRpc,
}

impl InvalidMessage {
    pub fn of(error: &serde_json::Error) -> Self {
        if error.is_data() { Self::NotJsonRpc } else { Self::NotJson(error.to_string()) }
    }

    /// The code and the message of a JSON-RPC error.
    pub fn error(&self) -> (i64, String) {
        match self {
            Self::NotJson(why) => (-32700, format!("The body is not valid JSON: {why}")),
            Self::Batch => (-32600, "Batches are not supported; send each message separately.".into()),
            Self::NotJsonRpc => (-32600, "The body is JSON, but not a known JSON-RPC message.".into()),
        }
    }

    /// Returns a JSON-RPC error response.
    pub fn to_response(&self) -> McpResponse {
        let (code, why) = self.error();
        json_rpc_error(StatusCode::BAD_REQUEST, code, &why, &Value::Null)
    }
}

pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::{InvalidMessage, MessageOutline};
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn invalid_messages_get_a_json_rpc_error() {
        let of = |body: &str| MessageOutline::of(body.as_bytes()).map(drop).unwrap_err();
        for cut in ["", "{", "nonsense", "[", r#"{"method":"x"} more"#] {
            assert!(matches!(of(cut), InvalidMessage::NotJson(_)), "{cut}");
        }
        for batch in ["[]", r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#] {
            assert!(matches!(of(batch), InvalidMessage::Batch), "{batch}");
        }
        for other in ["7", r#"{"method":7}"#] {
            assert!(matches!(of(other), InvalidMessage::NotJsonRpc), "{other}");
        }
        assert_eq!(of("{").to_response().status(), 400);
        assert!(MessageOutline::of(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_ok());
    }

    #[test]
    fn modern_revisions_are_detected() {
        let headers = |version: &str| {
            HeaderMap::from_iter([("mcp-protocol-version".parse().unwrap(), HeaderValue::from_str(version).unwrap())])
        };
        let modern = |body: &str, headers: &HeaderMap| MessageOutline::of(body.as_bytes()).unwrap().is_modern(headers);
        let none = HeaderMap::new();
        let list = r#"{"method":"tools/list","id":1}"#;
        let by_meta =
            r#"{"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert!(modern(list, &headers("2026-07-28")) && modern(list, &headers("2099-01-01")));
        assert!(modern(by_meta, &none) && modern(r#"{"method":"server/discover"}"#, &none));
        assert!(!modern(list, &none) && !modern(list, &headers("2025-11-25")));
        assert!(!modern(r#"{"method":"initialize"}"#, &headers("2026-07-28")));
    }
}

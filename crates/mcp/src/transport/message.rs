//! What a message is, as far as it has to be known before it is read in full.

use super::reply::{Reply, refusal};
use http::{HeaderMap, StatusCode, header};
use rmcp::model::RequestId;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};
use std::borrow::Cow;

/// The first revision without sessions; revisions are dates and compare as text.
const MODERN: &str = "2026-07-28";

#[derive(Deserialize)]
pub struct Outline<'a> {
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
struct Params<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    version: Option<Cow<'a, str>>,
}

impl<'a> Outline<'a> {
    pub fn of(body: &'a [u8]) -> Result<Self, NoMessage> {
        if body.trim_ascii_start().first() == Some(&b'[') && serde_json::from_slice::<Vec<&RawValue>>(body).is_ok() {
            return Err(NoMessage::Batch);
        }
        serde_json::from_slice(body).map_err(|error| NoMessage::of(&error))
    }

    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// `None` if it is no request, or one whose id is none.
    pub fn request_id(&self) -> Option<RequestId> {
        if self.jsonrpc.as_deref() != Some("2.0") || self.result.is_some() || self.error.is_some() {
            return None;
        }
        serde_json::from_str(self.id?.get()).ok()
    }

    /// Something that nobody answers.
    pub fn is_notification(&self) -> bool {
        self.method.is_some() && self.id.is_none()
    }

    /// Asks for a stream that lasts.
    pub fn listens(&self) -> bool {
        self.method.as_deref() == Some("subscriptions/listen")
    }

    pub fn initializes(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// Whether the sender speaks a revision without sessions. The header says it; where it is missing, the message does,
    /// so that the complaint about the header comes from those who know that revision.
    pub fn is_modern(&self, headers: &HeaderMap) -> bool {
        if self.initializes() {
            return false;
        }
        if self.method.as_deref() == Some("server/discover") {
            return true;
        }
        if let Some(version) = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok()) {
            return version >= MODERN;
        }
        let params = self.params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
        params.and_then(|params| params.meta?.version).is_some_and(|version| &*version >= MODERN)
    }
}

/// Why a body is no single message of the protocol.
#[derive(Debug)]
pub enum NoMessage {
    Unreadable(String),
    Batch,
    Other,
}

impl NoMessage {
    pub fn of(error: &serde_json::Error) -> Self {
        if error.is_data() { Self::Other } else { Self::Unreadable(error.to_string()) }
    }

    /// In the words of JSON-RPC.
    pub fn refuse(&self) -> Reply {
        let (code, why) = match self {
            Self::Unreadable(why) => (-32700, format!("The body is no JSON that can be read: {why}")),
            Self::Batch => (-32600, "Batches are not taken; send each message on its own.".into()),
            Self::Other => (-32600, "The body is JSON, but no JSON-RPC message that is known here.".into()),
        };
        refusal(StatusCode::BAD_REQUEST, code, &why, &Value::Null)
    }
}

pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::{NoMessage, Outline};
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn what_is_no_message_is_refused_in_the_words_of_json_rpc() {
        let of = |body: &str| Outline::of(body.as_bytes()).map(drop).unwrap_err();
        for cut in ["", "{", "nonsense", "[", r#"{"method":"x"} more"#] {
            assert!(matches!(of(cut), NoMessage::Unreadable(_)), "{cut}");
        }
        for batch in ["[]", r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#] {
            assert!(matches!(of(batch), NoMessage::Batch), "{batch}");
        }
        for other in ["7", r#"{"method":7}"#] {
            assert!(matches!(of(other), NoMessage::Other), "{other}");
        }
        assert_eq!(of("{").refuse().status(), 400);
        assert!(Outline::of(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_ok());
    }

    #[test]
    fn eras() {
        let headers = |version: &str| {
            HeaderMap::from_iter([("mcp-protocol-version".parse().unwrap(), HeaderValue::from_str(version).unwrap())])
        };
        let modern = |body: &str, headers: &HeaderMap| Outline::of(body.as_bytes()).unwrap().is_modern(headers);
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

//! JSON-RPC messages on their way through the bridge. They are parsed only as far as forwarding needs, and never
//! rewritten.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json, value::RawValue};
use std::borrow::Cow;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
/// The request could not be forwarded. JSON-RPC defines no code for this.
pub const FORWARD_FAILED: i64 = -32000;

/// A message from the client.
#[derive(Clone, Debug)]
pub struct ClientMessage {
    pub bytes: Bytes,
    pub kind: ClientMessageKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ClientMessageKind {
    Request(ClientRequest),
    Notification {
        method: String,
        params: ClientParams,
    },
    /// A response to a request of the server.
    Response,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ClientRequest {
    /// The id as normalized JSON, for matching responses and cancellations.
    pub id: String,
    pub method: String,
    pub params: ClientParams,
}

impl ClientRequest {
    /// Revisions since 2026-07-28 have no sessions; each request names its revision.
    pub fn is_modern(&self) -> bool {
        self.params.version.is_some()
    }

    /// Returns whether the request is a subscription, which lasts until it is ended.
    pub fn is_subscription(&self) -> bool {
        self.method == "subscriptions/listen"
    }
}

/// The parameters that forwarding needs. Parameters of an unexpected type are left for the server to refuse.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct ClientParams {
    pub version: Option<String>,
    pub name: Option<String>,
    pub uri: Option<String>,
    pub task: Option<String>,
    /// The id of the request to cancel, in the form of [`ClientRequest::id`].
    pub request: Option<String>,
}

#[derive(Deserialize)]
struct RpcEnvelope<'a> {
    /// `null` is `Some`: it is not the same as a missing id.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct KnownParams<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct ParamsMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn text(json: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(json?.get()).ok()
}

/// Normalizes an id. Returns `None` if it is neither a string nor a number.
fn id(json: &RawValue) -> Option<String> {
    match serde_json::from_str(json.get()).ok()? {
        id @ (Value::String(_) | Value::Number(_)) => Some(id.to_string()),
        _ => None,
    }
}

impl ClientParams {
    fn of(json: Option<&RawValue>) -> Self {
        let Some(json) = json else { return Self::default() };
        let known: KnownParams<'_> = serde_json::from_str(json.get()).unwrap_or_default();
        let meta: ParamsMeta<'_> =
            known.meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or_default();
        Self {
            version: text(meta.version),
            name: text(known.name),
            uri: text(known.uri),
            task: text(known.task),
            request: known.request.and_then(id),
        }
    }
}

impl ClientMessage {
    /// Parses one line. The error is the response to send.
    pub fn parse(line: Vec<u8>) -> Result<Self, String> {
        let unreadable = || error("null", PARSE_ERROR, "this line is not a JSON-RPC message");
        let text = str::from_utf8(&line).map_err(|_| unreadable())?;
        if text.trim_start().starts_with('[') {
            return Err(error("null", INVALID_REQUEST, "messages are sent one by one, not in a list"));
        }
        let envelope: RpcEnvelope<'_> = match serde_json::from_str(text) {
            Ok(envelope) => envelope,
            Err(fault) if fault.is_data() => {
                return Err(error("null", INVALID_REQUEST, "this is not a JSON-RPC message"));
            }
            Err(_) => return Err(unreadable()),
        };
        let params = ClientParams::of(envelope.params);
        let kind = match (envelope.method.map(Cow::into_owned), envelope.id) {
            (Some(method), Some(json)) => match id(json) {
                Some(id) => ClientMessageKind::Request(ClientRequest { id, method, params }),
                None => return Err(error("null", INVALID_REQUEST, "a request's id is a string or a number")),
            },
            (Some(method), None) => ClientMessageKind::Notification { method, params },
            (None, Some(_)) if envelope.result.is_some() || envelope.error.is_some() => ClientMessageKind::Response,
            (None, _) => return Err(error("null", INVALID_REQUEST, "this message has neither a method nor a result")),
        };
        Ok(Self { bytes: line.into(), kind })
    }
}

/// All parameters of a message, as JSON.
pub fn params(message: &[u8]) -> Option<String> {
    let envelope: RpcEnvelope<'_> = serde_json::from_slice(message).ok()?;
    envelope.params.map(|params| params.get().to_owned())
}

/// A message from the server.
#[derive(Clone, PartialEq, Debug)]
pub struct ServerMessage {
    /// The id of the request that it answers.
    pub answers: Option<String>,
    pub method: Option<String>,
    /// The result of a successful response.
    pub result: Option<String>,
    pub error: Option<ServerRpcError>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct ServerRpcError {
    pub code: i64,
    pub message: String,
}

impl ServerMessage {
    /// Returns `None` if the text is not a JSON-RPC message.
    pub fn parse(text: &str) -> Option<Self> {
        let envelope: RpcEnvelope<'_> = serde_json::from_str(text).ok()?;
        let answers = if envelope.method.is_none() { envelope.id.and_then(id) } else { None };
        let result = envelope.result.map(|result| result.get().to_owned());
        let error = envelope.error.and_then(|error| serde_json::from_str(error.get()).ok());
        let is_message = envelope.method.is_some() || result.is_some() || error.is_some();
        is_message.then(|| Self { answers, method: envelope.method.map(Cow::into_owned), result, error })
    }
}

/// An error response of our own. `id` is JSON.
pub fn error(id: &str, code: i64, message: &str) -> String {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::{ClientMessage, ClientMessageKind, ClientParams, ClientRequest, ServerMessage, error};
    use serde_json::{Value, json};

    fn parsed(text: &str) -> ClientMessageKind {
        ClientMessage::parse(text.as_bytes().to_vec()).unwrap().kind
    }

    fn refused(line: &[u8]) -> (Value, Value) {
        let answer: Value = serde_json::from_str(&ClientMessage::parse(line.to_vec()).unwrap_err()).unwrap();
        (answer["error"]["code"].clone(), answer["id"].clone())
    }

    #[test]
    fn messages_are_classified_and_their_parameters_read() {
        let line = r#"{"jsonrpc":"2.0","id":"\u0061","method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let ClientMessageKind::Request(ClientRequest { id, method, params }) = parsed(line) else {
            panic!("a request")
        };
        assert_eq!((id.as_str(), method.as_str()), ("\"a\"", "tools/call"));
        assert_eq!((params.version.as_deref(), params.name.as_deref()), (Some("2026-07-28"), Some("x")));
        let ClientMessageKind::Notification { method, params } =
            parsed(r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#)
        else {
            panic!("a notification")
        };
        assert_eq!((method.as_str(), params.request.as_deref()), ("notifications/cancelled", Some("7")));
        assert_eq!(parsed(r#"{"id":1,"result":{}}"#), ClientMessageKind::Response);
        assert_eq!(parsed(r#"{"id":1,"error":{"code":1,"message":""}}"#), ClientMessageKind::Response);
    }

    #[test]
    fn parameters_of_an_unexpected_type_are_ignored() {
        for params in
            ["[1]", "7", r#"{"name":7,"_meta":[]}"#, r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}"#]
        {
            let ClientMessageKind::Request(request) = parsed(&format!(r#"{{"id":1,"method":"m","params":{params}}}"#))
            else {
                panic!("a request")
            };
            assert_eq!(request.params, ClientParams::default());
        }
    }

    #[test]
    fn an_invalid_line_gets_an_error_response() {
        for (line, code) in [
            (&b"hello"[..], -32700),
            (b"{\"id\":1,", -32700),
            (b"\xff\xfe", -32700),
            (b" [{\"id\":1,\"method\":\"ping\"}]", -32600),
            (b"7", -32600),
            (b"{}", -32600),
            (b"{\"id\":1}", -32600),
            (b"{\"id\":null,\"method\":\"ping\"}", -32600),
            (b"{\"id\":{},\"method\":\"ping\"}", -32600),
            (b"{\"id\":1,\"method\":7}", -32600),
        ] {
            assert_eq!(refused(line), (json!(code), Value::Null), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn responses_are_distinguished_from_other_messages() {
        let answer = ServerMessage::parse(r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#).unwrap();
        assert_eq!((answer.answers.as_deref(), answer.result.as_deref()), (Some("7"), Some(r#"{"a":1}"#)));
        let question = ServerMessage::parse(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).unwrap();
        assert_eq!((question.answers, question.method.as_deref()), (None, Some("ping")));
        let refusal = ServerMessage::parse(&error("\"a\"", -32601, "no")).unwrap();
        assert_eq!(refusal.answers.as_deref(), Some("\"a\""));
        assert_eq!(refusal.error.unwrap().code, -32601);
        for text in ["", "x", "{}", "[]", r#"{"id":1}"#, r#"{"title":"Not found","status":404}"#] {
            assert_eq!(ServerMessage::parse(text), None, "{text}");
        }
    }
}

//! Parses and writes JSON-RPC messages. Pure.

use serde_json::{Map, Value, json};

/// How messages are written. Both forms are accepted when reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcFormat {
    /// Whether each message has the field `"jsonrpc": "2.0"`.
    pub with_version_field: bool,
}

/// The error object of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    /// The error for a request with an unknown method.
    pub fn unknown_method(method: &str) -> Self {
        Self { code: -32601, message: format!("unknown method {method:?}"), data: None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RpcMessage {
    Notification { method: String, params: Value },
    Request { id: Value, method: String, params: Value },
    Response { id: Option<u64>, result: Result<Value, RpcError> },
}

/// Returns `None` if the line is not a JSON-RPC message.
pub(super) fn parse(line: &str) -> Option<RpcMessage> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(line) else { return None };
    let id = fields.remove("id").filter(|id| !id.is_null());
    if let Some(Value::String(method)) = fields.remove("method") {
        let params = fields.remove("params").unwrap_or(Value::Null);
        return Some(match id {
            Some(id) => RpcMessage::Request { id, method, params },
            None => RpcMessage::Notification { method, params },
        });
    }
    let result = match fields.remove("error").filter(|error| !error.is_null()) {
        Some(error) => Err(parse_error(error)),
        // Some programs omit an empty result; without an id this is not a response either.
        None if id.is_some() || fields.contains_key("result") => Ok(fields.remove("result").unwrap_or(Value::Null)),
        None => return None,
    };
    Some(RpcMessage::Response { id: id.as_ref().and_then(own_id), result })
}

/// Our ids are numbers; some programs return them as strings.
fn own_id(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

fn parse_error(error: Value) -> RpcError {
    let Value::Object(mut fields) = error else {
        return RpcError { code: 0, message: text_of(&error), data: None };
    };
    RpcError {
        code: fields.get("code").and_then(Value::as_i64).unwrap_or_default(),
        message: fields.get("message").map(text_of).unwrap_or_default(),
        data: fields.remove("data").filter(|data| !data.is_null()),
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl RpcFormat {
    pub(super) fn request(self, id: u64, method: &str, params: Value) -> String {
        self.line(Some(json!(id)), [("method", json!(method)), ("params", params)])
    }

    pub(super) fn notification(self, method: &str, params: Value) -> String {
        self.line(None, [("method", json!(method)), ("params", params)])
    }

    pub(super) fn response(self, id: Value, result: Result<Value, RpcError>) -> String {
        let body = match result {
            // A response must have a result, even an empty one.
            Ok(Value::Null) => ("result", json!({})),
            Ok(result) => ("result", result),
            Err(RpcError { code, message, data: None }) => ("error", json!({"code": code, "message": message})),
            Err(RpcError { code, message, data }) => ("error", json!({"code": code, "message": message, "data": data})),
        };
        self.line(Some(id), [body])
    }

    fn line<const COUNT: usize>(self, id: Option<Value>, body: [(&str, Value); COUNT]) -> String {
        let mut fields = Map::new();
        if self.with_version_field {
            fields.insert("jsonrpc".into(), json!("2.0"));
        }
        fields.extend(id.map(|id| ("id".to_owned(), id)));
        fields.extend(body.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.into(), value)));
        let mut line = Value::Object(fields).to_string();
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::{RpcError, RpcFormat, RpcMessage, parse};
    use serde_json::{Value, json};

    const BARE: RpcFormat = RpcFormat { with_version_field: false };

    #[test]
    fn message_kind_is_determined_by_its_fields() {
        let notification = RpcMessage::Notification { method: "a/b".into(), params: json!({"x": 1}) };
        assert_eq!(parse(r#"{"method":"a/b","params":{"x":1}}"#), Some(notification.clone()));
        assert_eq!(parse(r#"{"jsonrpc":"2.0","id":null,"method":"a/b","params":{"x":1}}"#), Some(notification));
        let request = RpcMessage::Request { id: json!("s-1"), method: "ask".into(), params: Value::Null };
        assert_eq!(parse(r#"{"id":"s-1","method":"ask"}"#), Some(request));
        for line in [r#"{"id":7,"result":{}}"#, r#"{"id":"7","result":{}}"#] {
            assert_eq!(parse(line), Some(RpcMessage::Response { id: Some(7), result: Ok(json!({})) }));
        }
        assert_eq!(parse(r#"{"id":7}"#), Some(RpcMessage::Response { id: Some(7), result: Ok(Value::Null) }));
    }

    #[test]
    fn parses_errors_of_any_shape() {
        let error = |line| match parse(line) {
            Some(RpcMessage::Response { result: Err(error), .. }) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            error(r#"{"id":1,"error":{"code":-32600,"message":"no","data":[1]}}"#),
            RpcError { code: -32600, message: "no".into(), data: Some(json!([1])) }
        );
        assert_eq!(error(r#"{"id":1,"error":"no"}"#), RpcError { code: 0, message: "no".into(), data: None });
        assert_eq!(error(r#"{"error":{"message":{"a":1}}}"#).message, r#"{"a":1}"#);
    }

    #[test]
    fn rejects_lines_that_are_not_messages() {
        for line in ["", "hello", "[]", "1", "{}", r#"{"method":3}"#, r#"{"jsonrpc":"2.0"}"#, "{\"id\":"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn each_message_is_one_line() {
        let line = RpcFormat { with_version_field: true }.request(1, "m", json!({"text": "a\nb"}));
        assert_eq!(line, "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"text\":\"a\\nb\"}}\n");
        assert_eq!(BARE.notification("initialized", Value::Null), "{\"method\":\"initialized\"}\n");
        assert_eq!(BARE.response(json!("x"), Ok(Value::Null)), "{\"id\":\"x\",\"result\":{}}\n");
        assert_eq!(
            BARE.response(json!(0), Err(RpcError { code: 1, message: "no".into(), data: None })),
            "{\"error\":{\"code\":1,\"message\":\"no\"},\"id\":0}\n"
        );
    }
}

//! Decodes a server's messages for rmcp. Pure.
//!
//! rmcp decodes a result by trying one type after another and drops a message that fits none. Tool lists and call
//! results are passed through undecoded, to be decoded piece by piece later; a malformed error is turned into a valid
//! one, so that its request fails at once.

use rmcp::model::{CustomResult, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::{Map, Value};

/// Returns `None` if the text is not a message.
pub fn parse(text: &str) -> Option<ServerJsonRpcMessage> {
    from_value(serde_json::from_str(text).ok()?)
}

pub fn from_value(message: Value) -> Option<ServerJsonRpcMessage> {
    let Value::Object(mut message) = message else { return None };
    if message.contains_key("method") {
        return serde_json::from_value(Value::Object(message)).ok();
    }
    let id = message.remove("id").and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    if let Some(error) = message.remove("error") {
        return Some(ServerJsonRpcMessage::error(read_error(error), id));
    }
    let result = read_result(message.remove("result")?)?;
    Some(ServerJsonRpcMessage::response(result, id?))
}

fn read_result(result: Value) -> Option<ServerResult> {
    let is_plain = |result: &Map<String, Value>| result.contains_key("tools") || result.contains_key("content");
    match result {
        Value::Object(result) if is_plain(&result) && !result.contains_key("inputRequests") => {
            Some(ServerResult::CustomResult(CustomResult(Value::Object(result))))
        }
        other => serde_json::from_value(other).ok(),
    }
}

fn read_error(error: Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = match &error {
        Value::String(text) => text.clone(),
        other => match other.get("message") {
            Some(Value::String(text)) => text.clone(),
            _ => other.to_string(),
        },
    };
    let data = error.get("data").cloned();
    ErrorData::new(code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode), message, data)
}

/// Finds the request that a too long line answers, from the start and end of the line.
pub fn request_id_of(start: &str, end: &str) -> Option<RequestId> {
    let head = ["\"result\"", "\"error\"", "\"params\"", "\"method\""].iter().filter_map(|key| start.find(key)).min();
    let in_front = start[..head?].rfind("\"id\"").and_then(|at| id_at(&start[at + 4..]));
    let behind = || {
        let (id, rest) = end.rfind("\"id\"").and_then(|at| id_at(&end[at + 4..]))?;
        let rest: String = rest.chars().filter(|c| !c.is_whitespace()).collect();
        ["}", ",\"jsonrpc\":\"2.0\"}"].contains(&rest.as_str()).then_some(id)
    };
    in_front.map(|(id, _)| id).or_else(behind)
}

fn id_at(text: &str) -> Option<(RequestId, &str)> {
    let text = text.trim_start().strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    // An id at the very end of the text may be cut off.
    let id = serde_json::from_value(values.next()?.ok()?).ok()?;
    let rest = &text[values.byte_offset()..];
    (!rest.is_empty()).then_some((id, rest))
}

#[cfg(test)]
mod tests {
    use super::{parse, request_id_of};
    use rmcp::model::{RequestId, ServerJsonRpcMessage, ServerResult};

    #[test]
    fn noise_is_not_a_message() {
        for text in ["", "Server listening on stdio", "{\"foo\":1}", "[{\"jsonrpc\":\"2.0\"}]", "7", "{\"id\":1}", "{"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn tool_lists_and_call_results_are_passed_through() {
        for result in [r#"{"tools":[{"name":7}]}"#, r#"{"content":[{"type":"hologram"}]}"#] {
            let message = parse(&format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result}}}"#));
            let Some(ServerJsonRpcMessage::Response(response)) = message else { panic!("{message:?}") };
            assert_eq!(response.id, RequestId::Number(3));
            let ServerResult::CustomResult(custom) = response.result else { panic!("{:?}", response.result) };
            assert_eq!(custom.0, serde_json::from_str::<serde_json::Value>(result).unwrap());
        }
        let hello = r#"{"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}"#;
        let message = parse(hello);
        let Some(ServerJsonRpcMessage::Response(response)) = message else { panic!("{message:?}") };
        assert!(matches!(response.result, ServerResult::InitializeResult(_)));
    }

    #[test]
    fn malformed_errors_reach_their_request() {
        for (error, code, text) in [
            (r#""boom""#, -32603, "boom"),
            (r#"{"code":-32601,"message":"no such method"}"#, -32601, "no such method"),
            (r#"{"code":"E1","message":"odd"}"#, -32603, "odd"),
            (r#"{"reason":1}"#, -32603, "{\"reason\":1}"),
        ] {
            let message = parse(&format!(r#"{{"jsonrpc":"2.0","id":4,"error":{error}}}"#));
            let Some(ServerJsonRpcMessage::Error(got)) = message else { panic!("{message:?}") };
            assert_eq!((got.id, got.error.code.0, &*got.error.message), (Some(RequestId::Number(4)), code, text));
        }
    }

    #[test]
    fn the_request_of_a_too_long_answer_is_found() {
        let number = |id| Some(RequestId::Number(id));
        for (start, end, owner) in [
            (r#"{"jsonrpc":"2.0","id":5,"result":{"content":["#, "xxx", number(5)),
            (r#"{"result":{"content":[{"id":9,"#, r#"x"}]},"jsonrpc":"2.0","id":6}"#, number(6)),
            (r#"{"result":{"content":["#, r#"x"}]},"id":7,"jsonrpc":"2.0"}"#, number(7)),
            (r#"{"result":{"content":["#, r#"x","id":8}]}}"#, None),
            ("xxx", r#""id":7}"#, None),
        ] {
            assert_eq!(request_id_of(start, end), owner, "{start} … {end}");
        }
    }
}

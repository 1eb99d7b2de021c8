//! Replaces the ids of the recorded host with those of the current host.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

/// Shorter texts are replaced only as whole JSON strings, because they could be part of other text.
const UNMISTAKABLE: usize = 16;

#[derive(Debug, Default)]
pub struct IdSubstitution {
    /// Recorded text and its replacement.
    texts: Vec<(String, String)>,
    /// Recorded and actual ids of JSON-RPC requests.
    ids: Vec<(Value, Value)>,
    /// Ids of user messages since the last result.
    uuids: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct RpcResponse {
    #[serde(skip_serializing_if = "Option::is_none")]
    jsonrpc: Option<String>,
    id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

impl IdSubstitution {
    /// Replaces the recorded text with the actual one from now on.
    pub fn text(&mut self, recorded: &str, actual: &str) {
        self.texts.retain(|(known, _)| known != recorded);
        if !recorded.is_empty() && recorded != actual {
            self.texts.push((recorded.to_owned(), actual.to_owned()));
        }
    }

    /// Learns ids from a line of the host and its recorded counterpart.
    pub fn learn(&mut self, recorded: &Value, actual: &Value) {
        for path in ["/request_id", "/uuid", "/params/threadId", "/params/sessionId"] {
            let at = |line: &Value| line.pointer(path).and_then(Value::as_str).map(str::to_owned);
            if let (Some(recorded), Some(actual)) = (at(recorded), at(actual)) {
                self.text(&recorded, &actual);
            }
        }
        if let (Some(recorded), Some(actual)) = (recorded.get("id"), actual.get("id")) {
            self.ids.retain(|(known, _)| known != recorded);
            self.ids.push((recorded.clone(), actual.clone()));
        }
        if actual["type"] == "user" {
            self.uuids.extend(actual["uuid"].as_str().map(str::to_owned));
        }
    }

    /// Returns a recorded line with the ids replaced.
    pub fn apply(&mut self, line: &str) -> String {
        let line = self.replaced(line);
        let Ok(value) = serde_json::from_str::<Value>(&line) else { return line };
        if value["type"] == "result" {
            let uuids = std::mem::take(&mut self.uuids);
            return with_uuids(line, &value, uuids);
        }
        if value.get("method").is_some() || value.get("type").is_some() {
            return line;
        }
        let Some((_, actual)) = self.ids.iter().find(|(recorded, _)| value.get("id") == Some(recorded)) else {
            return line;
        };
        let response = serde_json::from_str::<RpcResponse>(&line).map(|it| RpcResponse { id: actual.clone(), ..it });
        response.and_then(|response| serde_json::to_string(&response)).unwrap_or(line)
    }

    /// Replaces in one pass, so that replaced text is not replaced again.
    fn replaced(&self, line: &str) -> String {
        let rule = |(recorded, actual): &(String, String)| {
            let written = |text: &str| Value::from(text).to_string();
            let inside = |text: &str| written(text)[1..written(text).len() - 1].to_owned();
            match recorded.len() < UNMISTAKABLE {
                true => (written(recorded), written(actual)),
                false => (inside(recorded), inside(actual)),
            }
        };
        let rules: Vec<(String, String)> = self.texts.iter().map(rule).collect();
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        loop {
            let first = rules.iter().filter_map(|rule| Some((rest.find(&rule.0)?, rule)));
            let Some((at, (recorded, actual))) = first.min_by_key(|(at, _)| *at) else { break };
            out.push_str(&rest[..at]);
            out.push_str(actual);
            rest = &rest[at + recorded.len()..];
        }
        out.push_str(rest);
        out
    }
}

/// Adds the ids of the answered messages to a result, for hosts that send message ids although the recorded host did
/// not.
fn with_uuids(line: String, result: &Value, uuids: Vec<String>) -> String {
    let has_uuids = result["user_message_uuids"].as_array().is_some_and(|uuids| !uuids.is_empty());
    let Some(open) = line.trim_end().strip_suffix('}').filter(|_| !has_uuids && !uuids.is_empty()) else { return line };
    format!("{open},\"user_message_uuids\":{}}}", Value::from(uuids))
}

#[cfg(test)]
mod tests {
    use super::IdSubstitution;
    use serde_json::{Value, json};

    #[test]
    fn ids_of_control_requests_follow_the_host() {
        let mut substitution = IdSubstitution::default();
        let request =
            |id: &str| json!({"type": "control_request", "request_id": id, "request": {"subtype": "interrupt"}});
        substitution.learn(&request("req_1"), &request("req_2"));
        substitution.learn(&request("req_2"), &request("req_3"));
        let line = "{\"a\":\"req_1\",\"b\":\"req_2\",\"c\":\"req_12\"}";
        assert_eq!(substitution.apply(line), "{\"a\":\"req_2\",\"b\":\"req_3\",\"c\":\"req_12\"}");
    }

    #[test]
    fn long_ids_are_replaced_inside_texts_too() {
        let mut substitution = IdSubstitution::default();
        substitution.text("0123456789abcdef", "n\"w");
        assert_eq!(substitution.apply("{\"path\":\"/x/0123456789abcdef.jsonl\"}"), "{\"path\":\"/x/n\\\"w.jsonl\"}");
    }

    #[test]
    fn responses_use_the_id_of_the_actual_request() {
        let mut substitution = IdSubstitution::default();
        substitution.learn(&json!({"id": 3, "method": "turn/start"}), &json!({"id": "x-9", "method": "turn/start"}));
        let answer = substitution.apply("{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"id\":3,\"b\":1,\"a\":2}}");
        assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":\"x-9\",\"result\":{\"id\":3,\"b\":1,\"a\":2}}");
        let error = substitution.apply("{\"id\":3,\"error\":{\"code\":1}}");
        assert_eq!(error, "{\"id\":\"x-9\",\"error\":{\"code\":1}}");
        // Requests of the CLI keep their ids.
        for own in ["{\"id\":3,\"method\":\"item/tool/call\"}", "{\"id\":4,\"result\":{}}", "no json"] {
            assert_eq!(substitution.apply(own), own);
        }
    }

    #[test]
    fn resumed_threads_keep_the_id_of_the_host() {
        let mut substitution = IdSubstitution::default();
        let resume =
            |id: i32, thread: &str| json!({"id": id, "method": "thread/resume", "params": {"threadId": thread}});
        substitution.learn(&resume(2, "01a1e0e2-7c0e-7010"), &resume(7, "mine"));
        let line = "{\"method\":\"turn/started\",\"params\":{\"threadId\":\"01a1e0e2-7c0e-7010\"}}";
        assert_eq!(substitution.apply(line), "{\"method\":\"turn/started\",\"params\":{\"threadId\":\"mine\"}}");
    }

    #[test]
    fn results_list_the_messages_they_answer() {
        let mut substitution = IdSubstitution::default();
        substitution.learn(&json!({"type": "user"}), &json!({"type": "user", "uuid": "u1"}));
        let result_line: Value = serde_json::from_str(&substitution.apply("{\"type\":\"result\"}")).unwrap();
        assert_eq!(result_line["user_message_uuids"], json!(["u1"]));
        assert_eq!(substitution.apply("{\"type\":\"result\"}"), "{\"type\":\"result\"}");
        let named = |uuid: &str| json!({"type": "user", "uuid": uuid});
        substitution.learn(&named("recorded-0000000000"), &named("u2"));
        let result_line = substitution.apply("{\"type\":\"result\",\"user_message_uuids\":[\"recorded-0000000000\"]}");
        assert_eq!(result_line, "{\"type\":\"result\",\"user_message_uuids\":[\"u2\"]}");
    }
}

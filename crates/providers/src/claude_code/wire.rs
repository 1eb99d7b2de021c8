//! What we say to Claude Code: one JSON text a line.

use crate::host_tools;
use serde_json::{Value, json};

/// Which of our hooks a callback is for. There is one.
const POLICY_HOOK: &str = "greenroom_policy";

pub(super) fn user(prompt: &str, uuid: &str) -> String {
    line(&json!({
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": null,
        "session_id": "",
        "uuid": uuid,
    }))
}

pub(super) fn request(id: &str, request: &Value) -> String {
    line(&json!({"type": "control_request", "request_id": id, "request": request}))
}

pub(super) fn reply(id: &str, answer: &Value) -> String {
    let response = json!({"subtype": "success", "request_id": id, "response": answer});
    line(&json!({"type": "control_response", "response": response}))
}

pub(super) fn refuse(id: &str, error: &str) -> String {
    let response = json!({"subtype": "error", "request_id": id, "error": error});
    line(&json!({"type": "control_response", "response": response}))
}

/// The first request. The system prompt goes here and not on the command line, where one argument may have 128 KB at
/// most and everybody on the machine can read it. It is appended: the program's own prompt teaches its tools.
pub(super) fn initialize(system_prompt: Option<&str>) -> Value {
    let mut request = json!({
        "subtype": "initialize",
        "hooks": {"PreToolUse": [{"matcher": null, "hookCallbackIds": [POLICY_HOOK]}]},
        "sdkMcpServers": [host_tools::SERVER],
    });
    if let Some(prompt) = system_prompt {
        request["appendSystemPrompt"] = prompt.into();
    }
    request
}

pub(super) fn interrupt() -> Value {
    json!({"subtype": "interrupt"})
}

/// Without a model: the program's default.
pub(super) fn set_model(model: Option<&str>) -> Value {
    let mut request = json!({"subtype": "set_model"});
    if let Some(model) = model {
        request["model"] = model.into();
    }
    request
}

/// A line that is not JSON ends the program, and some readers take these two characters for the end of a line
/// (invariant 16).
fn line(value: &Value) -> String {
    let mut line = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{initialize, user};
    use serde_json::Value;

    #[test]
    fn invariant_16_content_is_data_a_prompt_is_one_line() {
        let prompt = "one\ntwo\r\nthree\u{2028}four\u{2029}\u{0}\"}";
        let line = user(prompt, "u");
        assert!(line.ends_with('\n') && line.trim_end().lines().count() == 1);
        assert!(!line.contains(['\u{2028}', '\u{2029}']));
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["message"]["content"], prompt);
    }

    #[test]
    fn the_system_prompt_is_appended() {
        assert_eq!(initialize(Some("Be kind."))["appendSystemPrompt"], "Be kind.");
        assert!(initialize(None).get("appendSystemPrompt").is_none());
    }
}

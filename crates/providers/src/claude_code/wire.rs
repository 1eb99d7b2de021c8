//! Builds the messages sent to Claude Code: one JSON text per line.

use crate::host_tools;
use serde_json::{Value, json};

/// The id of our only hook.
const POLICY_HOOK: &str = "greenroom_policy";

pub(super) fn user_message(prompt: &str, uuid: &str) -> String {
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

pub(super) fn error_reply(id: &str, error: &str) -> String {
    let response = json!({"subtype": "error", "request_id": id, "error": error});
    line(&json!({"type": "control_response", "response": response}))
}

/// The first request. The system prompt is sent here and not on the command line, where an argument is limited to 128
/// KB and visible to every user of the machine. It is appended, because the program's own prompt explains its tools.
pub(super) fn initialize(system_prompt: Option<&str>) -> Value {
    let mut request = json!({
        "subtype": "initialize",
        "hooks": {"PreToolUse": [{"matcher": null, "hookCallbackIds": [POLICY_HOOK]}]},
        "sdkMcpServers": [host_tools::SERVER_NAME],
    });
    if let Some(prompt) = system_prompt {
        request["appendSystemPrompt"] = prompt.into();
    }
    request
}

/// Also removes messages that wait in the program's queue: they belong to the turn.
pub(super) fn interrupt() -> Value {
    json!({"subtype": "interrupt", "cancel_queued": true})
}

/// Removes one message from the program's queue.
pub(super) fn cancel_message(uuid: &str) -> Value {
    json!({"subtype": "cancel_async_message", "message_uuid": uuid})
}

/// Without a model, selects the program's default.
pub(super) fn set_model(model: Option<&str>) -> Value {
    let mut request = json!({"subtype": "set_model"});
    if let Some(model) = model {
        request["model"] = model.into();
    }
    request
}

/// An invalid line ends the program, and some readers treat these two characters as line ends (invariant 16).
fn line(value: &Value) -> String {
    let mut line = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{initialize, user_message};
    use serde_json::Value;

    #[test]
    fn invariant_16_content_is_data_a_prompt_is_one_line() {
        let prompt = "one\ntwo\r\nthree\u{2028}four\u{2029}\u{0}\"}";
        let line = user_message(prompt, "u");
        assert!(line.ends_with('\n') && line.trim_end().lines().count() == 1);
        assert!(!line.contains(['\u{2028}', '\u{2029}']));
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["message"]["content"], prompt);
    }

    #[test]
    fn system_prompt_is_appended() {
        assert_eq!(initialize(Some("Be kind."))["appendSystemPrompt"], "Be kind.");
        assert!(initialize(None).get("appendSystemPrompt").is_none());
    }
}

//! Classifies a line from the host, precisely enough to match it with a line of a transcript.

use serde_json::Value;
use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostLineKind {
    /// A prompt in Claude's protocol; in the others it is a request.
    User,
    /// By subtype in Claude's protocol, by method in JSON-RPC.
    Request(String),
    Notification(String),
    /// The reply to a request of the CLI: its id, and the decision if it is one.
    Answer {
        id: String,
        verdict: Option<String>,
    },
    Other(String),
}

/// Requests that drive the conversation; they must be in the transcript.
const ESSENTIAL: &[&str] = &[
    "thread/start",
    "thread/resume",
    "thread/fork",
    "turn/start",
    "turn/steer",
    "session/new",
    "session/load",
    "session/resume",
    "session/prompt",
];

impl HostLineKind {
    pub fn of(line: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        match line["type"].as_str() {
            Some("user") => return Self::User,
            Some("control_request") => {
                return Self::Request(format!("control_request {}", text(&line["request"]["subtype"])));
            }
            Some("control_response") => {
                let response = &line["response"];
                return Self::Answer { id: text(&response["request_id"]), verdict: control_verdict(response) };
            }
            Some(other) => return Self::Other(other.to_owned()),
            None => {}
        }
        match (line["method"].as_str(), line.get("id")) {
            (Some(method), Some(_)) => Self::Request(method.to_owned()),
            (Some(method), None) => Self::Notification(method.to_owned()),
            (None, Some(id)) => Self::Answer { id: id.to_string(), verdict: rpc_verdict(&line["result"]) },
            (None, None) => Self::Other("neither a Claude message nor JSON-RPC".to_owned()),
        }
    }

    /// Whether a line of kind `actual` matches the recorded kind `self`.
    pub fn accepts(&self, actual: &Self) -> bool {
        match (self, actual) {
            (Self::Answer { id, verdict }, Self::Answer { id: other, verdict: decided }) => {
                id == other && (verdict.is_none() || decided.is_none() || verdict == decided)
            }
            _ => self == actual,
        }
    }

    /// Whether a host may send this line although the recorded host did not.
    pub fn may_be_extra(&self) -> bool {
        match self {
            Self::Request(name) => !ESSENTIAL.contains(&name.as_str()),
            Self::Notification(_) => true,
            // ACP cancels a pending permission request this way.
            Self::Answer { verdict, .. } => verdict.as_deref() == Some("cancelled"),
            Self::User | Self::Other(_) => false,
        }
    }
}

impl fmt::Display for HostLineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("a user's message"),
            Self::Request(name) => write!(f, "the request {name}"),
            Self::Notification(name) => write!(f, "the notification {name}"),
            Self::Answer { id, verdict: Some(verdict) } => write!(f, "the answer {verdict:?} to {id}"),
            Self::Answer { id, verdict: None } => write!(f, "an answer to {id}"),
            Self::Other(name) => write!(f, "something else ({name})"),
        }
    }
}

/// Claude treats an error as a denial.
fn control_verdict(response: &Value) -> Option<String> {
    if response["subtype"] == "error" {
        return Some("deny".to_owned());
    }
    let inner = &response["response"];
    inner["behavior"].as_str().or_else(|| inner["action"].as_str()).map(str::to_owned)
}

/// Codex has a decision, elicitations have an action, ACP has an option id.
fn rpc_verdict(result: &Value) -> Option<String> {
    let outcome = &result["outcome"];
    let found = [&result["decision"], &result["action"], &outcome["optionId"], &outcome["outcome"]];
    found.into_iter().find_map(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::HostLineKind;
    use serde_json::{Value, json};

    fn kind(line: Value) -> HostLineKind {
        HostLineKind::of(&line)
    }

    fn answer(id: &str, verdict: Option<&str>) -> HostLineKind {
        HostLineKind::Answer { id: id.into(), verdict: verdict.map(Into::into) }
    }

    #[test]
    fn lines_of_both_protocols_are_classified() {
        let control = json!({"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}});
        assert_eq!(kind(control), HostLineKind::Request("control_request interrupt".into()));
        assert_eq!(kind(json!({"type": "user", "message": {}})), HostLineKind::User);
        assert_eq!(kind(json!({"id": 1, "method": "turn/start"})), HostLineKind::Request("turn/start".into()));
        assert_eq!(kind(json!({"method": "initialized"})), HostLineKind::Notification("initialized".into()));
        assert!(matches!(kind(json!({"type": "novel"})), HostLineKind::Other(_)));
        assert!(matches!(kind(json!([1])), HostLineKind::Other(_)));
    }

    #[test]
    fn answers_match_by_id_and_verdict() {
        let control = |response: Value| kind(json!({"type": "control_response", "response": response}));
        let allow = control(json!({"subtype": "success", "request_id": "a", "response": {"behavior": "allow"}}));
        assert_eq!(allow, answer("a", Some("allow")));
        assert_eq!(control(json!({"subtype": "error", "request_id": "a"})), answer("a", Some("deny")));
        let hook = control(json!({"subtype": "success", "request_id": "a", "response": {"continue": true}}));
        assert_eq!(hook, answer("a", None));
        assert_eq!(kind(json!({"id": 0, "result": {"decision": "accept"}})), answer("0", Some("accept")));
        let selected = json!({"id": 0, "result": {"outcome": {"outcome": "selected", "optionId": "proceed_once"}}});
        assert_eq!(kind(selected), answer("0", Some("proceed_once")));
        let cancelled = kind(json!({"id": 0, "result": {"outcome": {"outcome": "cancelled"}}}));
        assert!(cancelled.may_be_extra());

        assert!(allow.accepts(&allow) && allow.accepts(&hook));
        assert!(!allow.accepts(&answer("a", Some("deny"))) && !allow.accepts(&answer("b", Some("allow"))));
    }

    #[test]
    fn essential_lines_are_never_extra() {
        assert!(HostLineKind::Request("control_request initialize".into()).may_be_extra());
        assert!(HostLineKind::Request("model/list".into()).may_be_extra());
        assert!(HostLineKind::Notification("session/cancel".into()).may_be_extra());
        for kind in [HostLineKind::User, HostLineKind::Request("turn/start".into()), answer("a", Some("allow"))] {
            assert!(!kind.may_be_extra(), "{kind}");
        }
    }
}

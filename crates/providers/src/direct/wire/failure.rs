//! What can go wrong between us and a model, and whether asking again can help. Pure.

use crate::direct::conversation::floor;
use domain::run::RunError;
use serde_json::Value;
use std::time::Duration;

/// What a vendor says about its own errors is quoted up to here.
const QUOTED_BYTES: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: Kind,
    /// For people; without secrets.
    pub message: String,
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key is missing, wrong or not allowed to do this.
    Authentication,
    /// Nothing is left to pay with.
    Quota,
    UnknownModel,
    /// More than the model's context holds.
    TooLong,
    /// The request itself is wrong.
    Refused,
    RateLimited,
    Overloaded,
    Server,
    Unreachable,
    /// No answer, or none that goes on, in time.
    Silent,
    /// The connection was lost in the middle.
    Cut,
    /// Not what the API says.
    Garbled,
}

impl Kind {
    /// Whether it may be gone when asked again.
    pub fn is_passing(self) -> bool {
        matches!(
            self,
            Self::RateLimited | Self::Overloaded | Self::Server | Self::Unreachable | Self::Silent | Self::Cut
        )
    }

    pub fn code(self) -> &'static str {
        match self {
            Self::Authentication => "authentication_failed",
            Self::Quota => "model_quota",
            Self::UnknownModel => "model_unknown",
            Self::TooLong => "model_context_full",
            Self::Refused => "model_refused",
            Self::RateLimited => "model_rate_limited",
            Self::Overloaded => "model_overloaded",
            Self::Server => "model_failed",
            Self::Unreachable => "model_unreachable",
            Self::Silent => "model_silent",
            Self::Cut => "model_cut_off",
            Self::Garbled => "model_garbled",
        }
    }

    /// By HTTP status, and what the body says where that is clearer.
    fn of(status: u16, said: &str) -> Self {
        let said = said.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        match status {
            401 | 403 => Self::Authentication,
            402 => Self::Quota,
            429 if says(&["insufficient_quota", "credit balance"]) => Self::Quota,
            400 if says(&["credit balance"]) => Self::Quota,
            400 | 413 | 422
                if says(&[
                    "context_length",
                    "context length",
                    "prompt is too long",
                    "too many tokens",
                    "maximum context",
                ]) || status == 413 =>
            {
                Self::TooLong
            }
            404 => Self::UnknownModel,
            408 | 409 | 425 => Self::Server,
            429 => Self::RateLimited,
            529 => Self::Overloaded,
            503 if says(&["overloaded"]) => Self::Overloaded,
            500.. => Self::Server,
            _ => Self::Refused,
        }
    }
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// An answer that is none.
    pub fn of_status(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body);
        let parsed: Value = serde_json::from_str(&body).unwrap_or_default();
        let kind = Kind::of(status, &body);
        let message = match kind {
            // Some vendors repeat a part of the key.
            Kind::Authentication => format!("the model's API refused the key (status {status})"),
            _ => format!("the model's API answered with status {status}: {}", quoted(said(&parsed).unwrap_or(&body))),
        };
        Self { kind, message, retry_after }
    }

    /// An error that comes inside of a stream that began well.
    pub fn of_event(event: &Value) -> Self {
        let error = event.get("error").unwrap_or(event);
        let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match (word("type"), word("code")) {
            ("overloaded_error", _) => Kind::Overloaded,
            ("rate_limit_error", _) | (_, "rate_limit_exceeded") => Kind::RateLimited,
            ("authentication_error" | "permission_error", _) | (_, "invalid_api_key") => Kind::Authentication,
            ("not_found_error", _) | (_, "model_not_found") => Kind::UnknownModel,
            (_, "context_length_exceeded") => Kind::TooLong,
            ("insufficient_quota" | "billing_error", _) => Kind::Quota,
            ("invalid_request_error", _) => Kind::Refused,
            _ => Kind::Server,
        };
        let message = match kind {
            Kind::Authentication => "the model's API refused the key".to_owned(),
            _ => format!("the model's API reported: {}", quoted(said(event).unwrap_or("an error without words"))),
        };
        Self::new(kind, message)
    }

    /// The end of a run, with what to do about it.
    pub fn error(&self, advice: &str) -> RunError {
        let message = &self.message;
        let message = match self.kind {
            Kind::Authentication => format!("{message}. {advice}"),
            Kind::Quota => format!("{message}. The account has nothing left to spend; look at its billing page."),
            Kind::UnknownModel => format!("{message}. Name a model that this API has in the agent's settings."),
            Kind::TooLong => {
                format!("{message}. Set model_options.context_window of the agent to what the model holds.")
            }
            Kind::Unreachable => format!("{message}. Look whether the address is right and the service runs."),
            _ => message.clone(),
        };
        RunError::new(self.kind.code(), message)
    }
}

/// The words in an error of any vendor's.
fn said(value: &Value) -> Option<&str> {
    let error = value.get("error").unwrap_or(value);
    error.as_str().or_else(|| error.get("message")?.as_str()).or_else(|| value.get("detail")?.as_str())
}

fn quoted(text: &str) -> String {
    let text = text.trim();
    text[..floor(text, QUOTED_BYTES)].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{Failure, Kind};
    use serde_json::json;

    #[test]
    fn statuses_and_what_the_body_adds() {
        for (status, body, kind) in [
            (401, "{}", Kind::Authentication),
            (403, "{}", Kind::Authentication),
            (429, r#"{"error":{"message":"slow down"}}"#, Kind::RateLimited),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, Kind::Quota),
            (400, r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000"}}"#, Kind::TooLong),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, Kind::TooLong),
            (400, r#"{"error":{"message":"bad tool"}}"#, Kind::Refused),
            (404, "", Kind::UnknownModel),
            (500, "<html>", Kind::Server),
            (529, "{}", Kind::Overloaded),
        ] {
            assert_eq!(Failure::of_status(status, None, body.as_bytes()).kind, kind, "{status} {body}");
        }
        let shown = Failure::of_status(500, None, b"a\x1b[2Jb").message;
        assert!(shown.ends_with("a [2Jb"), "{shown}");
    }

    #[test]
    fn invariant_17_secrets_stay_a_key_that_the_vendor_repeats_is_not_quoted() {
        let body = br#"{"error":{"message":"Incorrect API key provided: sk-abcdef"}}"#;
        assert!(!Failure::of_status(401, None, body).message.contains("sk-"));
        let event = json!({"error": {"type": "authentication_error", "message": "invalid x-api-key sk-abcdef"}});
        assert!(!Failure::of_event(&event).message.contains("sk-"));
    }

    #[test]
    fn errors_inside_a_stream() {
        let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert_eq!(Failure::of_event(&overloaded).kind, Kind::Overloaded);
        assert!(Failure::of_event(&overloaded).message.ends_with("Overloaded"));
        assert_eq!(
            Failure::of_event(&json!({"error": "out of memory"})).message,
            "the model's API reported: out of memory"
        );
    }
}

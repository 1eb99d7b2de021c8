//! Failures of a model API, and whether a retry can help. Pure.

use domain::run::RunError;
use serde_json::Value;
use std::time::Duration;

/// A vendor's error message is quoted up to this length.
const QUOTED_BYTES: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFailure {
    pub kind: ModelFailureKind,
    /// For users; contains no secrets.
    pub message: String,
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelFailureKind {
    /// The key is missing, invalid or has no permission.
    Authentication,
    /// The account has no credit left.
    Quota,
    UnknownModel,
    /// The request exceeds the model's context window.
    ContextTooLong,
    /// The request is invalid.
    Refused,
    RateLimited,
    Overloaded,
    ServerError,
    Unreachable,
    /// No response, or no further data, in time.
    Timeout,
    /// The connection was lost during the answer.
    Disconnected,
    /// The response does not follow the API.
    InvalidResponse,
}

impl ModelFailureKind {
    /// Returns whether a retry may succeed.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::ServerError
                | Self::Unreachable
                | Self::Timeout
                | Self::Disconnected
        )
    }

    pub fn code(self) -> &'static str {
        match self {
            Self::Authentication => "authentication_failed",
            Self::Quota => "model_quota",
            Self::UnknownModel => "model_unknown",
            Self::ContextTooLong => "model_context_full",
            Self::Refused => "model_refused",
            Self::RateLimited => "model_rate_limited",
            Self::Overloaded => "model_overloaded",
            Self::ServerError => "model_failed",
            Self::Unreachable => "model_unreachable",
            Self::Timeout => "model_silent",
            Self::Disconnected => "model_cut_off",
            Self::InvalidResponse => "model_garbled",
        }
    }

    /// Classifies by HTTP status, and by the body where that is clearer.
    fn of(status: u16, body: &str) -> Self {
        let body = body.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| body.contains(word));
        match status {
            // Google rejects a key with status 400.
            400 if says(&["api_key_invalid", "api key not valid", "api key expired"]) => Self::Authentication,
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
                    "exceeds the maximum number of tokens",
                ]) || status == 413 =>
            {
                Self::ContextTooLong
            }
            404 => Self::UnknownModel,
            408 | 409 | 425 => Self::ServerError,
            429 => Self::RateLimited,
            529 => Self::Overloaded,
            503 if says(&["overloaded"]) => Self::Overloaded,
            500.. => Self::ServerError,
            _ => Self::Refused,
        }
    }
}

impl ModelFailure {
    pub fn new(kind: ModelFailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// From an error response.
    pub fn from_status(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body);
        let parsed: Value = serde_json::from_str(&body).unwrap_or_default();
        let kind = ModelFailureKind::of(status, &body);
        let retry_after = retry_after.or_else(|| retry_delay(&parsed));
        let message = match kind {
            // Not quoted: some vendors repeat a part of the key.
            ModelFailureKind::Authentication => format!("the model's API rejected the key (status {status})"),
            _ => {
                format!("the model's API returned status {status}: {}", quoted(error_message(&parsed).unwrap_or(&body)))
            }
        };
        Self { kind, message, retry_after }
    }

    /// From an error event inside of a stream.
    pub fn from_event(event: &Value) -> Self {
        let error = event.get("error").unwrap_or(event);
        let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = match (word("type"), word("code")) {
            ("overloaded_error", _) => ModelFailureKind::Overloaded,
            ("rate_limit_error", _) | (_, "rate_limit_exceeded") => ModelFailureKind::RateLimited,
            ("authentication_error" | "permission_error", _) | (_, "invalid_api_key") => {
                ModelFailureKind::Authentication
            }
            ("not_found_error", _) | (_, "model_not_found") => ModelFailureKind::UnknownModel,
            (_, "context_length_exceeded") => ModelFailureKind::ContextTooLong,
            ("insufficient_quota" | "billing_error", _) | (_, "insufficient_quota") => ModelFailureKind::Quota,
            ("invalid_request_error", _) | (_, "invalid_prompt") => ModelFailureKind::Refused,
            _ => match error.get("code").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok()) {
                // Google's errors have the HTTP status as their code.
                Some(status) => ModelFailureKind::of(status, &event.to_string()),
                None => ModelFailureKind::ServerError,
            },
        };
        let message = match kind {
            ModelFailureKind::Authentication => "the model's API rejected the key".to_owned(),
            _ => format!(
                "the model's API reported: {}",
                quoted(error_message(event).unwrap_or("an error without a message"))
            ),
        };
        Self::new(kind, message)
    }

    /// The error of the run, with advice on what to do.
    pub fn to_run_error(&self, advice: &str) -> RunError {
        let message = &self.message;
        let message = match self.kind {
            ModelFailureKind::Authentication => format!("{message}. {advice}"),
            ModelFailureKind::Quota => format!("{message}. The account has no credit left; check its billing page."),
            ModelFailureKind::UnknownModel => format!("{message}. Set a model of this API in the agent's settings."),
            ModelFailureKind::ContextTooLong => {
                format!("{message}. Set the agent's model_options.context_window to the model's context window.")
            }
            ModelFailureKind::Unreachable => format!("{message}. Check the address and that the service is running."),
            _ => message.clone(),
        };
        RunError::new(self.kind.code(), message)
    }
}

/// Extracts the message of an error, whatever the vendor.
fn error_message(value: &Value) -> Option<&str> {
    let error = value.get("error").unwrap_or(value);
    error.as_str().or_else(|| error.get("message")?.as_str()).or_else(|| value.get("detail")?.as_str())
}

/// The delay that Google asks for: `{"error": {"details": [{"retryDelay": "30s"}]}}`.
fn retry_delay(value: &Value) -> Option<Duration> {
    let details = value.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

fn quoted(text: &str) -> String {
    let text = text.trim();
    text[..text.floor_char_boundary(QUOTED_BYTES)].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{ModelFailure, ModelFailureKind};
    use serde_json::json;

    #[test]
    fn classifies_by_status_and_body() {
        for (status, body, kind) in [
            (401, "{}", ModelFailureKind::Authentication),
            (403, "{}", ModelFailureKind::Authentication),
            (429, r#"{"error":{"message":"slow down"}}"#, ModelFailureKind::RateLimited),
            (429, r#"{"error":{"code":"insufficient_quota"}}"#, ModelFailureKind::Quota),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000"}}"#,
                ModelFailureKind::ContextTooLong,
            ),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, ModelFailureKind::ContextTooLong),
            (400, r#"{"error":{"message":"bad tool"}}"#, ModelFailureKind::Refused),
            (404, "", ModelFailureKind::UnknownModel),
            (
                400,
                r#"{"error":{"status":"INVALID_ARGUMENT","message":"API key not valid."}}"#,
                ModelFailureKind::Authentication,
            ),
            (
                400,
                r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)."}}"#,
                ModelFailureKind::ContextTooLong,
            ),
            (500, "<html>", ModelFailureKind::ServerError),
            (529, "{}", ModelFailureKind::Overloaded),
        ] {
            assert_eq!(ModelFailure::from_status(status, None, body.as_bytes()).kind, kind, "{status} {body}");
        }
        let shown = ModelFailure::from_status(500, None, b"a\x1b[2Jb").message;
        assert!(shown.ends_with("a [2Jb"), "{shown}");
    }

    #[test]
    fn invariant_17_secrets_stay_a_key_that_the_vendor_repeats_is_not_quoted() {
        let body = br#"{"error":{"message":"Incorrect API key provided: sk-abcdef"}}"#;
        assert!(!ModelFailure::from_status(401, None, body).message.contains("sk-"));
        let event = json!({"error": {"type": "authentication_error", "message": "invalid x-api-key sk-abcdef"}});
        assert!(!ModelFailure::from_event(&event).message.contains("sk-"));
    }

    #[test]
    fn classifies_error_events() {
        let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        assert_eq!(ModelFailure::from_event(&overloaded).kind, ModelFailureKind::Overloaded);
        assert!(ModelFailure::from_event(&overloaded).message.ends_with("Overloaded"));
        for (error, kind) in [
            (json!({"code": 503, "status": "UNAVAILABLE"}), ModelFailureKind::ServerError),
            (json!({"code": 429, "status": "RESOURCE_EXHAUSTED"}), ModelFailureKind::RateLimited),
            (json!({"code": "insufficient_quota"}), ModelFailureKind::Quota),
            (json!({"code": "server_error"}), ModelFailureKind::ServerError),
        ] {
            assert_eq!(ModelFailure::from_event(&json!({"error": error})).kind, kind, "{error}");
        }
        let wait = br#"{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"1.5s"}]}}"#;
        let failure = ModelFailure::from_status(429, None, wait);
        assert_eq!(failure.retry_after, Some(std::time::Duration::from_millis(1500)));
        assert_eq!(
            ModelFailure::from_event(&json!({"error": "out of memory"})).message,
            "the model's API reported: out of memory"
        );
    }
}

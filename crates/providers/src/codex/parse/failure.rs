//! Converts the errors of Codex into run errors.

use super::text;
use domain::run::RunError;
use serde_json::Value;

pub const AUTHENTICATION: &str = "authentication_failed";

pub const HOW_TO_LOG_IN: &str = "Run `codex login` as the person who runs the server and let Greenroom share that login, \
                                 or set OPENAI_API_KEY in the server's environment.";

const MAX_CHARS: usize = 500;

/// Converts a turn's error: a message, and `codexErrorInfo` as a string or as an object with an HTTP status.
pub fn failure(error: &Value) -> RunError {
    let info = error.get("codexErrorInfo").unwrap_or(&Value::Null);
    let code = info.as_str().or_else(|| info.as_object()?.keys().next().map(String::as_str)).unwrap_or_default();
    let http = info.as_object().and_then(|info| info.values().next()?.get("httpStatusCode")?.as_u64());
    let message = message(error);
    let is_missing_key = message.starts_with("Missing environment variable");
    match (code, http) {
        ("unauthorized", _) | (_, Some(401 | 403)) => not_logged_in(&message),
        _ if is_missing_key => not_logged_in(&message),
        ("modelNotFound", _) | (_, Some(404)) => RunError::new(
            "model_not_found",
            format!("Codex cannot use this model: {message}. Choose another for the agent."),
        ),
        ("usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded", _) | (_, Some(429)) => {
            RunError::new("rate_limited", format!("OpenAI's limit is reached: {message}"))
        }
        ("contextWindowExceeded", _) => RunError::new(
            "context_window_exceeded",
            format!(
                "The conversation is too long for the model: {message}. Start a new room, or choose another model."
            ),
        ),
        ("sandboxError", _) => RunError::new("sandbox_error", format!("Codex's sandbox failed: {message}")),
        _ => RunError::new("api_error", message),
    }
}

pub fn not_logged_in(message: &str) -> RunError {
    RunError::new(
        AUTHENTICATION,
        format!("Codex is not logged in, or its key was refused ({message}). {HOW_TO_LOG_IN}"),
    )
}

/// Some messages are JSON from the API; this extracts the readable message.
fn message(error: &Value) -> String {
    let message = text(error, "message").unwrap_or("no reason given");
    let inner = serde_json::from_str::<Value>(message).ok();
    let sentence = inner.as_ref().and_then(|body| text(body.get("error")?, "message"));
    let message = sentence.unwrap_or(message).trim_end_matches('.');
    match text(error, "additionalDetails") {
        // The retry notice itself does not matter here.
        Some(details) if message.starts_with("Reconnecting") => shortened(details, None),
        details => shortened(message, details),
    }
}

/// Joins and shortens a message; details may be a full API response.
pub fn shortened(message: &str, details: Option<&str>) -> String {
    let whole = match details {
        Some(details) if details != message => format!("{message}: {details}"),
        _ => message.to_owned(),
    };
    match whole.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} …", &whole[..end]),
        None => whole,
    }
}

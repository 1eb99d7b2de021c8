//! How a turn ended, with failures as messages that users can act on.

use super::parse::text;
use domain::run::RunError;
use serde_json::Value;

const LOG_IN: &str = "Set ANTHROPIC_API_KEY (or CLAUDE_CODE_OAUTH_TOKEN, made with `claude setup-token`) in the \
                      server's environment and restart it, or log in with `claude` as the user that runs the server.";

/// The line that ends a turn.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Finished {
    pub end: ClaudeTurnEnd,
    /// The uuids of our messages that it answers; empty in versions that do not report them.
    pub messages: Vec<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum ClaudeTurnEnd {
    Completed,
    /// Stopped by an interrupt.
    Interrupted,
    Failed(RunError),
}

impl Finished {
    /// Uses `is_error`, because the subtype is `success` even if the API refused the request.
    pub fn of(result: &Value, error: Option<String>) -> Self {
        let messages = result["user_message_uuids"].as_array().into_iter().flatten();
        let messages = messages.filter_map(Value::as_str).map(str::to_owned).collect();
        let end = if result["is_error"] != true {
            ClaudeTurnEnd::Completed
        } else if text(result, "terminal_reason").is_some_and(|reason| reason.starts_with("aborted")) {
            ClaudeTurnEnd::Interrupted
        } else {
            ClaudeTurnEnd::Failed(failed(result, error.as_deref()))
        };
        Self { end, messages }
    }

    pub fn is_success(&self) -> bool {
        self.end == ClaudeTurnEnd::Completed
    }
}

fn failed(result: &Value, error: Option<&str>) -> RunError {
    let errors: Vec<&str> = result["errors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let reason = text(result, "result").map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let reason = reason.unwrap_or_else(|| errors.join("; "));
    let status = result["api_error_status"].as_u64();
    match (error, status) {
        (Some("authentication_failed"), _) | (_, Some(401)) => not_logged_in(&reason),
        (Some("model_not_found"), _) | (_, Some(404)) => {
            RunError::new("model_not_found", format!("{reason} (Claude Code) Choose another model for this agent."))
        }
        (Some("rate_limit"), _) | (_, Some(429)) => RunError::new("rate_limited", reason),
        _ if text(result, "terminal_reason") == Some("api_error") => RunError::new("api_error", reason),
        _ => {
            let subtype = text(result, "subtype").unwrap_or("an error");
            let reason = if reason.is_empty() { "no details given".to_owned() } else { reason };
            RunError::new("program_failed", format!("Claude Code ended the turn with {subtype}: {reason}"))
        }
    }
}

fn not_logged_in(reason: &str) -> RunError {
    RunError::new(
        "authentication_failed",
        format!("Claude Code could not log in to the model's API: {reason}. {LOG_IN}"),
    )
}

/// Returns an error for a retry that cannot succeed: the program would retry a wrong key for minutes.
pub(super) fn hopeless(retry: &Value) -> Option<RunError> {
    let is_login = text(retry, "error") == Some("authentication_failed") || retry["error_status"] == 401;
    is_login.then(|| not_logged_in("the key or token was refused"))
}

pub(super) fn retry_message(retry: &Value) -> String {
    let what = match (retry["error_status"].as_u64(), text(retry, "error")) {
        (Some(status), Some(error)) => format!("the model's API answered {status} ({error})"),
        (Some(status), None) => format!("the model's API answered {status}"),
        (None, _) => "the model's API could not be reached or broke off".to_owned(),
    };
    let (attempt, of) = (retry["attempt"].as_u64().unwrap_or(1), retry["max_retries"].as_u64());
    let attempt = of.map_or_else(|| format!("attempt {attempt}"), |of| format!("attempt {attempt} of {of}"));
    let seconds = retry["retry_delay_ms"].as_f64().unwrap_or(0.0) / 1000.0;
    format!("{what}; {attempt} in {seconds:.1} s")
}

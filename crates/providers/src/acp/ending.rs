//! Parses the response to `session/prompt`: how the prompt ended, and its usage. Pure.

use super::preset::Preset;
use crate::{SavedInSession, TurnEnd, TurnEvent, jsonrpc::CallError};
use domain::{
    run::RunError,
    usage::{Cost, Usage},
};
use serde_json::Value;

/// How a prompt ended.
#[derive(Clone, PartialEq, Debug)]
pub struct AcpPromptEnd {
    pub end: TurnEnd,
    pub kept: SavedInSession,
    /// Why the answer is incomplete.
    pub status: Option<TurnEvent>,
}

/// Interprets a result. `broken` is the error of the agent's engine, if it reported one: the agent still sends a
/// result.
pub fn from_result(preset: &Preset, result: &Value, broken: Option<&str>) -> AcpPromptEnd {
    if let Some(why) = broken {
        let error = CallError::Refused { code: 0, message: why.to_owned(), data: None };
        return AcpPromptEnd {
            end: TurnEnd::Failed(run_error(preset, &error)),
            kept: preset.kept_when_failed,
            status: None,
        };
    }
    let report = |status: &str, message: &str| {
        Some(TurnEvent::Status { status: status.to_owned(), message: message.to_owned() })
    };
    let complete = |status| AcpPromptEnd { end: TurnEnd::Completed, kept: SavedInSession::PromptAndAnswer, status };
    match result["stopReason"].as_str().unwrap_or("end_turn") {
        "end_turn" if preset.zero_tokens_is_failure && has_zero_tokens(result) => AcpPromptEnd {
            kept: SavedInSession::Nothing,
            ..complete(report(
                "incomplete_answer",
                "The agent reported success but no tokens: the model's answer was cut off, empty or blocked.",
            ))
        },
        "end_turn" => complete(None),
        "cancelled" => AcpPromptEnd { end: TurnEnd::Stopped, kept: preset.kept_when_stopped, status: None },
        "max_tokens" => complete(report("max_tokens", "The answer was cut off at the model's token limit.")),
        "max_turn_requests" => complete(report(
            "max_turn_requests",
            "The agent stopped because it reached its own limit of model calls for one message, or because it was looping.",
        )),
        // According to the protocol, neither the prompt nor the answer is in the session then.
        "refusal" => AcpPromptEnd {
            end: TurnEnd::Failed(RunError::new("refused", "The model refused to answer. Rephrase the message.")),
            kept: SavedInSession::Nothing,
            status: None,
        },
        other => complete(report("stop_reason", &format!("The agent ended its turn with {:?}.", truncated(other)))),
    }
}

fn has_zero_tokens(result: &Value) -> bool {
    let count = &result["_meta"]["quota"]["token_count"];
    count.is_object() && tokens(count).total() == 0
}

/// Converts the error of a prompt or another request.
pub fn run_error(preset: &Preset, error: &CallError) -> RunError {
    let CallError::Refused { code, message, data } = error else {
        return match error {
            CallError::Closed(reason) => RunError::new(reason.code(), format!("{}: {reason}", preset.name)),
            CallError::Timeout => RunError::new("start_timeout", format!("{} did not answer in time.", preset.name)),
            _ => RunError::new("program_stuck", format!("{}: {error}.", preset.name)),
        };
    };
    let reason = readable(message, data.as_ref());
    let status = status_in(message).or_else(|| u16::try_from(*code).ok().filter(is_status));
    let is_key = ["API key not valid", "API_KEY_INVALID", "Not logged in", "Please run /login"];
    let code = match status {
        _ if *code == -32000 || is_key.iter().any(|sign| message.contains(sign)) => "authentication_failed",
        Some(401 | 403) => "authentication_failed",
        Some(404) => "model_not_found",
        _ if reason.contains("models/") && reason.contains("not found") => "model_not_found",
        Some(429) => "rate_limited",
        _ => "api_error",
    };
    let advice = match code {
        "authentication_failed" => format!(" {}", preset.log_in),
        "model_not_found" => " Choose another model in the agent's settings.".to_owned(),
        _ => String::new(),
    };
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    RunError::new(code, format!("{}{status}: {reason}.{advice}", preset.name))
}

/// Returns the usage of this prompt. `earlier` is the vendor's total cost before it, if known.
pub fn usage(result: &Value, model: Option<&str>, cost: Option<Cost>, earlier: Option<Cost>) -> Vec<TurnEvent> {
    let quota = &result["_meta"]["quota"];
    let models = quota["model_usage"].as_array().map_or(&[][..], Vec::as_slice);
    let mut used: Vec<(Usage, Option<String>)> = if result["usage"].is_object() {
        let only = models.first().filter(|_| models.len() == 1).and_then(|entry| entry["model"].as_str());
        vec![(tokens(&result["usage"]), only.or(model).map(str::to_owned))]
    } else if models.is_empty() {
        vec![(tokens(&quota["token_count"]), model.map(str::to_owned))]
    } else {
        models.iter().map(|entry| (tokens(&entry["token_count"]), entry["model"].as_str().map(str::to_owned))).collect()
    };
    let cost = match (cost, earlier) {
        (Some(now), Some(before)) => Some(Cost::from_nanos(now.as_nanos().saturating_sub(before.as_nanos()).max(0))),
        _ => None,
    };
    used.retain(|(usage, _)| usage.total() > 0);
    let mut cost = cost.filter(|_| !used.is_empty());
    used.into_iter().map(|(usage, model)| TurnEvent::Usage { usage, model, cost: cost.take() }).collect()
}

/// Agents differ in whether the input includes cached tokens and the output includes thoughts; the total shows which.
fn tokens(count: &Value) -> Usage {
    let first = |names: &[&str]| names.iter().find_map(|name| count[*name].as_u64());
    let (input, output) = (first(&["inputTokens", "input_tokens"]), first(&["outputTokens", "output_tokens"]));
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let read = first(&["cachedReadTokens", "cachedInputTokens", "cached_tokens"]).unwrap_or(0);
    let write = first(&["cachedWriteTokens", "cacheWriteInputTokens"]).unwrap_or(0);
    let thought = first(&["thoughtTokens", "reasoningOutputTokens"]).unwrap_or(0);
    let (cached, plain) = (read.saturating_add(write), input.saturating_add(output));
    let total = first(&["totalTokens", "total_tokens"]);
    let cached_inside = total.is_some_and(|total| total == plain || total == plain.saturating_add(thought));
    let thought_separate = thought > 0
        && total.is_some_and(|total| {
            [plain, plain.saturating_add(cached)].iter().any(|sum| total == sum.saturating_add(thought))
        });
    Usage {
        input_tokens: if cached_inside { input.saturating_sub(cached) } else { input },
        output_tokens: if thought_separate { output.saturating_add(thought) } else { output },
        cache_read_tokens: read,
        cache_write_tokens: write,
    }
}

/// Returns the readable part of an error; some agents send a full API response as the message.
fn readable(message: &str, data: Option<&Value>) -> String {
    let inside = embedded_json(message);
    let nested = inside
        .as_ref()
        .and_then(|json| ["/error/message", "/message"].iter().find_map(|path| json.pointer(path)?.as_str()));
    let detail = data.and_then(|data| data["details"].as_str().or_else(|| data["message"].as_str()));
    let reason = nested.unwrap_or(message).trim().trim_start_matches("Internal error: ").trim_end_matches('.');
    let reason = match detail {
        Some(detail) if !reason.contains(detail) => format!("{reason}: {detail}"),
        _ => reason.to_owned(),
    };
    if reason.is_empty() { "it failed without giving a reason".to_owned() } else { truncated(&reason) }
}

/// Returns the HTTP status in an error message, which may be more specific than the error's code.
fn status_in(message: &str) -> Option<u16> {
    let inside = embedded_json(message);
    let nested = inside.as_ref().and_then(|json| u16::try_from(json.pointer("/error/code")?.as_u64()?).ok());
    let written = || message.split_once("API Error: ")?.1.get(..3)?.parse().ok();
    nested.or_else(written).filter(is_status)
}

fn is_status(code: &u16) -> bool {
    (400..600).contains(code)
}

fn embedded_json(message: &str) -> Option<Value> {
    serde_json::from_str(&message[message.find('{')?..]).ok()
}

fn truncated(text: &str) -> String {
    const MAX_CHARS: usize = 1000;
    if text.chars().nth(MAX_CHARS).is_none() {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::{from_result, run_error, tokens, usage};
    use crate::{
        SavedInSession, TurnEnd, TurnEvent,
        acp::preset::Preset,
        jsonrpc::{CallError, CloseReason},
    };
    use domain::usage::{Cost, Usage};
    use serde_json::{Value, json};

    fn refused(code: i64, message: &str) -> CallError {
        CallError::Refused { code, message: message.into(), data: None }
    }

    #[test]
    fn stop_reasons_map_to_ends_and_statuses() {
        let gemini = Preset::named("gemini").unwrap();
        for (reason, end, kept, status) in [
            ("end_turn", "Completed", SavedInSession::PromptAndAnswer, None),
            ("cancelled", "Stopped", SavedInSession::Nothing, None),
            ("max_tokens", "Completed", SavedInSession::PromptAndAnswer, Some("max_tokens")),
            ("max_turn_requests", "Completed", SavedInSession::PromptAndAnswer, Some("max_turn_requests")),
            ("refusal", "Failed", SavedInSession::Nothing, None),
            ("tired", "Completed", SavedInSession::PromptAndAnswer, Some("stop_reason")),
        ] {
            let ending = from_result(&gemini, &json!({"stopReason": reason}), None);
            let reported = ending.status.map(|event| match event {
                TurnEvent::Status { status, .. } => status,
                other => panic!("{other:?}"),
            });
            assert!(format!("{:?}", ending.end).starts_with(end), "{reason}");
            assert_eq!((ending.kept, reported.as_deref()), (kept, status), "{reason}");
        }
        assert_eq!(from_result(&gemini, &Value::Null, None).end, TurnEnd::Completed);
        let nothing = json!({"stopReason": "end_turn", "_meta": {"quota": {"token_count": {"input_tokens": 0}}}});
        let incomplete = from_result(&gemini, &nothing, None);
        assert!(matches!(incomplete.status, Some(TurnEvent::Status { status, .. }) if status == "incomplete_answer"));
        assert_eq!((incomplete.end, incomplete.kept), (TurnEnd::Completed, SavedInSession::Nothing));
        let custom = Preset::custom("tame", "tame", &[]);
        assert_eq!(from_result(&custom, &nothing, None).status, None);
        let broken = from_result(&custom, &json!({"stopReason": "end_turn"}), Some("no luck"));
        assert!(matches!(broken.end, TurnEnd::Failed(error) if error.message == "tame: no luck."));
    }

    #[test]
    fn errors_have_stable_codes_and_advice() {
        let gemini = Preset::named("gemini").unwrap();
        for (error, code, says) in [
            (refused(401, "no"), "authentication_failed", "GEMINI_API_KEY"),
            (refused(403, "no"), "authentication_failed", "GEMINI_API_KEY"),
            (refused(-32000, "Authentication required."), "authentication_failed", "required. Set GEMINI"),
            (refused(400, r#"{"error":{"message":"API key not valid."}}"#), "authentication_failed", "(400)"),
            (refused(404, "models/x is not found"), "model_not_found", "another model"),
            (refused(500, "models/x is not found for API version v1beta"), "model_not_found", "another model"),
            (refused(429, "Rate limit exceeded. Try again later."), "rate_limited", "Try again later."),
            (refused(500, r#"{"error":{"code":500,"message":"mock"}}"#), "api_error", "gemini (500): mock."),
            (refused(-32603, r#"Internal error: API Error: 404 {"message":"gone"}"#), "model_not_found", "(404): gone"),
            (refused(500, r#"{"error":{"code":404,"message":"no model"}}"#), "model_not_found", "(404): no model"),
            (refused(-32603, ""), "api_error", "without giving a reason"),
            (CallError::Closed(CloseReason::Ended), "program_crashed", "closed"),
            (CallError::Closed(CloseReason::BadOutput("x".into())), "bad_output", "x"),
            (CallError::Timeout, "start_timeout", "in time"),
            (CallError::Overloaded, "program_stuck", "does not read"),
        ] {
            let run_error = run_error(&gemini, &error);
            assert_eq!(run_error.code, code, "{error:?}");
            assert!(run_error.message.contains(says), "{}", run_error.message);
        }
        let detailed = CallError::Refused { code: 1, message: "no".into(), data: Some(json!({"details": "because"})) };
        assert_eq!(run_error(&gemini, &detailed).message, "gemini: no: because.");
        assert!(run_error(&gemini, &refused(500, &"x".repeat(100_000))).message.len() < 2000);
    }

    #[test]
    fn cached_tokens_are_counted_once_in_every_format() {
        let count = |input, output, read, write| Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: write,
        };
        let beside = json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "cachedWriteTokens": 7, "totalTokens": 122});
        assert_eq!(tokens(&beside), count(10, 5, 100, 7));
        let inside = json!({"inputTokens": 110, "outputTokens": 5, "cachedReadTokens": 100, "thoughtTokens": 3, "totalTokens": 115});
        assert_eq!(tokens(&inside), count(10, 5, 100, 0));
        let thought = json!({"inputTokens": 10, "outputTokens": 5, "thoughtTokens": 3, "totalTokens": 18});
        assert_eq!(tokens(&thought), count(10, 8, 0, 0));
        assert_eq!(tokens(&json!({"input_tokens": 1, "output_tokens": 2})), count(1, 2, 0, 0));
        assert_eq!(tokens(&json!("no")), Usage::default());
    }

    #[test]
    fn invariant_19_budget_cost_is_not_guessed_if_the_previous_total_is_unknown() {
        let result = json!({"usage": {"inputTokens": 1, "outputTokens": 1}});
        let cost = |now, before| match &usage(&result, None, now, before)[..] {
            [TurnEvent::Usage { cost, .. }] => *cost,
            other => panic!("{other:?}"),
        };
        let nanos = |nanos| Some(Cost::from_nanos(nanos));
        assert_eq!(cost(nanos(30), nanos(10)), nanos(20));
        assert_eq!(cost(nanos(30), None), None);
        assert_eq!(cost(None, nanos(10)), None);
        assert_eq!(usage(&json!({"usage": null, "_meta": {"quota": {"token_count": null}}}), None, None, None), []);
    }

    #[test]
    fn each_model_is_reported_separately() {
        let result = json!({"_meta": {"quota": {"model_usage": [
            {"model": "a", "token_count": {"input_tokens": 1, "output_tokens": 2}},
            {"model": "b", "token_count": {"input_tokens": 3, "output_tokens": 4}},
        ]}}});
        let models: Vec<Option<String>> = usage(&result, Some("c"), None, None)
            .into_iter()
            .map(|event| match event {
                TurnEvent::Usage { model, .. } => model,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(models, [Some("a".to_owned()), Some("b".to_owned())]);
    }
}

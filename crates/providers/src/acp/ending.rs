//! How a prompt ended, and what it took: the answer to `session/prompt`, read. Pure.

use super::preset::Preset;
use crate::{Kept, TurnEnd, TurnEvent, jsonrpc::CallError};
use domain::{
    run::RunError,
    usage::{Cost, Usage},
};
use serde_json::Value;

/// What the answer to a prompt says of its end.
#[derive(Clone, PartialEq, Debug)]
pub struct Ending {
    pub end: TurnEnd,
    pub kept: Kept,
    /// Why the answer is shorter than it could be.
    pub status: Option<TurnEvent>,
}

/// The agent answered the prompt. `broken` is why its engine failed, if it said so: it ends its turn all the same.
pub fn of_result(preset: &Preset, result: &Value, broken: Option<&str>) -> Ending {
    if let Some(why) = broken {
        let error = CallError::Refused { code: 0, message: why.to_owned(), data: None };
        return Ending { end: TurnEnd::Failed(of_error(preset, &error)), kept: preset.kept_when_failed, status: None };
    }
    let told = |status: &str, message: &str| {
        Some(TurnEvent::Status { status: status.to_owned(), message: message.to_owned() })
    };
    let complete = |status| Ending { end: TurnEnd::Completed, kept: Kept::PromptAndAnswer, status };
    match result["stopReason"].as_str().unwrap_or("end_turn") {
        "end_turn" if preset.counts_all && is_uncounted(result) => Ending {
            kept: Kept::Nothing,
            ..complete(told(
                "incomplete_answer",
                "The agent says that all is well, but counted no tokens: the model's answer broke off, was empty or was blocked.",
            ))
        },
        "end_turn" => complete(None),
        "cancelled" => Ending { end: TurnEnd::Stopped, kept: preset.kept_when_stopped, status: None },
        "max_tokens" => complete(told("max_tokens", "The answer is cut off: it reached the model's limit of tokens.")),
        "max_turn_requests" => complete(told(
            "max_turn_requests",
            "The agent stopped by itself: it made more model calls than it allows itself for one message, or went round in circles.",
        )),
        // The protocol says that neither the prompt nor what came of it is in the session then.
        "refusal" => Ending {
            end: TurnEnd::Failed(RunError::new("refused", "The model refused to answer this. Say it differently.")),
            kept: Kept::Nothing,
            status: None,
        },
        other => complete(told("stop_reason", &format!("The agent ended its turn with {:?}.", start_of(other)))),
    }
}

fn is_uncounted(result: &Value) -> bool {
    let count = &result["_meta"]["quota"]["token_count"];
    count.is_object() && tokens(count).total() == 0
}

/// The agent answered the prompt, or another request, with an error.
pub fn of_error(preset: &Preset, error: &CallError) -> RunError {
    let CallError::Refused { code, message, data } = error else {
        return match error {
            CallError::Closed(reason) => RunError::new(reason.code(), format!("{}: {reason}", preset.name)),
            CallError::Timeout => RunError::new("start_timeout", format!("{} did not answer in time.", preset.name)),
            _ => RunError::new("program_stuck", format!("{}: {error}.", preset.name)),
        };
    };
    let said = readable(message, data.as_ref());
    let status = status_in(message).or_else(|| u16::try_from(*code).ok().filter(is_status));
    let is_key = ["API key not valid", "API_KEY_INVALID", "Not logged in", "Please run /login"];
    let code = match status {
        _ if *code == -32000 || is_key.iter().any(|sign| message.contains(sign)) => "authentication_failed",
        Some(401 | 403) => "authentication_failed",
        Some(404) => "model_not_found",
        _ if said.contains("models/") && said.contains("not found") => "model_not_found",
        Some(429) => "rate_limited",
        _ => "api_error",
    };
    let advice = match code {
        "authentication_failed" => format!(" {}", preset.log_in),
        "model_not_found" => " Choose another model in the agent's settings.".to_owned(),
        _ => String::new(),
    };
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    RunError::new(code, format!("{}{status}: {said}.{advice}", preset.name))
}

/// Tokens of this prompt. `earlier` is the vendor's own total before it, where that is known.
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

/// Agents differ in whether cached tokens are part of the input and thoughts part of the output; their sum tells.
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
    let thought_beside = thought > 0
        && total.is_some_and(|total| {
            [plain, plain.saturating_add(cached)].iter().any(|sum| total == sum.saturating_add(thought))
        });
    Usage {
        input_tokens: if cached_inside { input.saturating_sub(cached) } else { input },
        output_tokens: if thought_beside { output.saturating_add(thought) } else { output },
        cache_read_tokens: read,
        cache_write_tokens: write,
    }
}

/// The words in an error: some send a whole answer of their API as the message.
fn readable(message: &str, data: Option<&Value>) -> String {
    let inside = inside(message);
    let nested = inside
        .as_ref()
        .and_then(|json| ["/error/message", "/message"].iter().find_map(|path| json.pointer(path)?.as_str()));
    let detail = data.and_then(|data| data["details"].as_str().or_else(|| data["message"].as_str()));
    let said = nested.unwrap_or(message).trim().trim_start_matches("Internal error: ").trim_end_matches('.');
    let said = match detail {
        Some(detail) if !said.contains(detail) => format!("{said}: {detail}"),
        _ => said.to_owned(),
    };
    if said.is_empty() { "it failed without saying why".to_owned() } else { start_of(&said) }
}

/// The HTTP status in the words of an error, which may say more than the error's own code.
fn status_in(message: &str) -> Option<u16> {
    let inside = inside(message);
    let nested = inside.as_ref().and_then(|json| u16::try_from(json.pointer("/error/code")?.as_u64()?).ok());
    let written = || message.split_once("API Error: ")?.1.get(..3)?.parse().ok();
    nested.or_else(written).filter(is_status)
}

fn is_status(code: &u16) -> bool {
    (400..600).contains(code)
}

fn inside(message: &str) -> Option<Value> {
    serde_json::from_str(&message[message.find('{')?..]).ok()
}

fn start_of(text: &str) -> String {
    const MAX_CHARS: usize = 1000;
    if text.chars().nth(MAX_CHARS).is_none() {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::{of_error, of_result, tokens, usage};
    use crate::{
        Kept, TurnEnd, TurnEvent,
        acp::preset::Preset,
        jsonrpc::{CallError, CloseReason},
    };
    use domain::usage::{Cost, Usage};
    use serde_json::{Value, json};

    fn refused(code: i64, message: &str) -> CallError {
        CallError::Refused { code, message: message.into(), data: None }
    }

    #[test]
    fn each_reason_to_stop_says_what_a_person_needs_to_know() {
        let gemini = Preset::named("gemini").unwrap();
        for (reason, end, kept, status) in [
            ("end_turn", "Completed", Kept::PromptAndAnswer, None),
            ("cancelled", "Stopped", Kept::Nothing, None),
            ("max_tokens", "Completed", Kept::PromptAndAnswer, Some("max_tokens")),
            ("max_turn_requests", "Completed", Kept::PromptAndAnswer, Some("max_turn_requests")),
            ("refusal", "Failed", Kept::Nothing, None),
            ("tired", "Completed", Kept::PromptAndAnswer, Some("stop_reason")),
        ] {
            let ending = of_result(&gemini, &json!({"stopReason": reason}), None);
            let told = ending.status.map(|event| match event {
                TurnEvent::Status { status, .. } => status,
                other => panic!("{other:?}"),
            });
            assert!(format!("{:?}", ending.end).starts_with(end), "{reason}");
            assert_eq!((ending.kept, told.as_deref()), (kept, status), "{reason}");
        }
        assert_eq!(of_result(&gemini, &Value::Null, None).end, TurnEnd::Completed);
        let nothing = json!({"stopReason": "end_turn", "_meta": {"quota": {"token_count": {"input_tokens": 0}}}});
        let incomplete = of_result(&gemini, &nothing, None);
        assert!(matches!(incomplete.status, Some(TurnEvent::Status { status, .. }) if status == "incomplete_answer"));
        assert_eq!((incomplete.end, incomplete.kept), (TurnEnd::Completed, Kept::Nothing));
        let tame = Preset::custom("tame", "tame", &[]);
        assert_eq!(of_result(&tame, &nothing, None).status, None);
        let broken = of_result(&tame, &json!({"stopReason": "end_turn"}), Some("no luck"));
        assert!(matches!(broken.end, TurnEnd::Failed(error) if error.message == "tame: no luck."));
    }

    #[test]
    fn errors_have_stable_codes_and_say_what_to_do() {
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
            (refused(-32603, ""), "api_error", "without saying why"),
            (CallError::Closed(CloseReason::Ended), "program_crashed", "closed"),
            (CallError::Closed(CloseReason::BadOutput("x".into())), "bad_output", "x"),
            (CallError::Timeout, "start_timeout", "in time"),
            (CallError::Overloaded, "program_stuck", "does not read"),
        ] {
            let told = of_error(&gemini, &error);
            assert_eq!(told.code, code, "{error:?}");
            assert!(told.message.contains(says), "{}", told.message);
        }
        let detailed = CallError::Refused { code: 1, message: "no".into(), data: Some(json!({"details": "because"})) };
        assert_eq!(of_error(&gemini, &detailed).message, "gemini: no: because.");
        assert!(of_error(&gemini, &refused(500, &"x".repeat(100_000))).message.len() < 2000);
    }

    #[test]
    fn cached_tokens_are_counted_once_whichever_way_they_are_written() {
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
    fn invariant_19_budget_a_cost_of_which_the_start_is_not_known_is_not_guessed() {
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
    fn each_model_is_reported_by_itself() {
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

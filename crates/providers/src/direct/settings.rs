//! Which of an agent's model options each API supports. An option that it does not is refused when the agent is created,
//! with the reason, rather than ignored or rejected by the vendor in every run. Pure.

use super::{ModelApiKind, xml};
use crate::RefusedSetting;
use domain::agent::{ModelOptions, Thinking, ToolCalling};

/// The lowest `top_p` with which Anthropic's models think.
const LEAST_THINKING_TOP_P: f64 = 0.95;

pub fn check(api: ModelApiKind, options: &ModelOptions) -> Result<(), RefusedSetting> {
    options
        .check()
        .map_err(|(pointer, detail)| RefusedSetting { pointer, detail: format!("model_options: {detail}") })?;
    let refuse = |pointer: &'static str, detail: &str| Err(RefusedSetting { pointer, detail: detail.to_owned() });
    let thinks = options.thinking_budget_tokens.is_some() || options.thinking.is_some_and(|it| it != Thinking::Off);
    match api {
        ModelApiKind::Messages => {
            if options.temperature.is_some_and(|temperature| temperature > 1.0) {
                return refuse(TEMPERATURE, "temperature: Anthropic's models take 0 to 1");
            }
            if options.temperature.is_some() && options.top_p.is_some() {
                return refuse(TOP_P, "top_p: Anthropic's models take temperature or top_p, not both");
            }
            if thinks && options.temperature.is_some() {
                return refuse(
                    TEMPERATURE,
                    "temperature: Anthropic's models take none while they think; set thinking to off",
                );
            }
            if thinks && options.top_p.is_some_and(|top_p| top_p < LEAST_THINKING_TOP_P) {
                return refuse(TOP_P, "top_p: Anthropic's models take 0.95 to 1 while they think; set thinking to off");
            }
        }
        ModelApiKind::Chat => {
            if options.thinking_budget_tokens.is_some() {
                return refuse(
                    BUDGET,
                    "thinking_budget_tokens: chat completions have no thinking budget; set thinking",
                );
            }
            return check_stops(options, 4, "stop: chat completions take at most 4 sequences");
        }
        ModelApiKind::Responses => {
            if options.thinking_budget_tokens.is_some() {
                return refuse(
                    BUDGET,
                    "thinking_budget_tokens: the Responses API has no thinking budget; set thinking",
                );
            }
            if !options.stop.is_empty() {
                return refuse(STOP, "stop: the Responses API has no stop sequences; use the provider openai");
            }
            if options.tool_calling == ToolCalling::Xml {
                let detail = "tool_calling: xml needs stop sequences, which the Responses API has not; use native or the provider openai";
                return refuse("/model_options/tool_calling", detail);
            }
        }
        ModelApiKind::Gemini => {
            if options.thinking.is_some() && options.thinking_budget_tokens.is_some() {
                return refuse(BUDGET, "thinking_budget_tokens: the Gemini API takes an effort or a budget, not both");
            }
            return check_stops(options, 5, "stop: the Gemini API takes at most 5 sequences");
        }
    }
    Ok(())
}

const TEMPERATURE: &str = "/model_options/temperature";
const TOP_P: &str = "/model_options/top_p";
const STOP: &str = "/model_options/stop";
const BUDGET: &str = "/model_options/thinking_budget_tokens";

fn check_stops(options: &ModelOptions, most: usize, detail: &str) -> Result<(), RefusedSetting> {
    let own = match options.tool_calling {
        ToolCalling::Xml => xml::STOP_SEQUENCES.len(),
        ToolCalling::Native => 0,
    };
    if options.stop.len() + own <= most {
        return Ok(());
    }
    let why =
        if own > 0 { format!("{detail}, {own} of them are needed for tool_calling xml") } else { detail.to_owned() };
    Err(RefusedSetting { pointer: STOP, detail: why })
}

#[cfg(test)]
mod tests {
    use super::{ModelApiKind, check};
    use serde_json::json;

    #[test]
    fn each_api_refuses_what_it_cannot_do_and_names_the_option() {
        use ModelApiKind::{Chat, Gemini, Messages, Responses};
        let all = [Messages, Chat, Responses, Gemini];
        let cases = [
            (json!({"temperature": 0.5, "max_output_tokens": 100, "thinking": "off"}), vec![], ""),
            (json!({"temperature": 2.1}), all.to_vec(), "temperature"),
            (json!({"temperature": 1.5}), vec![Messages], "temperature"),
            (json!({"top_p": 0.0}), all.to_vec(), "top_p"),
            (json!({"top_p": 0.5, "temperature": 0.5}), vec![Messages], "top_p"),
            (json!({"temperature": 0.5, "thinking": "low"}), vec![Messages], "temperature"),
            (json!({"top_p": 0.5, "thinking_budget_tokens": 2000}), vec![Messages, Chat, Responses], ""),
            (json!({"stop": ["END"]}), vec![Responses], "stop"),
            (json!({"stop": ["a", "b", "c", "d", "e"]}), vec![Chat, Responses], "stop"),
            (json!({"stop": [" "]}), all.to_vec(), "stop"),
            (json!({"tool_calling": "xml"}), vec![Responses], "tool_calling"),
            (json!({"thinking_budget_tokens": 2000}), vec![Chat, Responses], "thinking_budget_tokens"),
            (
                json!({"thinking": "high", "thinking_budget_tokens": 2000}),
                vec![Chat, Responses, Gemini],
                "thinking_budget_tokens",
            ),
        ];
        for (options, refusing, named) in cases {
            for api in all {
                let read = serde_json::from_value(options.clone()).unwrap();
                match check(api, &read) {
                    Ok(()) => assert!(!refusing.contains(&api), "{api:?} accepts {options}"),
                    Err(refused) => {
                        assert!(refusing.contains(&api), "{api:?} refuses {options}: {refused:?}");
                        assert!(refused.pointer.ends_with(named) && refused.detail.contains(named), "{refused:?}");
                    }
                }
            }
        }
    }
}

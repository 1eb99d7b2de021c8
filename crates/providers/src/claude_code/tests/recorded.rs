//! Parses recorded conversations with the real program.

use crate::{
    ProviderEvent, TurnEvent,
    claude_code::{
        failure::ClaudeTurnEnd,
        parse::{ClaudeOutput, ClaudeParser},
    },
    transcript::{self, TranscriptDirection, TranscriptEntry},
};
use domain::usage::Usage;
use serde_json::Value;
use std::fmt::Write as _;

/// Parses the program's output, with a new turn at each prompt.
fn parsed(entries: &[TranscriptEntry]) -> Vec<(Value, Vec<ClaudeOutput>)> {
    let mut parser = ClaudeParser::default();
    let mut all = Vec::new();
    for entry in entries {
        let value = serde_json::from_str(&entry.line).unwrap_or(Value::Null);
        match entry.direction {
            // A message sent during a turn belongs to that turn or waits for the next.
            TranscriptDirection::In if value["type"] == "user" && !is_in_turn(&all) => {
                parser.begin_turn(false);
                all.push((value, Vec::new()));
            }
            TranscriptDirection::Out => {
                let parsed = parser.parse_line(&entry.line);
                let ended = parsed.iter().any(|parsed| matches!(parsed, ClaudeOutput::Finished(_)));
                all.push((value, parsed));
                if ended {
                    parser.begin_turn(false);
                }
            }
            _ => {}
        }
    }
    assert_eq!(parser.skipped, 0, "unknown kinds of lines");
    all
}

fn is_in_turn(all: &[(Value, Vec<ClaudeOutput>)]) -> bool {
    let last = all.iter().rposition(|(value, _)| value["type"] == "result");
    let prompt = all.iter().rposition(|(value, parsed)| value["type"] == "user" && parsed.is_empty());
    prompt > last
}

/// One line per event; deltas of one item are joined by `|`.
fn shown(turns: &[(Value, Vec<ClaudeOutput>)]) -> String {
    let mut out = String::new();
    let mut open: Option<String> = None;
    for (_, parsed) in turns {
        for parsed in parsed {
            let head = match parsed {
                ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Text { item, .. }, .. }) => {
                    Some(format!("text {}", item.as_deref().unwrap_or("-")))
                }
                ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Thinking { item, .. }, .. }) => {
                    Some(format!("thinking {}", item.as_deref().unwrap_or("-")))
                }
                _ => None,
            };
            if head.is_some() && head == open {
                out.push('|');
            } else {
                if open.take().is_some() {
                    out.push('\n');
                }
                if let Some(head) = &head {
                    write!(out, "{head}: ").unwrap();
                }
            }
            open = head;
            match parsed {
                ClaudeOutput::Event(ProviderEvent { event, raw }) => {
                    let is_delta = matches!(event, TurnEvent::Text { .. } | TurnEvent::Thinking { .. });
                    let is_rest = matches!(event, TurnEvent::Usage { cost: None, .. });
                    assert!(raw.is_some() || is_delta || is_rest || *event == TurnEvent::ModelCall, "{event:?}");
                    assert!(raw.is_none() || !is_delta);
                    show(event, &mut out);
                }
                ClaudeOutput::Request { id: _, request: ask, .. } => {
                    writeln!(out, "asked {}", cut(&format!("{ask:?}"))).unwrap()
                }
                ClaudeOutput::RequestCancelled { .. } => out.push_str("withdrawn\n"),
                ClaudeOutput::Response { answer, .. } => {
                    writeln!(out, "answered {}", cut(&format!("{answer:?}"))).unwrap();
                }
                other => writeln!(out, "{other:?}").unwrap(),
            }
        }
    }
    out
}

fn show(event: &TurnEvent, out: &mut String) {
    match event {
        TurnEvent::Text { delta, .. } | TurnEvent::Thinking { delta, .. } => {
            out.push_str(&delta.escape_debug().to_string())
        }
        TurnEvent::ToolUse { id, name, input } => writeln!(out, "tool_use {id} {name} {input}").unwrap(),
        TurnEvent::ToolResult { id, content, is_error } => {
            writeln!(out, "tool_result {id} error={is_error} {}", cut(&content.to_string())).unwrap();
        }
        TurnEvent::Usage { usage, model, cost } => {
            let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
            let cost = cost.map(|cost| cost.as_nanos());
            writeln!(
                out,
                "usage {input_tokens}/{output_tokens} cache {cache_read_tokens}/{cache_write_tokens} {model:?} nanos \
                 {cost:?}"
            )
            .unwrap();
        }
        other => writeln!(out, "{other:?}").unwrap(),
    }
}

fn cut(text: &str) -> String {
    let end = text.char_indices().nth(220).map_or(text.len(), |(at, _)| at);
    format!("{}{}", &text[..end], if end < text.len() { "…" } else { "" })
}

#[test]
fn every_recorded_conversation() {
    for scenario in transcript::scenarios("claude") {
        let shown = shown(&parsed(&transcript::read("claude", &scenario)));
        insta::with_settings!({
            snapshot_path => "../../../tests/transcripts/claude/snapshots",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(scenario.as_str(), shown);
        });
    }
}

/// The text of the last message without retracted items.
fn last_text(events: &[&ClaudeOutput]) -> String {
    let mut items: Vec<(String, String)> = Vec::new();
    for parsed in events {
        match parsed {
            ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Text { delta, item }, .. }) => {
                let item = item.clone().unwrap();
                match items.iter_mut().find(|(name, _)| *name == item) {
                    Some((_, text)) => text.push_str(delta),
                    None => items.push((item, delta.clone())),
                }
            }
            ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Retract { item }, .. }) => {
                items.retain(|(name, _)| name != item)
            }
            _ => {}
        }
    }
    let message = |item: &str| item.split('#').next().unwrap().to_owned();
    let last = items.last().map(|(item, _)| message(item));
    items.iter().filter(|(item, _)| Some(message(item)) == last).map(|(_, text)| text.as_str()).collect()
}

#[test]
fn text_matches_the_result() {
    let mut compared = 0;
    for scenario in transcript::scenarios("claude") {
        let mut turn = Vec::new();
        let all = parsed(&transcript::read("claude", &scenario));
        for (value, parsed) in &all {
            turn.extend(parsed);
            if value["type"] == "result" {
                // A turn that ends with a tool's output has no final text.
                let said = value["result"].as_str().filter(|_| value["is_error"] == false && scenario != "json-schema");
                if let Some(said) = said {
                    assert_eq!(last_text(&turn), said, "{scenario}");
                    compared += 1;
                }
                turn.clear();
            }
        }
    }
    assert!(compared > 80, "{compared}");
}

#[test]
fn invariant_19_budget_each_turn_is_metered_once_and_completely() {
    let mut turns = 0;
    for scenario in transcript::scenarios("claude") {
        let mut reports = Vec::new();
        for (value, parsed) in parsed(&transcript::read("claude", &scenario)) {
            for parsed in parsed {
                if let ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Usage { usage, cost, .. }, .. }) = parsed {
                    reports.push((usage, cost));
                }
            }
            if value["type"] == "result" {
                let mut sum = Usage::default();
                reports.iter().for_each(|(usage, _)| sum += *usage);
                let by_model = value["model_usage_since_last_result"].as_object();
                let input = |name| value["usage"][name].as_u64().unwrap_or(0);
                assert!(sum.input_tokens >= input("input_tokens"), "{scenario}");
                assert!(sum.output_tokens >= input("output_tokens"), "{scenario}");
                let cost: i64 = reports.iter().filter_map(|(_, cost)| *cost).map(|cost| cost.as_nanos()).sum();
                let dollars: f64 =
                    by_model.into_iter().flatten().filter_map(|(_, figures)| figures["costUSD"].as_f64()).sum();
                #[expect(clippy::cast_precision_loss, reason = "a few cents")]
                let difference = (cost as f64 / 1e9 - dollars).abs();
                assert!(difference < 1e-8, "{scenario}: {cost} nano-dollars, {dollars} dollars");
                reports.clear();
                turns += 1;
            }
        }
    }
    assert!(turns > 90, "{turns}");
}

/// The usage of all turns of a scenario; the flag tells whether it has a cost.
fn used(scenario: &str) -> Vec<(u64, u64, bool)> {
    let all = parsed(&transcript::read("claude", scenario));
    let events = all.into_iter().flat_map(|(_, parsed)| parsed);
    events
        .filter_map(|parsed| match parsed {
            ClaudeOutput::Event(ProviderEvent { event: TurnEvent::Usage { usage, cost, .. }, .. }) => {
                Some((usage.input_tokens, usage.output_tokens, cost.is_some()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn invariant_19_budget_missing_figures_are_filled_from_other_sources() {
    // The result of an interrupted stream has only zeros; the usage is in the stream.
    assert_eq!(used("interrupt")[0], (2681, 1, false));
    // Subagents are only in the figures by model.
    assert_eq!(used("subagent"), [(10894, 280, true)]);
    // So is a summary.
    assert_eq!(used("compact")[1], (4348, 21, true));
    // A broken stream was charged, too.
    assert_eq!(used("midstream-error")[..2], [(2698, 18, true), (2698, 1, false)]);
    // An old version has no figures by model.
    assert_eq!(used("v2.1.197-hello"), [(1748, 17, false), (1789, 1, false), (1839, 24, false)]);
}

fn ends(scenario: &str) -> Vec<ClaudeTurnEnd> {
    let all = parsed(&transcript::read("claude", scenario));
    let events = all.into_iter().flat_map(|(_, parsed)| parsed);
    events
        .filter_map(|parsed| match parsed {
            ClaudeOutput::Finished(finished) => Some(finished.end),
            _ => None,
        })
        .collect()
}

#[test]
fn failures_have_codes() {
    for (scenario, code) in [
        ("no-auth", "authentication_failed"),
        ("bad-model", "model_not_found"),
        ("error-400", "api_error"),
        ("error-429", "rate_limited"),
        ("error-500", "api_error"),
        ("error-529", "api_error"),
        ("api-down", "api_error"),
        ("max-budget", "program_failed"),
    ] {
        let ends = ends(scenario);
        let Some(ClaudeTurnEnd::Failed(error)) = ends.first() else { panic!("{scenario}: {ends:?}") };
        assert_eq!(error.code, code, "{scenario}");
        assert!(error.message.len() > 20, "{scenario}: {}", error.message);
    }
}

//! Anthropic's Messages API. <https://docs.anthropic.com/en/api/messages-streaming>

use super::{Piece, Question, Stop, failure::Failure, garbled, number, text};
use crate::direct::conversation::{Answered, Block, Content, Message};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Map, Value, json};
use workbench::events::Event;

/// The API wants a bound; this is below that of every model in use.
const MAX_OUTPUT_TOKENS: u32 = 16_000;
/// What a thinking budget leaves for the answer itself, at least.
const ANSWER_TOKENS: u32 = 4_096;

pub fn body(question: &Question<'_>) -> Value {
    let budget = question.thinking_budget_tokens.filter(|_| question.thinking != Some(Thinking::Off));
    let most = question.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS);
    let most = budget.map_or(most, |budget| most.max(budget + ANSWER_TOKENS));
    let mut body = json!({
        "model": question.model,
        "max_tokens": most,
        "stream": true,
        "messages": messages(question),
    });
    if !question.system.is_empty() {
        body["system"] = json!([{"type": "text", "text": question.system, "cache_control": {"type": "ephemeral"}}]);
    }
    if !question.tools.is_empty() {
        let tool = |offer: &super::Offer| {
            json!({
                "name": question.names.fitted(&offer.name),
                "description": offer.description,
                "input_schema": offer.schema,
            })
        };
        body["tools"] = question.tools.iter().map(tool).collect();
    }
    if !question.stop.is_empty() {
        body["stop_sequences"] = json!(question.stop);
    }
    match (question.thinking, budget) {
        (Some(Thinking::Off), _) => body["thinking"] = json!({"type": "disabled"}),
        (_, Some(budget)) => body["thinking"] = json!({"type": "enabled", "budget_tokens": budget}),
        (Some(effort), None) => {
            body["thinking"] = json!({"type": "adaptive"});
            body["output_config"] = json!({"effort": effort.as_str()});
        }
        (None, None) => {}
    }
    body
}

/// Neighbours of one side become one message; the last one is marked, so that the next question finds all of it in the
/// vendor's cache.
fn messages(question: &Question<'_>) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in question.messages {
        let (role, content): (&str, Vec<Value>) = match message {
            Message::Person(texts) => {
                ("user", texts.iter().filter(|text| is_said(text)).map(|text| said(text)).collect())
            }
            Message::Model(blocks) => ("assistant", blocks.iter().filter_map(|block| part(block, question)).collect()),
            Message::Results(results) => ("user", results.iter().map(result).collect()),
        };
        match messages.last_mut() {
            Some((last, parts)) if *last == role => parts.extend(content),
            _ if content.is_empty() => {}
            _ => messages.push((role, content)),
        }
    }
    if let Some(Value::Object(last)) = messages.last_mut().and_then(|(_, parts)| parts.last_mut()) {
        // Thinking cannot be marked; the last words before an answer are a person's or a tool's anyway.
        if !matches!(last.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking")) {
            last.insert("cache_control".into(), json!({"type": "ephemeral"}));
        }
    }
    messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// The API refuses texts of nothing.
fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn part(block: &Block, question: &Question<'_>) -> Option<Value> {
    Some(match block {
        Block::Text(text) => return is_said(text).then(|| said(text)),
        Block::Thinking { text, signature } => json!({"type": "thinking", "thinking": text, "signature": signature}),
        Block::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
        Block::Call(call) => {
            let name = question.names.fitted(&call.name);
            json!({"type": "tool_use", "id": call.id, "name": name, "input": call.input})
        }
    })
}

fn result(answered: &Answered) -> Value {
    let part = |content: &Content| match content {
        Content::Text(text) if is_said(text) => Some(said(text)),
        Content::Text(_) => None,
        Content::Image { media_type, data } => {
            Some(json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}))
        }
    };
    let content: Vec<Value> = answered.content.iter().filter_map(part).collect();
    json!({"type": "tool_result", "tool_use_id": answered.call, "content": content, "is_error": answered.is_error})
}

#[derive(Debug, Default)]
pub struct Reader {
    usage: Usage,
    pub is_done: bool,
}

impl Reader {
    /// Whether something was made of it.
    pub fn read(&mut self, frame: &Event, pieces: &mut Vec<Piece>) -> Result<bool, Failure> {
        let event: Value = serde_json::from_str(&frame.data).map_err(|error| garbled(&error))?;
        let kind = text(&event, "type").unwrap_or(&frame.name);
        let block = number(&event, "index").and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let inner = |key: &str| event.get(key).unwrap_or(&Value::Null);
        match kind {
            "message_start" => {
                let message = inner("message");
                pieces.extend(text(message, "model").map(|model| Piece::Model(model.to_owned())));
                self.usage(message.get("usage"), pieces);
            }
            "content_block_start" => return Ok(begins(block, inner("content_block"), pieces)),
            "content_block_delta" => return Ok(goes_on(block, inner("delta"), pieces)),
            "content_block_stop" => pieces.push(Piece::BlockEnds { block }),
            "message_delta" => {
                self.usage(event.get("usage"), pieces);
                pieces.extend(text(inner("delta"), "stop_reason").map(|reason| Piece::Stops(stop(reason))));
            }
            "message_stop" => {
                self.is_done = true;
                pieces.push(Piece::Done);
            }
            "ping" => {}
            "error" => return Err(Failure::of_event(&event)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Each report says all that it knows of the whole answer; what it leaves out stands.
    fn usage(&mut self, report: Option<&Value>, pieces: &mut Vec<Piece>) {
        let Some(report) = report.and_then(Value::as_object) else { return };
        let count = |report: &Map<String, Value>, key: &str, into: &mut u64| {
            if let Some(tokens) = report.get(key).and_then(Value::as_u64) {
                *into = tokens;
            }
        };
        count(report, "input_tokens", &mut self.usage.input_tokens);
        count(report, "output_tokens", &mut self.usage.output_tokens);
        count(report, "cache_read_input_tokens", &mut self.usage.cache_read_tokens);
        count(report, "cache_creation_input_tokens", &mut self.usage.cache_write_tokens);
        pieces.push(Piece::Usage(self.usage));
    }
}

fn begins(block: u32, content: &Value, pieces: &mut Vec<Piece>) -> bool {
    let words = |key: &str| text(content, key).filter(|text| !text.is_empty()).map(str::to_owned);
    match text(content, "type") {
        Some("text") => pieces.extend(words("text").map(|delta| Piece::Text { block, delta })),
        Some("thinking") => pieces.extend(words("thinking").map(|delta| Piece::Thinking { block, delta })),
        Some("redacted_thinking") => pieces.extend(words("data").map(|data| Piece::Redacted { data })),
        Some("tool_use") => pieces.push(Piece::CallBegins {
            block,
            id: words("id").unwrap_or_default(),
            name: words("name").unwrap_or_default(),
        }),
        _ => return false,
    }
    true
}

fn goes_on(block: u32, delta: &Value, pieces: &mut Vec<Piece>) -> bool {
    let words = |key: &str| text(delta, key).unwrap_or_default().to_owned();
    pieces.push(match text(delta, "type") {
        Some("text_delta") => Piece::Text { block, delta: words("text") },
        Some("thinking_delta") => Piece::Thinking { block, delta: words("thinking") },
        Some("signature_delta") => Piece::Signature { block, delta: words("signature") },
        Some("input_json_delta") => Piece::CallInput { block, delta: words("partial_json") },
        _ => return false,
    });
    true
}

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_use" => Stop::Tools,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refused,
        "pause_turn" => Stop::Paused,
        _ => Stop::Finished,
    }
}

//! Anthropic's Messages API. <https://docs.anthropic.com/en/api/messages-streaming>

use super::{
    AnswerPiece, ModelRequest, ModelStopReason, failure::ModelFailure, invalid_json, number, set_options, text,
};
use crate::direct::conversation::{AssistantBlock, ModelMessage, ModelToolResult, ToolResultContent, UserPart};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Map, Value, json};
use workbench::event_stream::ServerSentEvent;

/// The API requires a limit; this is below that of every model in use.
const MAX_OUTPUT_TOKENS: u32 = 16_000;
/// The minimum that a thinking budget leaves for the answer itself.
const ANSWER_TOKENS: u32 = 4_096;

pub fn body(request: &ModelRequest<'_>) -> Value {
    let budget = request.thinking_budget_tokens.filter(|_| request.thinking != Some(Thinking::Off));
    let most = request.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS);
    let most = budget.map_or(most, |budget| most.max(budget + ANSWER_TOKENS));
    let mut body = json!({
        "model": request.model,
        "max_tokens": most,
        "stream": true,
        "messages": messages(request),
    });
    if !request.system.is_empty() {
        body["system"] = json!([{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}]);
    }
    if !request.tools.is_empty() {
        let tool = |offer: &super::OfferedTool| {
            json!({
                "name": request.names.api_name(&offer.name),
                "description": offer.description,
                "input_schema": offer.schema,
            })
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if !request.stop.is_empty() {
        body["stop_sequences"] = json!(request.stop);
    }
    match (request.thinking, budget) {
        (Some(Thinking::Off), _) => body["thinking"] = json!({"type": "disabled"}),
        (_, Some(budget)) => body["thinking"] = json!({"type": "enabled", "budget_tokens": budget}),
        (Some(effort), None) => {
            body["thinking"] = json!({"type": "adaptive"});
            body["output_config"] = json!({"effort": effort.as_str()});
        }
        (None, None) => {}
    }
    set_options(&mut body, [("temperature", request.temperature), ("top_p", request.top_p)]);
    body
}

/// Merges consecutive messages of one role. The last part gets a cache marker, so that the next request reads
/// everything up to there from the vendor's cache.
fn messages(request: &ModelRequest<'_>) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in request.messages {
        let (role, content): (&str, Vec<Value>) = match message {
            ModelMessage::User(parts) => ("user", parts.iter().filter_map(user_part).collect()),
            ModelMessage::Assistant(blocks) => {
                ("assistant", blocks.iter().filter_map(|block| part(block, request)).collect())
            }
            ModelMessage::ToolResults(results) => ("user", results.iter().map(result).collect()),
        };
        match messages.last_mut() {
            Some((last, parts)) if *last == role => parts.extend(content),
            _ if content.is_empty() => {}
            _ => messages.push((role, content)),
        }
    }
    if let Some(Value::Object(last)) = messages.last_mut().and_then(|(_, parts)| parts.last_mut()) {
        // Thinking cannot have a cache marker; the last message is from a user or a tool anyway.
        if !matches!(last.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking")) {
            last.insert("cache_control".into(), json!({"type": "ephemeral"}));
        }
    }
    messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// The API rejects blank texts.
fn has_text(text: &str) -> bool {
    !text.trim().is_empty()
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user_part(part: &UserPart) -> Option<Value> {
    Some(match part {
        UserPart::Text(text) => return has_text(text).then(|| text_part(text)),
        UserPart::Image { media_type, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        UserPart::Pdf { name, data } => {
            let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
            json!({"type": "document", "title": name, "source": source})
        }
    })
}

fn part(block: &AssistantBlock, request: &ModelRequest<'_>) -> Option<Value> {
    Some(match block {
        AssistantBlock::Text(text) => return has_text(text).then(|| text_part(text)),
        AssistantBlock::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        AssistantBlock::RedactedThinking(data) => json!({"type": "redacted_thinking", "data": data}),
        AssistantBlock::ToolCall(call) => {
            let name = request.names.api_name(&call.name);
            json!({"type": "tool_use", "id": call.id, "name": name, "input": call.input})
        }
    })
}

fn result(answered: &ModelToolResult) -> Value {
    let part = |content: &ToolResultContent| match content {
        ToolResultContent::Text(text) if has_text(text) => Some(text_part(text)),
        ToolResultContent::Text(_) => None,
        ToolResultContent::Image { media_type, data } => {
            Some(json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}))
        }
    };
    let content: Vec<Value> = answered.content.iter().filter_map(part).collect();
    json!({"type": "tool_result", "tool_use_id": answered.call_id, "content": content, "is_error": answered.is_error})
}

#[derive(Debug, Default)]
pub struct AnthropicReader {
    usage: Usage,
    pub is_done: bool,
}

impl AnthropicReader {
    /// Returns whether the event is known.
    pub fn read(&mut self, received: &ServerSentEvent, pieces: &mut Vec<AnswerPiece>) -> Result<bool, ModelFailure> {
        let event: Value = serde_json::from_str(&received.data).map_err(|error| invalid_json(&error))?;
        let kind = text(&event, "type").unwrap_or(&received.name);
        let block = number(&event, "index").and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let inner = |key: &str| event.get(key).unwrap_or(&Value::Null);
        match kind {
            "message_start" => {
                let message = inner("message");
                pieces.extend(text(message, "model").map(|model| AnswerPiece::Model(model.to_owned())));
                self.usage(message.get("usage"), pieces);
            }
            "content_block_start" => return Ok(block_start(block, inner("content_block"), pieces)),
            "content_block_delta" => return Ok(block_delta(block, inner("delta"), pieces)),
            "content_block_stop" => pieces.push(AnswerPiece::BlockEnd { block }),
            "message_delta" => {
                self.usage(event.get("usage"), pieces);
                pieces.extend(text(inner("delta"), "stop_reason").map(|reason| AnswerPiece::Stop(stop(reason))));
            }
            "message_stop" => {
                self.is_done = true;
                pieces.push(AnswerPiece::Done);
            }
            "ping" => {}
            "error" => return Err(ModelFailure::from_event(&event)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A report contains totals of the whole answer; missing fields keep their value.
    fn usage(&mut self, report: Option<&Value>, pieces: &mut Vec<AnswerPiece>) {
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
        pieces.push(AnswerPiece::Usage(self.usage));
    }
}

fn block_start(block: u32, content: &Value, pieces: &mut Vec<AnswerPiece>) -> bool {
    let field = |key: &str| text(content, key).filter(|text| !text.is_empty()).map(str::to_owned);
    match text(content, "type") {
        Some("text") => pieces.extend(field("text").map(|delta| AnswerPiece::Text { block, delta })),
        Some("thinking") => pieces.extend(field("thinking").map(|delta| AnswerPiece::Thinking { block, delta })),
        Some("redacted_thinking") => pieces.extend(field("data").map(|data| AnswerPiece::RedactedThinking { data })),
        Some("tool_use") => pieces.push(AnswerPiece::CallStart {
            block,
            id: field("id").unwrap_or_default(),
            name: field("name").unwrap_or_default(),
        }),
        _ => return false,
    }
    true
}

fn block_delta(block: u32, delta: &Value, pieces: &mut Vec<AnswerPiece>) -> bool {
    let field = |key: &str| text(delta, key).unwrap_or_default().to_owned();
    pieces.push(match text(delta, "type") {
        Some("text_delta") => AnswerPiece::Text { block, delta: field("text") },
        Some("thinking_delta") => AnswerPiece::Thinking { block, delta: field("thinking") },
        Some("signature_delta") => AnswerPiece::Signature { block, delta: field("signature") },
        Some("input_json_delta") => AnswerPiece::CallInput { block, delta: field("partial_json") },
        _ => return false,
    });
    true
}

fn stop(reason: &str) -> ModelStopReason {
    match reason {
        "tool_use" => ModelStopReason::Tools,
        "max_tokens" | "model_context_window_exceeded" => ModelStopReason::Length,
        "refusal" => ModelStopReason::Refused,
        "pause_turn" => ModelStopReason::Paused,
        _ => ModelStopReason::Finished,
    }
}

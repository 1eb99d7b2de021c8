//! OpenAI's Responses API. <https://platform.openai.com/docs/api-reference/responses-streaming>
//!
//! Nothing is stored at the vendor: every request has the whole conversation. So the model's reasoning arrives encrypted and
//! is sent back with the calls that it led to.

use super::{
    AnswerPiece, ModelRequest, ModelStopReason,
    failure::{ModelFailure, ModelFailureKind},
    invalid_json, number, set_options, text,
};
use crate::direct::conversation::{AssistantBlock, ModelMessage, ModelToolResult, ToolResultContent, UserPart};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use workbench::event_stream::ServerSentEvent;

pub fn body(request: &ModelRequest<'_>) -> Value {
    let mut body = json!({"model": request.model, "stream": true, "store": false, "input": input(request)});
    if !request.system.is_empty() {
        body["instructions"] = json!(request.system);
    }
    if !request.tools.is_empty() {
        let tool = |offer: &super::OfferedTool| {
            let name = request.names.api_name(&offer.name);
            // Strict schemas would need every property to be required.
            json!({"type": "function", "name": name, "description": offer.description, "parameters": offer.schema,
                   "strict": false})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if let Some(most) = request.max_output_tokens {
        body["max_output_tokens"] = json!(most);
    }
    if is_reasoning_model(request.model) {
        body["include"] = json!(["reasoning.encrypted_content"]);
        body["reasoning"] = match request.thinking {
            None => json!({"summary": "auto"}),
            Some(Thinking::Off) => json!({"effort": "none"}),
            Some(effort) => json!({"summary": "auto", "effort": effort.as_str()}),
        };
    }
    set_options(&mut body, [("temperature", request.temperature), ("top_p", request.top_p)]);
    body
}

/// The API rejects the settings of reasoning for models without it, and does not list which ones those are.
fn is_reasoning_model(model: &str) -> bool {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    !["gpt-3", "gpt-4", "chatgpt-"].iter().any(|older| model.starts_with(older)) && !model.contains("-chat")
}

fn input(request: &ModelRequest<'_>) -> Vec<Value> {
    let mut items = Vec::new();
    for message in request.messages {
        match message {
            ModelMessage::User(parts) => {
                let parts: Vec<Value> = parts.iter().filter_map(user_part).collect();
                if !parts.is_empty() {
                    items.push(json!({"type": "message", "role": "user", "content": parts}));
                }
            }
            ModelMessage::Assistant(blocks) => items.extend(blocks.iter().filter_map(|block| item(block, request))),
            ModelMessage::ToolResults(results) => items.extend(results.iter().map(result)),
        }
    }
    items
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn user_part(part: &UserPart) -> Option<Value> {
    match part {
        UserPart::Text(text) => (!text.is_empty()).then(|| text_part(text)),
        UserPart::Image { media_type, data } => {
            Some(json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{data}")}))
        }
        UserPart::Pdf { name, data } => {
            let data = format!("data:application/pdf;base64,{data}");
            Some(json!({"type": "input_file", "filename": name, "file_data": data}))
        }
    }
}

fn item(block: &AssistantBlock, request: &ModelRequest<'_>) -> Option<Value> {
    match block {
        AssistantBlock::Text(text) => {
            let content = json!([{"type": "output_text", "text": text}]);
            Some(json!({"type": "message", "role": "assistant", "content": content}))
        }
        AssistantBlock::RedactedThinking(item) => serde_json::from_str(item).ok(),
        AssistantBlock::ToolCall(call) => {
            let arguments = Value::Object(call.input.clone()).to_string();
            let name = request.names.api_name(&call.name);
            Some(json!({"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments}))
        }
        AssistantBlock::Thinking { .. } => None,
    }
}

fn result(answered: &ModelToolResult) -> Value {
    let has_images = answered.content.iter().any(|content| matches!(content, ToolResultContent::Image { .. }));
    let part = |content: &ToolResultContent| match content {
        ToolResultContent::Text(text) => text_part(text),
        ToolResultContent::Image { media_type, data } => {
            json!({"type": "input_image", "image_url": format!("data:{media_type};base64,{data}")})
        }
    };
    let output = match has_images {
        true => answered.content.iter().map(part).collect(),
        false => Value::from(answered.text()),
    };
    json!({"type": "function_call_output", "call_id": answered.call_id, "output": output})
}

#[derive(Debug, Default)]
pub struct ResponsesReader {
    /// The indexes of function calls, and of those whose arguments have arrived.
    calls: BTreeSet<u32>,
    filled: BTreeSet<u32>,
    pub is_done: bool,
}

impl ResponsesReader {
    /// Returns whether the event is known.
    pub fn read(&mut self, received: &ServerSentEvent, pieces: &mut Vec<AnswerPiece>) -> Result<bool, ModelFailure> {
        let event: Value = serde_json::from_str(&received.data).map_err(|error| invalid_json(&error))?;
        let block = number(&event, "output_index").and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let inner = |key: &str| event.get(key).unwrap_or(&Value::Null);
        let delta = || text(&event, "delta").filter(|delta| !delta.is_empty()).map(str::to_owned);
        match text(&event, "type").unwrap_or(&received.name) {
            "response.created" => {
                pieces.extend(text(inner("response"), "model").map(|model| AnswerPiece::Model(model.to_owned())));
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                pieces.extend(delta().map(|delta| AnswerPiece::Text { block, delta }));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                pieces.extend(delta().map(|delta| AnswerPiece::Thinking { block, delta }));
            }
            "response.reasoning_summary_part.added" => {
                let is_first = number(&event, "summary_index").unwrap_or(0) == 0;
                pieces.extend((!is_first).then(|| AnswerPiece::Thinking { block, delta: "\n\n".into() }));
            }
            "response.output_item.added" => self.item_added(block, inner("item"), pieces),
            "response.function_call_arguments.delta" => {
                if let Some(delta) = delta() {
                    self.filled.insert(block);
                    pieces.push(AnswerPiece::CallInput { block, delta });
                }
            }
            "response.output_item.done" => self.item_done(block, inner("item"), pieces),
            "response.completed" | "response.incomplete" => self.end(inner("response"), pieces),
            "response.failed" => return Err(ModelFailure::from_event(inner("response"))),
            "error" => return Err(ModelFailure::from_event(&event)),
            "response.cancelled" => {
                let message = "the model's API cancelled the answer";
                return Err(ModelFailure::new(ModelFailureKind::Disconnected, message));
            }
            "response.in_progress"
            | "response.queued"
            | "response.content_part.added"
            | "response.content_part.done"
            | "response.output_text.done"
            | "response.output_text.annotation.added"
            | "response.refusal.done"
            | "response.reasoning_text.done"
            | "response.reasoning_summary_text.done"
            | "response.reasoning_summary_part.done"
            | "response.function_call_arguments.done" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn item_added(&mut self, block: u32, item: &Value, pieces: &mut Vec<AnswerPiece>) {
        if text(item, "type") == Some("function_call") && self.calls.insert(block) {
            let field = |key: &str| text(item, key).unwrap_or_default().to_owned();
            pieces.push(AnswerPiece::CallStart { block, id: field("call_id"), name: field("name") });
        }
    }

    fn item_done(&mut self, block: u32, item: &Value, pieces: &mut Vec<AnswerPiece>) {
        match text(item, "type") {
            Some("function_call") => {
                // Some servers announce no item, or send its arguments only here.
                self.item_added(block, item, pieces);
                if self.filled.insert(block) {
                    let arguments = text(item, "arguments").unwrap_or_default().to_owned();
                    pieces.push(AnswerPiece::CallInput { block, delta: arguments });
                }
            }
            Some("reasoning") if text(item, "encrypted_content").is_some() => {
                pieces.push(AnswerPiece::RedactedThinking { data: reasoning_item(item).to_string() });
            }
            _ => {}
        }
        pieces.push(AnswerPiece::BlockEnd { block });
    }

    fn end(&mut self, response: &Value, pieces: &mut Vec<AnswerPiece>) {
        pieces.extend(
            response.get("usage").filter(|usage| usage.is_object()).map(|usage| AnswerPiece::Usage(tokens(usage))),
        );
        let incomplete = response.get("incomplete_details").and_then(|details| text(details, "reason"));
        pieces.push(AnswerPiece::Stop(match incomplete {
            Some("content_filter") => ModelStopReason::Refused,
            Some(_) => ModelStopReason::Length,
            None if !self.calls.is_empty() => ModelStopReason::Tools,
            None => ModelStopReason::Finished,
        }));
        self.is_done = true;
        pieces.push(AnswerPiece::Done);
    }
}

/// The fields that the API accepts in a request.
fn reasoning_item(item: &Value) -> Value {
    let field = |key: &str| item.get(key).cloned().unwrap_or_default();
    let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
    json!({"type": "reasoning", "id": field("id"), "summary": summary, "encrypted_content": field("encrypted_content")})
}

fn tokens(usage: &Value) -> Usage {
    let details = usage.get("input_tokens_details").unwrap_or(&Value::Null);
    let input = number(usage, "input_tokens").unwrap_or(0);
    let cached = number(details, "cached_tokens").unwrap_or(0).min(input);
    Usage {
        input_tokens: input - cached,
        output_tokens: number(usage, "output_tokens").unwrap_or(0),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
    }
}

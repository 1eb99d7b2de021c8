//! Chat completions of OpenAI, Ollama, vLLM, LM Studio and other servers, each with its own deviations.
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use super::{
    AnswerPiece, ModelRequest, ModelStopReason, failure::ModelFailure, invalid_json, number, set_options, text,
};
use crate::direct::conversation::{AssistantBlock, ModelMessage, ToolResultContent, UserPart};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Value, json};
use workbench::event_stream::ServerSentEvent;

pub fn body(request: &ModelRequest<'_>) -> Value {
    let mut body = json!({
        "model": request.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages(request),
    });
    if !request.tools.is_empty() {
        let tool = |offer: &super::OfferedTool| {
            let name = request.names.api_name(&offer.name);
            let function = json!({"name": name, "description": offer.description, "parameters": offer.schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    if !request.stop.is_empty() {
        body["stop"] = json!(request.stop);
    }
    if let Some(most) = request.max_output_tokens {
        // OpenAI's reasoning models reject the old name; some local servers do not know the new one.
        body[if request.is_openai_service { "max_completion_tokens" } else { "max_tokens" }] = json!(most);
    }
    match request.thinking {
        None => {}
        // Compatible servers have no common word for it.
        Some(Thinking::Off) if !request.is_openai_service => {}
        Some(Thinking::Off) => body["reasoning_effort"] = json!("none"),
        Some(effort) => body["reasoning_effort"] = json!(effort.as_str()),
    }
    set_options(&mut body, [("temperature", request.temperature), ("top_p", request.top_p)]);
    body
}

/// Merges consecutive user messages: the templates of some local models require alternating roles.
fn messages(request: &ModelRequest<'_>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in request.messages {
        match message {
            ModelMessage::User(parts) => push_user(&mut messages, user_content(parts)),
            ModelMessage::Assistant(blocks) => messages.push(assistant(blocks, request)),
            ModelMessage::ToolResults(results) => {
                for answered in results {
                    let content = answered.text();
                    messages.push(json!({"role": "tool", "tool_call_id": answered.call_id, "content": content}));
                }
                // A tool message can contain text only, so images follow in a user message.
                let images = results.iter().flat_map(|answered| &answered.content).filter_map(image);
                let mut parts = vec![json!({"type": "text", "text": "The images in the results above:"})];
                parts.extend(images);
                if parts.len() > 1 {
                    push_user(&mut messages, parts.into());
                }
            }
        }
    }
    messages
}

/// Text as a string: not every server knows parts.
fn user_content(parts: &[UserPart]) -> Value {
    let part = |part: &UserPart| match part {
        UserPart::Text(text) => json!({"type": "text", "text": text}),
        UserPart::Image { media_type, data } => image_part(media_type, data),
        UserPart::Pdf { name, data } => {
            let data = format!("data:application/pdf;base64,{data}");
            json!({"type": "file", "file": {"filename": name, "file_data": data}})
        }
    };
    match parts.iter().all(|part| matches!(part, UserPart::Text(_))) {
        true => parts.iter().map(UserPart::as_text).collect::<Vec<_>>().join("\n\n").into(),
        false => parts.iter().map(part).collect(),
    }
}

fn push_user(messages: &mut Vec<Value>, content: Value) {
    let Some(last) = messages.last_mut().filter(|last| last["role"] == "user") else {
        messages.push(json!({"role": "user", "content": content}));
        return;
    };
    last["content"] = match (last["content"].take(), content) {
        (Value::String(before), Value::String(after)) => format!("{before}\n\n{after}").into(),
        (before, after) => as_parts(before).into_iter().chain(as_parts(after)).collect(),
    };
}

fn as_parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    }
}

fn image_part(media_type: &str, data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}})
}

fn image(content: &ToolResultContent) -> Option<Value> {
    let ToolResultContent::Image { media_type, data } = content else { return None };
    Some(image_part(media_type, data))
}

fn assistant(blocks: &[AssistantBlock], request: &ModelRequest<'_>) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            AssistantBlock::Text(part) => text.push_str(part),
            AssistantBlock::ToolCall(call) => {
                let arguments = Value::Object(call.input.clone()).to_string();
                let function = json!({"name": request.names.api_name(&call.name), "arguments": arguments});
                calls.push(json!({"id": call.id, "type": "function", "function": function}));
            }
            // Not supported by this API.
            AssistantBlock::Thinking { .. } | AssistantBlock::RedactedThinking(_) => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
        if message["content"] == "" {
            message["content"] = Value::Null;
        }
    }
    message
}

const THINKING: u32 = 0;
const TEXT: u32 = 1;
const CALLS: u32 = 2;

#[derive(Debug, Default)]
pub struct OpenAiReader {
    /// (the server's index, its id) of each call, in the order they began.
    calls: Vec<(u64, String)>,
    /// The block of the open call.
    open: Option<u32>,
    has_model: bool,
    has_stopped: bool,
    is_done: bool,
}

impl OpenAiReader {
    /// Returns whether the event is known.
    pub fn read(&mut self, event: &ServerSentEvent, pieces: &mut Vec<AnswerPiece>) -> Result<bool, ModelFailure> {
        if event.data.trim() == "[DONE]" {
            self.end(pieces);
            return Ok(true);
        }
        let chunk: Value = serde_json::from_str(&event.data).map_err(|error| invalid_json(&error))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(ModelFailure::from_event(&chunk));
        }
        let before = pieces.len();
        if let Some(model) = text(&chunk, "model").filter(|model| !self.has_model && !model.is_empty()) {
            self.has_model = true;
            pieces.push(AnswerPiece::Model(model.to_owned()));
        }
        let choice = chunk.get("choices").and_then(|choices| choices.get(0));
        if let Some(choice) = choice {
            self.choice(choice, pieces);
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            pieces.push(AnswerPiece::Usage(tokens(usage)));
        }
        // Streams start and end with an empty delta.
        Ok(choice.is_some() || pieces.len() > before)
    }

    fn choice(&mut self, choice: &Value, pieces: &mut Vec<AnswerPiece>) {
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        let field = |key: &str| text(delta, key).filter(|text| !text.is_empty()).map(str::to_owned);
        let thought = field("reasoning_content").or_else(|| field("reasoning"));
        pieces.extend(thought.map(|delta| AnswerPiece::Thinking { block: THINKING, delta }));
        let said = field("content").or_else(|| field("refusal"));
        pieces.extend(said.map(|delta| AnswerPiece::Text { block: TEXT, delta }));
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, pieces);
        }
        if let Some(reason) = text(choice, "finish_reason") {
            self.close(pieces);
            self.has_stopped = true;
            pieces.push(AnswerPiece::Stop(stop(reason)));
        }
    }

    /// Most servers send an index; some send 0 for every call with different ids, some send no index.
    fn call(&mut self, call: &Value, pieces: &mut Vec<AnswerPiece>) {
        let function = call.get("function").unwrap_or(&Value::Null);
        let id = text(call, "id").filter(|id| !id.is_empty());
        let name = text(function, "name").filter(|name| !name.is_empty());
        let index = number(call, "index");
        let same = |(known, known_id): &(u64, String)| match (index, id) {
            (_, Some(id)) if !known_id.is_empty() => known_id == id,
            (Some(index), _) => *known == index,
            (None, _) => name.is_none(),
        };
        let at = match self.calls.iter().rposition(same) {
            Some(at) => at,
            None => {
                self.close(pieces);
                let id = id.unwrap_or_default().to_owned();
                self.calls.push((index.unwrap_or(self.calls.len() as u64), id.clone()));
                let at = self.calls.len() - 1;
                let block = block(at);
                self.open = Some(block);
                pieces.push(AnswerPiece::CallStart { block, id, name: name.unwrap_or_default().to_owned() });
                at
            }
        };
        // Ollama and others may send the arguments as an object.
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => return,
        };
        if !arguments.is_empty() {
            pieces.push(AnswerPiece::CallInput { block: block(at), delta: arguments });
        }
    }

    fn close(&mut self, pieces: &mut Vec<AnswerPiece>) {
        pieces.extend(self.open.take().map(|block| AnswerPiece::BlockEnd { block }));
    }

    /// Returns whether the answer is complete: some servers send no end marker, but all send a finish reason.
    pub fn end(&mut self, pieces: &mut Vec<AnswerPiece>) -> bool {
        if self.has_stopped && !self.is_done {
            self.is_done = true;
            pieces.push(AnswerPiece::Done);
        }
        self.is_done
    }
}

fn block(at: usize) -> u32 {
    CALLS.saturating_add(u32::try_from(at).unwrap_or(u32::MAX))
}

fn tokens(usage: &Value) -> Usage {
    let details = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
    let prompt = number(usage, "prompt_tokens").unwrap_or(0);
    let cached = number(details, "cached_tokens").unwrap_or(0).min(prompt);
    Usage {
        input_tokens: prompt - cached,
        output_tokens: number(usage, "completion_tokens").unwrap_or(0),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
    }
}

fn stop(reason: &str) -> ModelStopReason {
    match reason {
        "tool_calls" | "function_call" => ModelStopReason::Tools,
        "length" => ModelStopReason::Length,
        "content_filter" => ModelStopReason::Refused,
        _ => ModelStopReason::Finished,
    }
}

//! Chat completions: OpenAI's, and those of Ollama, vLLM, LM Studio and many others, each with liberties of its own.
//! <https://platform.openai.com/docs/api-reference/chat-streaming>

use super::{Piece, Question, Stop, failure::Failure, garbled, number, text};
use crate::direct::conversation::{Block, Content, Message};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Value, json};
use workbench::events::Event;

pub fn body(question: &Question<'_>) -> Value {
    let mut body = json!({
        "model": question.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages(question),
    });
    if !question.tools.is_empty() {
        let tool = |offer: &super::Offer| {
            let name = question.names.fitted(&offer.name);
            let function = json!({"name": name, "description": offer.description, "parameters": offer.schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = question.tools.iter().map(tool).collect();
    }
    if !question.stop.is_empty() {
        body["stop"] = json!(question.stop);
    }
    if let Some(most) = question.max_output_tokens {
        // OpenAI's reasoning models refuse the old name; local servers do not all know the new one.
        body[if question.is_vendors_own { "max_completion_tokens" } else { "max_tokens" }] = json!(most);
    }
    if let Some(effort) = question.thinking.filter(|thinking| *thinking != Thinking::Off) {
        body["reasoning_effort"] = json!(effort.as_str());
    }
    body
}

/// Neighbours of one side become one message: the templates of some local models insist on taking turns.
fn messages(question: &Question<'_>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    if !question.system.is_empty() {
        messages.push(json!({"role": "system", "content": question.system}));
    }
    for message in question.messages {
        match message {
            Message::Person(texts) => {
                let text = texts.join("\n\n");
                match messages.last_mut().filter(|last| last["role"] == "user" && last["content"].is_string()) {
                    Some(last) => {
                        last["content"] = format!("{}\n\n{text}", last["content"].as_str().unwrap_or("")).into()
                    }
                    None => messages.push(json!({"role": "user", "content": text})),
                }
            }
            Message::Model(blocks) => messages.push(spoken(blocks, question)),
            Message::Results(results) => {
                for answered in results {
                    let content = answered.text();
                    messages.push(json!({"role": "tool", "tool_call_id": answered.call, "content": content}));
                }
                // A tool's message holds text only; what it shows is shown by us.
                let images = results.iter().flat_map(|answered| &answered.content).filter_map(image);
                let mut parts = vec![json!({"type": "text", "text": "The images in the results above:"})];
                parts.extend(images);
                if parts.len() > 1 {
                    messages.push(json!({"role": "user", "content": parts}));
                }
            }
        }
    }
    messages
}

fn image(content: &Content) -> Option<Value> {
    let Content::Image { media_type, data } = content else { return None };
    Some(json!({"type": "image_url", "image_url": {"url": format!("data:{media_type};base64,{data}")}}))
}

fn spoken(blocks: &[Block], question: &Question<'_>) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text(said) => text.push_str(said),
            Block::Call(call) => {
                let arguments = Value::Object(call.input.clone()).to_string();
                let function = json!({"name": question.names.fitted(&call.name), "arguments": arguments});
                calls.push(json!({"id": call.id, "type": "function", "function": function}));
            }
            // This API has no place for it.
            Block::Thinking { .. } | Block::Redacted(_) => {}
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
pub struct Reader {
    /// (the server's index, its id) of each call, in the order they began.
    calls: Vec<(u64, String)>,
    /// The block of the call that is being said.
    open: Option<u32>,
    has_model: bool,
    has_stopped: bool,
    is_done: bool,
}

impl Reader {
    /// Whether something was made of it.
    pub fn read(&mut self, frame: &Event, pieces: &mut Vec<Piece>) -> Result<bool, Failure> {
        if frame.data.trim() == "[DONE]" {
            self.end(pieces);
            return Ok(true);
        }
        let chunk: Value = serde_json::from_str(&frame.data).map_err(|error| garbled(&error))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Failure::of_event(&chunk));
        }
        let before = pieces.len();
        if let Some(model) = text(&chunk, "model").filter(|model| !self.has_model && !model.is_empty()) {
            self.has_model = true;
            pieces.push(Piece::Model(model.to_owned()));
        }
        let choice = chunk.get("choices").and_then(|choices| choices.get(0));
        if let Some(choice) = choice {
            self.choice(choice, pieces);
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            pieces.push(Piece::Usage(tokens(usage)));
        }
        // An empty delta is how a stream begins and ends.
        Ok(choice.is_some() || pieces.len() > before)
    }

    fn choice(&mut self, choice: &Value, pieces: &mut Vec<Piece>) {
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        let words = |key: &str| text(delta, key).filter(|text| !text.is_empty()).map(str::to_owned);
        let thought = words("reasoning_content").or_else(|| words("reasoning"));
        pieces.extend(thought.map(|delta| Piece::Thinking { block: THINKING, delta }));
        let said = words("content").or_else(|| words("refusal"));
        pieces.extend(said.map(|delta| Piece::Text { block: TEXT, delta }));
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call, pieces);
        }
        if let Some(reason) = text(choice, "finish_reason") {
            self.close(pieces);
            self.has_stopped = true;
            pieces.push(Piece::Stops(stop(reason)));
        }
    }

    /// Most servers number their calls; some give every call the number 0 and another id, some no number at all.
    fn call(&mut self, call: &Value, pieces: &mut Vec<Piece>) {
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
                pieces.push(Piece::CallBegins { block, id, name: name.unwrap_or_default().to_owned() });
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
            pieces.push(Piece::CallInput { block: block(at), delta: arguments });
        }
    }

    fn close(&mut self, pieces: &mut Vec<Piece>) {
        pieces.extend(self.open.take().map(|block| Piece::BlockEnds { block }));
    }

    /// Whether the answer is whole: some servers close without the mark of an end, but all say why they stopped.
    pub fn end(&mut self, pieces: &mut Vec<Piece>) -> bool {
        if self.has_stopped && !self.is_done {
            self.is_done = true;
            pieces.push(Piece::Done);
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

fn stop(reason: &str) -> Stop {
    match reason {
        "tool_calls" | "function_call" => Stop::Tools,
        "length" => Stop::Length,
        "content_filter" => Stop::Refused,
        _ => Stop::Finished,
    }
}

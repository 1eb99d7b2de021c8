//! Google's Gemini API, `streamGenerateContent`. <https://ai.google.dev/api/generate-content>

use super::{AnswerPiece, ModelRequest, ModelStopReason, failure::ModelFailure, invalid_json, number, text};
use crate::direct::conversation::{AssistantBlock, ModelMessage, ModelToolResult, ToolResultContent, UserPart};
use domain::{agent::Thinking, usage::Usage};
use serde_json::{Map, Value, json};
use workbench::event_stream::ServerSentEvent;

pub fn body(request: &ModelRequest<'_>) -> Value {
    let mut body = json!({"contents": contents(request), "generationConfig": generation(request)});
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
    }
    if !request.tools.is_empty() {
        let function = |offer: &super::OfferedTool| {
            json!({
                "name": request.names.api_name(&offer.name),
                "description": offer.description,
                "parametersJsonSchema": offer.schema,
            })
        };
        let functions: Vec<Value> = request.tools.iter().map(function).collect();
        body["tools"] = json!([{"functionDeclarations": functions}]);
    }
    body
}

fn generation(request: &ModelRequest<'_>) -> Value {
    let mut config = Map::new();
    let mut set = |key: &str, value: Option<Value>| drop(value.map(|value| config.insert(key.to_owned(), value)));
    set("temperature", request.temperature.map(Value::from));
    set("topP", request.top_p.map(Value::from));
    set("maxOutputTokens", request.max_output_tokens.map(Value::from));
    set("stopSequences", (!request.stop.is_empty()).then(|| json!(request.stop)));
    set(
        "thinkingConfig",
        Some(match (request.thinking, request.thinking_budget_tokens) {
            (Some(Thinking::Off), _) => json!({"thinkingBudget": 0}),
            (_, Some(budget)) => json!({"includeThoughts": true, "thinkingBudget": budget}),
            (Some(effort), None) => json!({"includeThoughts": true, "thinkingLevel": effort.as_str()}),
            (None, None) => json!({"includeThoughts": true}),
        }),
    );
    Value::Object(config)
}

/// Results directly follow their calls; consecutive contents of one role are allowed.
fn contents(request: &ModelRequest<'_>) -> Vec<Value> {
    let content = |message: &ModelMessage| {
        let (role, parts): (&str, Vec<Value>) = match message {
            ModelMessage::User(parts) => ("user", parts.iter().filter_map(user_part).collect()),
            ModelMessage::Assistant(blocks) => {
                ("model", blocks.iter().filter_map(|block| part(block, request)).collect())
            }
            ModelMessage::ToolResults(results) => ("user", result_parts(results, request)),
        };
        (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
    };
    request.messages.iter().filter_map(content).collect()
}

fn text_part(text: &str) -> Value {
    json!({"text": text})
}

fn user_part(part: &UserPart) -> Option<Value> {
    let inline = |media_type: &str, data: &str| json!({"inlineData": {"mimeType": media_type, "data": data}});
    match part {
        UserPart::Text(text) => (!text.is_empty()).then(|| text_part(text)),
        UserPart::Image { media_type, data } => Some(inline(media_type, data)),
        UserPart::Pdf { data, .. } => Some(inline("application/pdf", data)),
    }
}

fn part(block: &AssistantBlock, request: &ModelRequest<'_>) -> Option<Value> {
    match block {
        AssistantBlock::Text(text) => Some(text_part(text)),
        AssistantBlock::ToolCall(call) => {
            let name = request.names.api_name(&call.name);
            let mut part = json!({"functionCall": {"id": call.id, "name": name, "args": call.input}});
            if let Some(signature) = &call.signature {
                part["thoughtSignature"] = json!(signature);
            }
            Some(part)
        }
        // The API wants the signatures back, not the summaries of thoughts.
        AssistantBlock::Thinking { .. } | AssistantBlock::RedactedThinking(_) => None,
    }
}

/// A result is an object of texts, so images follow the results.
fn result_parts(results: &[ModelToolResult], request: &ModelRequest<'_>) -> Vec<Value> {
    let result = |answered: &ModelToolResult| {
        let response = json!({if answered.is_error { "error" } else { "output" }: answered.text()});
        let name = request.names.api_name(&answered.name);
        json!({"functionResponse": {"id": answered.call_id, "name": name, "response": response}})
    };
    let image = |content: &ToolResultContent| match content {
        ToolResultContent::Image { media_type, data } => {
            Some(json!({"inlineData": {"mimeType": media_type, "data": data}}))
        }
        ToolResultContent::Text(_) => None,
    };
    let images = results.iter().flat_map(|answered| &answered.content).filter_map(image);
    results.iter().map(result).chain(images).collect()
}

const THINKING: u32 = 0;
const TEXT: u32 = 1;
const CALLS: u32 = 2;

/// Every event is a whole response with the next parts of the answer. A function call is always complete.
#[derive(Debug, Default)]
pub struct GeminiReader {
    calls: u32,
    has_model: bool,
    has_stopped: bool,
}

impl GeminiReader {
    /// Returns whether the event is known.
    pub fn read(&mut self, event: &ServerSentEvent, pieces: &mut Vec<AnswerPiece>) -> Result<bool, ModelFailure> {
        let chunk: Value = serde_json::from_str(&event.data).map_err(|error| invalid_json(&error))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(ModelFailure::from_event(&chunk));
        }
        let before = pieces.len();
        if let Some(model) = text(&chunk, "modelVersion").filter(|_| !self.has_model) {
            self.has_model = true;
            pieces.push(AnswerPiece::Model(model.to_owned()));
        }
        let blocked = chunk.get("promptFeedback").and_then(|feedback| text(feedback, "blockReason"));
        if blocked.is_some() {
            self.stop(ModelStopReason::Refused, pieces);
        }
        let candidate = chunk.get("candidates").and_then(|candidates| candidates.get(0));
        if let Some(candidate) = candidate {
            let parts = candidate.get("content").and_then(|content| content.get("parts"));
            for part in parts.and_then(Value::as_array).into_iter().flatten() {
                self.part(part, pieces);
            }
        }
        // After the parts: the counts include them.
        if let Some(usage) = chunk.get("usageMetadata").filter(|usage| usage.is_object()) {
            pieces.push(AnswerPiece::Usage(tokens(usage)));
        }
        if let Some(reason) = candidate.and_then(|candidate| text(candidate, "finishReason")) {
            let reason = stop(reason, self.calls > 0);
            self.stop(reason, pieces);
        }
        Ok(candidate.is_some() || pieces.len() > before)
    }

    fn part(&mut self, part: &Value, pieces: &mut Vec<AnswerPiece>) {
        if let Some(call) = part.get("functionCall") {
            let block = CALLS.saturating_add(self.calls);
            self.calls += 1;
            let field = |key: &str| text(call, key).unwrap_or_default().to_owned();
            pieces.push(AnswerPiece::CallStart { block, id: field("id"), name: field("name") });
            let arguments = call.get("args").filter(|arguments| arguments.is_object());
            pieces.extend(arguments.map(|arguments| AnswerPiece::CallInput { block, delta: arguments.to_string() }));
            let signature = text(part, "thoughtSignature").map(str::to_owned);
            pieces.extend(signature.map(|delta| AnswerPiece::Signature { block, delta }));
            pieces.push(AnswerPiece::BlockEnd { block });
        } else if let Some(delta) = text(part, "text").filter(|delta| !delta.is_empty()).map(str::to_owned) {
            let is_thought = part.get("thought") == Some(&Value::Bool(true));
            pieces.push(match is_thought {
                true => AnswerPiece::Thinking { block: THINKING, delta },
                false => AnswerPiece::Text { block: TEXT, delta },
            });
        }
    }

    fn stop(&mut self, reason: ModelStopReason, pieces: &mut Vec<AnswerPiece>) {
        self.has_stopped = true;
        pieces.push(AnswerPiece::Stop(reason));
    }

    /// Returns whether the answer is complete. The API has no end marker: the last event has a finish reason.
    pub fn end(&mut self, pieces: &mut Vec<AnswerPiece>) -> bool {
        if self.has_stopped {
            pieces.push(AnswerPiece::Done);
        }
        self.has_stopped
    }
}

/// The prompt's count includes the cached part of it; thoughts are billed as output.
fn tokens(usage: &Value) -> Usage {
    let count = |key: &str| number(usage, key).unwrap_or(0);
    let prompt = count("promptTokenCount").saturating_add(count("toolUsePromptTokenCount"));
    let cached = count("cachedContentTokenCount").min(prompt);
    Usage {
        input_tokens: prompt - cached,
        output_tokens: count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount")),
        cache_read_tokens: cached,
        cache_write_tokens: 0,
    }
}

fn stop(reason: &str, has_calls: bool) -> ModelStopReason {
    match reason {
        "STOP" if has_calls => ModelStopReason::Tools,
        "MAX_TOKENS" => ModelStopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => ModelStopReason::Refused,
        _ => ModelStopReason::Finished,
    }
}

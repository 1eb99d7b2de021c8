//! OpenAI Responses: `POST /v1/responses`, always streamed, as Codex requests it.

use super::{
    reply::{IdSequence, ModelReply, PacedFrames, pieces, tokens},
    script::{AnswerEnding, ScriptedAnswer, ScriptedCall},
};
use domain::time::Timestamp;
use serde_json::{Map, Value, json};

/// The tokens counted per call.
const CALL_TOKENS: usize = 12;

pub fn reply(body: &Value, answer: &ScriptedAnswer, ids: &IdSequence) -> ModelReply {
    let mut stream = ResponsesStream {
        frames: PacedFrames::paced(answer.pace),
        number: 0,
        output: Vec::new(),
        base: json!({
            "id": ids.next("resp"), "object": "response", "created_at": Timestamp::now().as_millis() / 1000,
            "status": "in_progress", "model": body["model"], "output": [], "error": null, "incomplete_details": null,
        }),
    };
    let base = stream.base.clone();
    stream.event("response.created", json!({"response": base}));
    stream.event("response.in_progress", json!({"response": base}));
    let (mut output, mut reasoning) = (5, 0);
    if !answer.thinking.is_empty() {
        reasoning = stream.think(&answer.thinking, ids);
        output += reasoning;
    }
    if !answer.text.is_empty() {
        let id = ids.next("msg");
        output += stream.message(&answer.text, &id);
        match answer.ending {
            AnswerEnding::Complete => stream.close_message(&answer.text.concat(), &id),
            AnswerEnding::Error => {
                let error = json!({"code": "server_error", "message": "scripted failure inside the stream"});
                let failed = stream.response(json!({"status": "failed", "error": error}));
                stream.event("response.failed", json!({"response": failed}));
                return ModelReply::Stream(stream.frames);
            }
            AnswerEnding::Cut => {
                stream.frames.cut();
                return ModelReply::Stream(stream.frames);
            }
        }
    }
    for call in &answer.calls {
        stream.call(call, ids);
        output += CALL_TOKENS;
    }
    let input = tokens(&body["input"]);
    let usage = json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning}, "total_tokens": input + output,
    });
    let completed = stream.response(json!({"status": "completed", "output": stream.output, "usage": usage}));
    stream.event("response.completed", json!({"response": completed}));
    ModelReply::Stream(stream.frames)
}

struct ResponsesStream {
    frames: PacedFrames,
    number: u64,
    output: Vec<Value>,
    base: Value,
}

impl ResponsesStream {
    fn event(&mut self, name: &str, fields: Value) {
        let numbered = json!({"type": name, "sequence_number": self.number});
        self.frames.event(name, &with(numbered, fields));
        self.number += 1;
    }

    fn response(&self, changes: Value) -> Value {
        with(self.base.clone(), changes)
    }

    fn index(&self) -> usize {
        self.output.len()
    }

    fn add(&mut self, item: Value) {
        self.event("response.output_item.added", json!({"output_index": self.index(), "item": item}));
    }

    fn finish(&mut self, item: Value) {
        self.event("response.output_item.done", json!({"output_index": self.index(), "item": item}));
        self.output.push(item);
    }

    /// Returns the number of tokens.
    fn think(&mut self, thinking: &[String], ids: &IdSequence) -> usize {
        let id = ids.next("rs");
        let location = json!({"item_id": id, "output_index": self.index(), "summary_index": 0});
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let item = json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": null});
        self.add(item.clone());
        let event = "response.reasoning_summary_part.added";
        self.event(event, with(location.clone(), json!({"part": part("")})));
        // A summary starts with its title.
        let title = ["**Reasoning**\n\n".to_owned()];
        for delta in title.iter().chain(thinking) {
            self.frames.pause();
            self.event("response.reasoning_summary_text.delta", with(location.clone(), json!({"delta": delta})));
        }
        let text = format!("{}{}", title.concat(), thinking.concat());
        self.event("response.reasoning_summary_text.done", with(location.clone(), json!({"text": text})));
        self.event("response.reasoning_summary_part.done", with(location, json!({"part": part(&text)})));
        self.finish(with(item, json!({"summary": [part(&text)], "encrypted_content": "ZG91Ymxl"})));
        tokens(&text.into())
    }

    fn message(&mut self, text: &[String], id: &str) -> usize {
        let location = json!({"item_id": id, "output_index": self.index(), "content_index": 0});
        self.add(json!({"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}));
        self.event("response.content_part.added", with(location.clone(), json!({"part": output_text("")})));
        for delta in text {
            self.frames.pause();
            self.event("response.output_text.delta", with(location.clone(), json!({"delta": delta})));
        }
        tokens(&text.concat().into())
    }

    fn close_message(&mut self, text: &str, id: &str) {
        let location = json!({"item_id": id, "output_index": self.index(), "content_index": 0});
        self.event("response.output_text.done", with(location.clone(), json!({"text": text})));
        self.event("response.content_part.done", with(location, json!({"part": output_text(text)})));
        let content = [output_text(text)];
        self.finish(
            json!({"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content}),
        );
    }

    fn call(&mut self, call: &ScriptedCall, ids: &IdSequence) {
        let (id, index) = (ids.next("fc"), self.index());
        let location = json!({"item_id": id, "output_index": index});
        let mut item = json!({"id": id, "call_id": ids.next("call"), "name": call.tool.name});
        let (kind, field, value, event) = if call.tool.takes_text {
            let input = call.input["input"].as_str().map_or_else(|| call.input.to_string(), str::to_owned);
            ("custom_tool_call", "input", input, "response.custom_tool_call_input")
        } else {
            if let Some(namespace) = &call.tool.namespace {
                item = with(item, json!({"namespace": namespace}));
            }
            ("function_call", "arguments", call.input.to_string(), "response.function_call_arguments")
        };
        let state = |value: &str, status: &str| json!({"type": kind, field: value, "status": status});
        self.add(with(item.clone(), state("", "in_progress")));
        for delta in pieces(&value) {
            self.event(&format!("{event}.delta"), with(location.clone(), json!({"delta": delta})));
        }
        self.event(&format!("{event}.done"), with(location, json!({field: value})));
        self.finish(with(item, state(&value, "completed")));
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// Merges two objects; the second wins.
fn with(value: Value, more: Value) -> Value {
    let fields = |value: Value| match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    Value::Object(fields(value).into_iter().chain(fields(more)).collect())
}

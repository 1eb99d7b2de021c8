//! Anthropic Messages: `POST /v1/messages`, whole or streamed.

use super::{
    reply::{IdSequence, ModelReply, PacedFrames, pieces, tokens},
    script::{AnswerEnding, ScriptedAnswer},
};
use serde_json::{Value, json};

pub fn reply(body: &Value, answer: &ScriptedAnswer, ids: &IdSequence) -> ModelReply {
    let message = |content: Value, stop: Option<&str>, output: usize, id: &str| {
        json!({
            "id": id, "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": stop, "stop_sequence": null,
            "usage": {
                "input_tokens": tokens(&body["messages"]), "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": output, "service_tier": "standard",
            },
        })
    };
    let (blocks, id) = (blocks(answer, ids), ids.next("msg"));
    let stop = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    let content = Value::from_iter(blocks.iter().map(|block| block.whole.clone()));
    let output = tokens(&content);
    if body["stream"] != true {
        return ModelReply::ok(message(content, Some(stop), output, &id));
    }
    let mut frames = PacedFrames::paced(answer.pace);
    frames.event("message_start", &json!({"type": "message_start", "message": message(json!([]), None, 1, &id)}));
    frames.event("ping", &json!({"type": "ping"}));
    for (index, block) in blocks.iter().enumerate() {
        let start = json!({"type": "content_block_start", "index": index, "content_block": block.opening});
        frames.event("content_block_start", &start);
        for delta in &block.deltas {
            frames.pause();
            delta_frame(&mut frames, index, delta);
        }
        match answer.ending {
            AnswerEnding::Complete => {}
            AnswerEnding::Error => {
                let error = json!({"type": "overloaded_error", "message": "Overloaded"});
                frames.event("error", &json!({"type": "error", "error": error}));
                return ModelReply::Stream(frames);
            }
            AnswerEnding::Cut => {
                frames.cut();
                return ModelReply::Stream(frames);
            }
        }
        if let Some(signature) = block.whole.get("signature") {
            delta_frame(&mut frames, index, &json!({"type": "signature_delta", "signature": signature}));
        }
        frames.event("content_block_stop", &json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    let usage = json!({"output_tokens": output});
    frames.event("message_delta", &json!({"type": "message_delta", "delta": delta, "usage": usage}));
    frames.event("message_stop", &json!({"type": "message_stop"}));
    ModelReply::Stream(frames)
}

fn delta_frame(frames: &mut PacedFrames, index: usize, delta: &Value) {
    frames.event("content_block_delta", &json!({"type": "content_block_delta", "index": index, "delta": delta}));
}

struct AnthropicBlock {
    whole: Value,
    opening: Value,
    deltas: Vec<Value>,
}

fn blocks(answer: &ScriptedAnswer, ids: &IdSequence) -> Vec<AnthropicBlock> {
    let mut blocks = Vec::new();
    if !answer.thinking.is_empty() {
        let signature = "c2lnbmF0dXJl";
        blocks.push(AnthropicBlock {
            whole: json!({"type": "thinking", "thinking": answer.thinking.concat(), "signature": signature}),
            opening: json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas: answer.thinking.iter().map(|it| json!({"type": "thinking_delta", "thinking": it})).collect(),
        });
    }
    if !answer.text.is_empty() {
        blocks.push(AnthropicBlock {
            whole: json!({"type": "text", "text": answer.text.concat()}),
            opening: json!({"type": "text", "text": ""}),
            deltas: answer.text.iter().map(|it| json!({"type": "text_delta", "text": it})).collect(),
        });
    }
    for call in &answer.calls {
        let (id, name) = (ids.next("toolu"), call.tool.full_name());
        let input = pieces(&call.input.to_string());
        blocks.push(AnthropicBlock {
            whole: json!({"type": "tool_use", "id": id, "name": name, "input": call.input}),
            opening: json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            deltas: input.iter().map(|it| json!({"type": "input_json_delta", "partial_json": it})).collect(),
        });
    }
    blocks
}

//! OpenAI chat completions: `POST /v1/chat/completions`, whole or streamed.

use super::{
    reply::{IdSequence, ModelReply, PacedFrames, pieces, tokens},
    script::{AnswerEnding, ScriptedAnswer},
};
use domain::time::Timestamp;
use serde_json::{Value, json};

pub fn reply(body: &Value, answer: &ScriptedAnswer, ids: &IdSequence) -> ModelReply {
    let (id, created) = (ids.next("chatcmpl"), Timestamp::now().as_millis() / 1000);
    let text = answer.text.concat();
    let (input, output) = (tokens(&body["messages"]), tokens(&Value::from(text.as_str())));
    let reasoning = if answer.thinking.is_empty() { 0 } else { tokens(&answer.thinking.concat().into()) };
    let usage = json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    });
    let calls: Vec<(String, String, String)> =
        answer.calls.iter().map(|call| (ids.next("call"), call.tool.full_name(), call.input.to_string())).collect();
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let tool_call = |index: usize, id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"index": index, "id": id, "type": "function", "function": function})
    };

    if body["stream"] != true {
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_empty() {
            let calls = calls.iter().enumerate();
            message["tool_calls"] = calls.map(|(index, (id, name, input))| tool_call(index, id, name, input)).collect();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        return ModelReply::ok(json!({
            "id": id, "object": "chat.completion", "created": created, "model": body["model"],
            "choices": [choice], "usage": usage,
        }));
    }

    let chunk = |choices: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": created, "model": body["model"],
            "choices": choices,
        })
    };
    let delta =
        |delta: Value, reason: Option<&str>| chunk(json!([{"index": 0, "delta": delta, "finish_reason": reason}]));
    let mut frames = PacedFrames::paced(answer.pace);
    frames.data(&delta(json!({"role": "assistant", "content": ""}), None));
    for thought in &answer.thinking {
        frames.pause();
        frames.data(&delta(json!({"reasoning_content": thought}), None));
    }
    for word in &answer.text {
        frames.pause();
        frames.data(&delta(json!({"content": word}), None));
    }
    match answer.ending {
        AnswerEnding::Complete => {}
        AnswerEnding::Error => {
            frames.data(&json!({"error": {"message": "scripted failure inside the stream", "type": "server_error"}}));
            return ModelReply::Stream(frames);
        }
        AnswerEnding::Cut => {
            frames.cut();
            return ModelReply::Stream(frames);
        }
    }
    for (index, (id, name, input)) in calls.iter().enumerate() {
        frames.data(&delta(json!({"tool_calls": [tool_call(index, id, name, "")]}), None));
        for piece in pieces(input) {
            let part = json!({"index": index, "function": {"arguments": piece}});
            frames.data(&delta(json!({"tool_calls": [part]}), None));
        }
    }
    frames.data(&delta(json!({}), Some(reason)));
    let mut last = chunk(json!([]));
    last["usage"] = usage;
    frames.data(&last);
    frames.literal("[DONE]");
    ModelReply::Stream(frames)
}

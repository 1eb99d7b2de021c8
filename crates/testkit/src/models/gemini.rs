//! Gemini: `:streamGenerateContent` and `:generateContent`.

use super::{
    reply::{IdSequence, ModelReply, PacedFrames, tokens},
    script::{AnswerEnding, ScriptedAnswer},
};
use serde_json::{Value, json};

/// The tokens counted per call.
const CALL_TOKENS: usize = 10;

/// The CLI sends its own requests, such as which model to use or who speaks next, and expects JSON. They are not part
/// of the conversation, so no script applies to them.
pub fn is_side_question(body: &Value) -> bool {
    let config = &body["generationConfig"];
    !config["responseJsonSchema"].is_null()
        || !config["responseSchema"].is_null()
        || config["responseMimeType"] == "application/json"
}

/// Returns an object that answers any of the known side questions.
pub fn side_answer(body: &Value, model: &str, ids: &IdSequence) -> ModelReply {
    let text = json!({
        "reasoning": "scripted", "next_speaker": "user", "model_choice": "flash", "complexity_reasoning": "scripted",
        "complexity_score": 1, "confidence": 0, "unproductive_state_confidence": 0,
        "unproductive_state_analysis": "scripted",
    });
    let mut content = GeminiContent::new(body, model, ids);
    content.output = tokens(&text);
    ModelReply::ok(content.with(json!([{"text": text.to_string()}]), true))
}

pub fn reply(body: &Value, answer: &ScriptedAnswer, ids: &IdSequence, model: &str, is_streamed: bool) -> ModelReply {
    let mut content = GeminiContent::new(body, model, ids);
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .map(|call| {
            let function = json!({"id": ids.next("gcall"), "name": call.tool.full_name(), "args": call.input});
            json!({"functionCall": function, "thoughtSignature": "ZG91Ymxl"})
        })
        .collect();
    if !is_streamed {
        let text = answer.text.concat();
        content.output = tokens(&Value::from(text.as_str()));
        let parts: Vec<Value> = std::iter::once(json!({"text": text})).chain(calls).collect();
        return ModelReply::ok(content.with(parts.into(), true));
    }
    let mut frames = PacedFrames::paced(answer.pace);
    // Thinking is one part: the CLI takes the text between the asterisks as its title.
    if !answer.thinking.is_empty() {
        let thought = format!("**Thought**\n\n{}", answer.thinking.concat());
        content.thoughts += tokens(&Value::from(thought.as_str()));
        frames.pause();
        frames.data(&content.with(json!([{"text": thought, "thought": true}]), false));
    }
    for word in &answer.text {
        content.output += 1;
        frames.pause();
        frames.data(&content.with(json!([{"text": word}]), false));
    }
    match answer.ending {
        AnswerEnding::Complete => {}
        AnswerEnding::Error => {
            let message = "scripted failure inside the stream";
            frames.data(&json!({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}));
            return ModelReply::Stream(frames);
        }
        AnswerEnding::Cut => {
            frames.cut();
            return ModelReply::Stream(frames);
        }
    }
    if !calls.is_empty() {
        content.output += CALL_TOKENS;
        frames.data(&content.with(calls.into(), false));
    }
    frames.data(&content.with(json!([{"text": ""}]), true));
    ModelReply::Stream(frames)
}

struct GeminiContent<'a> {
    model: &'a str,
    id: String,
    input: usize,
    output: usize,
    thoughts: usize,
}

impl<'a> GeminiContent<'a> {
    fn new(body: &Value, model: &'a str, ids: &IdSequence) -> Self {
        Self { model, id: ids.next("gem"), input: tokens(&body["contents"]), output: 0, thoughts: 0 }
    }

    fn with(&self, parts: Value, is_last: bool) -> Value {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if is_last {
            candidate["finishReason"] = "STOP".into();
        }
        let mut usage = json!({
            "promptTokenCount": self.input, "candidatesTokenCount": self.output,
            "totalTokenCount": self.input + self.output + self.thoughts,
        });
        if self.thoughts > 0 {
            usage["thoughtsTokenCount"] = self.thoughts.into();
        }
        json!({
            "candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model, "responseId": self.id,
        })
    }
}

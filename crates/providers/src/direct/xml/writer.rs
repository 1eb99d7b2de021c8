//! The writer: instructions for tool calls, and a conversation with calls as text.

use super::{CLOSE, INVOKE_CLOSE, OPEN, PARAMETER_CLOSE};
use crate::direct::{
    conversation::{AssistantBlock, ModelMessage, ModelToolCall, ModelToolResult, UserPart},
    wire::OfferedTool,
};
use serde_json::Value;

/// The part of the system prompt that explains tool calls.
pub fn instructions(tools: &[OfferedTool]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "You have tools. To call them, end your answer with a block of exactly this form, and stop after it:\n\n\
         <function_calls>\n<invoke name=\"TOOL\">\n<parameter name=\"PARAMETER\">VALUE</parameter>\n</invoke>\n\
         </function_calls>\n\n\
         Several <invoke> elements may stand in one block. Texts are written as they are, without quotes or escapes; lists \
         and objects as JSON. The results come back as <function_results>; never write those yourself.\n\n<functions>\n",
    );
    for tool in tools {
        let schema = serde_json::json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
        text.push_str(&format!("<function>{schema}</function>\n"));
    }
    text.push_str("</functions>");
    text
}

/// Converts calls and results into text.
pub fn with_calls_as_text(messages: &[ModelMessage]) -> Vec<ModelMessage> {
    let flat = |message: &ModelMessage| match message {
        ModelMessage::User(parts) => ModelMessage::User(parts.clone()),
        ModelMessage::Assistant(blocks) => {
            ModelMessage::Assistant(assistant_text(blocks).into_iter().map(AssistantBlock::Text).collect())
        }
        ModelMessage::ToolResults(results) => ModelMessage::User(vec![results_text(results).into()]),
    };
    messages.iter().map(flat).collect()
}

/// The whole conversation as one text.
pub fn transcript(messages: &[ModelMessage]) -> String {
    let part = |message: &ModelMessage| match message {
        ModelMessage::User(parts) => {
            format!("PERSON:\n{}", parts.iter().map(UserPart::as_text).collect::<Vec<_>>().join("\n"))
        }
        ModelMessage::Assistant(blocks) => format!("YOU:\n{}", assistant_text(blocks).unwrap_or_default()),
        ModelMessage::ToolResults(results) => format!("RESULTS:\n{}", results_text(results)),
    };
    messages.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

fn assistant_text(blocks: &[AssistantBlock]) -> Option<String> {
    let mut text = String::new();
    let mut is_calling = false;
    for block in blocks {
        match block {
            AssistantBlock::Text(part) => text.push_str(part),
            AssistantBlock::ToolCall(call) => {
                if !std::mem::replace(&mut is_calling, true) {
                    text.push_str(&format!("\n{OPEN}\n"));
                }
                text.push_str(&call_text(call));
            }
            AssistantBlock::Thinking { .. } | AssistantBlock::RedactedThinking(_) => {}
        }
    }
    if is_calling {
        text.push_str(CLOSE);
    }
    (!text.is_empty()).then_some(text)
}

fn call_text(call: &ModelToolCall) -> String {
    if let Some(malformed) = &call.malformed {
        return format!("{}\n", malformed.raw);
    }
    let parameter = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("<parameter name=\"{name}\">{value}{PARAMETER_CLOSE}\n")
    };
    let parameters: String = call.input.iter().map(parameter).collect();
    format!("<invoke name=\"{}\">\n{parameters}{INVOKE_CLOSE}\n", call.name)
}

fn results_text(results: &[ModelToolResult]) -> String {
    let result = |answered: &ModelToolResult| {
        let tag = if answered.is_error { "error" } else { "output" };
        let text = escape(&answered.text());
        format!("<result>\n<name>{}</name>\n<{tag}>\n{text}\n</{tag}>\n</result>\n", escape(&answered.name))
    };
    format!("<function_results>\n{}</function_results>", results.iter().map(result).collect::<String>())
}

/// A result must not contain its own closing tags (invariant 16).
fn escape(text: &str) -> String {
    ["</output", "</error", "</result", "</name", "</function_results"]
        .iter()
        .fold(text.to_owned(), |text, tag| text.replace(tag, &tag.replace("</", "<\\/")))
}

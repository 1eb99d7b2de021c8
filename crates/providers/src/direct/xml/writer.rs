//! The writer: what a model is told of its tools, and a conversation with calls as one without.

use super::{CLOSE, INVOKE_CLOSE, OPEN, PARAMETER_CLOSE};
use crate::direct::{
    conversation::{Answered, Block, Call, Message},
    wire::Offer,
};
use serde_json::Value;

/// For the system prompt.
pub fn instructions(tools: &[Offer]) -> String {
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

/// The same conversation with calls and results as text.
pub fn flattened(messages: &[Message]) -> Vec<Message> {
    let flat = |message: &Message| match message {
        Message::Person(texts) => Message::Person(texts.clone()),
        Message::Model(blocks) => Message::Model(spoken(blocks).into_iter().map(Block::Text).collect()),
        Message::Results(results) => Message::Person(vec![told(results)]),
    };
    messages.iter().map(flat).collect()
}

/// The whole conversation as one text.
pub fn transcript(messages: &[Message]) -> String {
    let part = |message: &Message| match message {
        Message::Person(texts) => format!("PERSON:\n{}", texts.join("\n")),
        Message::Model(blocks) => format!("YOU:\n{}", spoken(blocks).unwrap_or_default()),
        Message::Results(results) => format!("RESULTS:\n{}", told(results)),
    };
    messages.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

fn spoken(blocks: &[Block]) -> Option<String> {
    let mut text = String::new();
    let mut is_calling = false;
    for block in blocks {
        match block {
            Block::Text(said) => text.push_str(said),
            Block::Call(call) => {
                if !std::mem::replace(&mut is_calling, true) {
                    text.push_str(&format!("\n{OPEN}\n"));
                }
                text.push_str(&written(call));
            }
            Block::Thinking { .. } | Block::Redacted(_) => {}
        }
    }
    if is_calling {
        text.push_str(CLOSE);
    }
    (!text.is_empty()).then_some(text)
}

fn written(call: &Call) -> String {
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

fn told(results: &[Answered]) -> String {
    let result = |answered: &Answered| {
        let tag = if answered.is_error { "error" } else { "output" };
        let text = fenced(&answered.text());
        format!("<result>\n<name>{}</name>\n<{tag}>\n{text}\n</{tag}>\n</result>\n", fenced(&answered.name))
    };
    format!("<function_results>\n{}</function_results>", results.iter().map(result).collect::<String>())
}

/// A result must not look like the end of a result (invariant 16).
fn fenced(text: &str) -> String {
    ["</output", "</error", "</result", "</name", "</function_results"]
        .iter()
        .fold(text.to_owned(), |text, tag| text.replace(tag, &tag.replace("</", "<\\/")))
}

//! What a model is told before it is asked: who it is, what it can do, and what was said. Pure.

use super::{
    conversation::{Answered, Block, Call, Content, Message, shortened},
    tools::Skill,
};
use crate::{Speaker, Spoken};
use domain::message::{ToolCall, ToolOutcome};
use serde_json::{Map, Value};

/// What of a result of an earlier turn is told again.
const MAX_OLD_RESULT_BYTES: usize = 8 * 1024;

/// The agent's own prompt, its skills, and how to call tools where the API has no way for it.
pub fn system(own: Option<&str>, skills: &[Skill], has_skill_tool: bool, instructions: &str) -> String {
    let mut parts: Vec<String> =
        own.map(str::trim).filter(|own| !own.is_empty()).map(str::to_owned).into_iter().collect();
    if !skills.is_empty() && has_skill_tool {
        let line = |skill: &Skill| format!("- {}: {}", skill.name, skill.description);
        let lines: Vec<String> = skills.iter().map(line).collect();
        parts.push(format!(
            "You have skills: instructions for kinds of tasks. Load the one that fits with the tool `skill` before you begin.\n{}",
            lines.join("\n")
        ));
    }
    if !instructions.is_empty() {
        parts.push(instructions.to_owned());
    }
    parts.join("\n\n")
}

/// What was said in the room, and then the prompt.
pub fn conversation(history: &[Spoken], prompt: Vec<String>) -> Vec<Message> {
    let mut messages = Vec::new();
    for (number, spoken) in history.iter().enumerate() {
        match &spoken.speaker {
            Speaker::Person(_) => person(&mut messages, spoken.text.clone()),
            Speaker::OtherAgent(name) => {
                let name: String = name.chars().filter(|c| !matches!(c, '"' | '<' | '>')).collect();
                // What was said must not look like the end of what was said (invariant 16).
                let text = spoken.text.replace("</said", "<\\/said");
                person(&mut messages, format!("<said by=\"{name}\">\n{text}\n</said>"));
            }
            Speaker::Itself => {
                if messages.is_empty() {
                    // The APIs want a person to begin.
                    person(&mut messages, "(You said this first.)".to_owned());
                }
                calls(&mut messages, &spoken.tools, number);
                if !spoken.text.is_empty() {
                    messages.push(Message::Model(vec![Block::Text(spoken.text.clone())]));
                }
            }
        }
    }
    prompt.into_iter().for_each(|text| person(&mut messages, text));
    messages
}

fn person(messages: &mut Vec<Message>, text: String) {
    match messages.last_mut() {
        Some(Message::Person(texts)) => texts.push(text),
        _ => messages.push(Message::Person(vec![text])),
    }
}

/// The calls of an earlier answer with their results. Ids are given anew: each API has its own idea of them.
fn calls(messages: &mut Vec<Message>, tools: &[ToolCall], number: usize) {
    let (mut made, mut results) = (Vec::new(), Vec::new());
    let ended = tools.iter().filter_map(|tool| Some((tool, tool.result.as_ref()?)));
    for (at, (tool, ToolOutcome { content, is_error })) in ended.enumerate() {
        let id = format!("earlier_{number}_{at}");
        let input =
            tool.input.as_object().cloned().unwrap_or_else(|| Map::from_iter([("input".into(), tool.input.clone())]));
        let content = vec![Content::Text(shortened(&as_text(content), MAX_OLD_RESULT_BYTES))];
        made.push(Block::Call(Call { id: id.clone(), name: tool.name.clone(), input, malformed: None }));
        results.push(Answered { call: id, name: tool.name.clone(), content, is_error: *is_error });
    }
    if !made.is_empty() {
        messages.push(Message::Model(made));
        messages.push(Message::Results(results));
    }
}

/// A result as a room keeps it: a text, a list of contents, or any JSON.
fn as_text(content: &Value) -> String {
    let part = |part: &Value| match (part.get("type").and_then(Value::as_str), part.get("text").and_then(Value::as_str))
    {
        (_, Some(text)) => text.to_owned(),
        (Some(kind @ ("image" | "audio")), None) => format!("[{kind}]"),
        _ => part.to_string(),
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// A message that begins with `/name` asks for that skill.
pub fn invoked<'a>(prompt: &str, skills: &'a [Skill]) -> Option<&'a Skill> {
    let name = prompt.trim_start().strip_prefix('/')?.split_whitespace().next()?;
    skills.iter().find(|skill| skill.name == name)
}

#[cfg(test)]
mod tests {
    use super::{conversation, system};
    use crate::{
        Speaker, Spoken,
        direct::conversation::{Block, Message},
    };
    use domain::message::{ToolCall, ToolOutcome};
    use serde_json::json;

    fn spoken(speaker: Speaker, text: &str) -> Spoken {
        Spoken { speaker, text: text.into(), tools: Vec::new() }
    }

    #[test]
    fn neighbours_of_one_side_stay_together_and_others_are_named() {
        let history = [
            spoken(Speaker::Itself, "hello"),
            spoken(Speaker::Person("ann".into()), "one"),
            spoken(Speaker::OtherAgent("b\"ob>".into()), "two</said>"),
        ];
        let messages = conversation(&history, vec!["three".into()]);
        assert_eq!(messages.len(), 3);
        let Message::Person(texts) = &messages[2] else { panic!() };
        assert_eq!(texts, &["one", "<said by=\"bob\">\ntwo<\\/said>\n</said>", "three"]);
    }

    #[test]
    fn earlier_calls_come_with_their_results() {
        let call = |id: &str, result: Option<ToolOutcome>| ToolCall {
            tool_use_id: id.into(),
            name: "look".into(),
            input: json!({"at": id}),
            output: String::new(),
            result,
        };
        let content = json!([{"type": "text", "text": "seen"}, {"type": "image", "data": "AAAA"}]);
        let tools = vec![call("a", Some(ToolOutcome { content, is_error: false })), call("b", None)];
        let history =
            [spoken(Speaker::Person("ann".into()), "look"), Spoken { tools, ..spoken(Speaker::Itself, "I saw it.") }];
        let messages = conversation(&history, vec!["and now?".into()]);
        let [_, Message::Model(made), Message::Results(results), Message::Model(said), _] = &messages[..] else {
            panic!("{messages:?}")
        };
        assert!(
            matches!(&made[..], [Block::Call(call)] if call.id == results[0].call),
            "what has no result is left out"
        );
        assert_eq!((results[0].text().as_str(), &said[0]), ("seen\n[image]", &Block::Text("I saw it.".into())));
    }

    #[test]
    fn a_system_prompt_of_nothing_is_empty() {
        assert_eq!(system(Some("  "), &[], true, ""), "");
        assert_eq!(system(Some("Be kind."), &[], true, "Use XML."), "Be kind.\n\nUse XML.");
    }
}

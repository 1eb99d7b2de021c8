//! Builds the system prompt and the conversation of a request. Pure.

use super::{
    attachments::AttachmentParts,
    conversation::{AssistantBlock, ModelMessage, ModelToolCall, ModelToolResult, ToolResultContent, UserPart},
    skills::SkillInstructions,
};
use crate::{HistoryAuthor, HistoryMessage, truncate::truncate_middle};
use domain::message::{ToolCall, ToolOutcome};
use serde_json::{Map, Value};

/// How much of a tool result of an earlier turn is repeated.
const MAX_OLD_RESULT_BYTES: usize = 8 * 1024;

/// The agent's own prompt, its skills, and the instructions for tool calls if the API has none of its own.
pub fn system_prompt(
    own: Option<&str>,
    skills: &[SkillInstructions],
    has_skill_tool: bool,
    instructions: &str,
) -> String {
    let mut parts: Vec<String> =
        own.map(str::trim).filter(|own| !own.is_empty()).map(str::to_owned).into_iter().collect();
    if !skills.is_empty() && has_skill_tool {
        let line = |skill: &SkillInstructions| format!("- {}: {}", skill.name, skill.description);
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

/// The messages in the room before the prompt, the prompt, and what others have said after it.
pub fn conversation(
    history: &[HistoryMessage],
    files: &AttachmentParts,
    prompt: Vec<UserPart>,
    later: &[HistoryMessage],
) -> Vec<ModelMessage> {
    let mut messages = Vec::new();
    push_history(&mut messages, files, history, 0);
    prompt.into_iter().for_each(|part| push_user(&mut messages, part));
    push_history(&mut messages, files, later, history.len());
    messages
}

/// `first` is the number of the first of `spoken` in the conversation.
fn push_history(messages: &mut Vec<ModelMessage>, files: &AttachmentParts, spoken: &[HistoryMessage], first: usize) {
    for (number, message) in (first..).zip(spoken) {
        files.of(&message.attachments).into_iter().for_each(|part| push_user(messages, part));
        match &message.author {
            HistoryAuthor::Person(_) => push_user(messages, message.text.clone().into()),
            HistoryAuthor::OtherAgent(name) => {
                let name: String = name.chars().filter(|c| !matches!(c, '"' | '<' | '>')).collect();
                // A message must not contain the closing tag of a message (invariant 16).
                let text = message.text.replace("</said", "<\\/said");
                push_user(messages, format!("<said by=\"{name}\">\n{text}\n</said>").into());
            }
            HistoryAuthor::ThisAgent => {
                if messages.is_empty() {
                    // The APIs require a user message first.
                    push_user(messages, "(You said this first.)".into());
                }
                push_calls(messages, &message.tools, number);
                if !message.text.is_empty() {
                    messages.push(ModelMessage::Assistant(vec![AssistantBlock::Text(message.text.clone())]));
                }
            }
        }
    }
}

fn push_user(messages: &mut Vec<ModelMessage>, part: UserPart) {
    match messages.last_mut() {
        Some(ModelMessage::User(parts)) => parts.push(part),
        _ => messages.push(ModelMessage::User(vec![part])),
    }
}

/// Adds the calls of an earlier answer with their results. The ids are replaced, because their format depends on the
/// API.
fn push_calls(messages: &mut Vec<ModelMessage>, tools: &[ToolCall], number: usize) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let ended = tools.iter().filter_map(|tool| Some((tool, tool.result.as_ref()?)));
    for (at, (tool, ToolOutcome { content, is_error })) in ended.enumerate() {
        let id = format!("earlier_{number}_{at}");
        let input =
            tool.input.as_object().cloned().unwrap_or_else(|| Map::from_iter([("input".into(), tool.input.clone())]));
        let content = vec![ToolResultContent::Text(truncate_middle(&as_text(content), MAX_OLD_RESULT_BYTES))];
        calls.push(AssistantBlock::ToolCall(ModelToolCall {
            id: id.clone(),
            name: tool.name.clone(),
            input,
            signature: None,
            malformed: None,
        }));
        results.push(ModelToolResult { call_id: id, name: tool.name.clone(), content, is_error: *is_error });
    }
    if !calls.is_empty() {
        messages.push(ModelMessage::Assistant(calls));
        messages.push(ModelMessage::ToolResults(results));
    }
}

/// The text of a result as it is stored in the room: a text, a list of content, or any JSON.
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

/// Returns the skill that a message starting with `/name` invokes.
pub fn invoked_skill<'a>(prompt: &str, skills: &'a [SkillInstructions]) -> Option<&'a SkillInstructions> {
    let name = prompt.trim_start().strip_prefix('/')?.split_whitespace().next()?;
    skills.iter().find(|skill| skill.name == name)
}

#[cfg(test)]
mod tests {
    use super::{conversation, system_prompt};
    use crate::{
        HistoryAuthor, HistoryMessage,
        direct::{
            ModelApiKind,
            attachments::{AttachmentLimits, AttachmentParts},
            conversation::{AssistantBlock, ModelMessage, UserPart},
        },
    };
    use domain::message::{ToolCall, ToolOutcome};
    use serde_json::json;

    fn spoken(speaker: HistoryAuthor, text: &str) -> HistoryMessage {
        HistoryMessage::new(speaker, text)
    }

    fn no_files() -> AttachmentParts {
        AttachmentParts::new(AttachmentLimits::of(ModelApiKind::Messages, false))
    }

    #[test]
    fn consecutive_user_messages_are_merged_and_other_agents_are_named() {
        let history = [
            spoken(HistoryAuthor::ThisAgent, "hello"),
            spoken(HistoryAuthor::Person("ann".into()), "one"),
            spoken(HistoryAuthor::OtherAgent("b\"ob>".into()), "two</said>"),
        ];
        let messages = conversation(
            &history,
            &no_files(),
            vec!["three".into()],
            &[spoken(HistoryAuthor::OtherAgent("Cyd".into()), "four")],
        );
        assert_eq!(messages.len(), 3);
        let ModelMessage::User(texts) = &messages[2] else { panic!() };
        let expected: [UserPart; 4] = [
            "one".into(),
            "<said by=\"bob\">\ntwo<\\/said>\n</said>".into(),
            "three".into(),
            "<said by=\"Cyd\">\nfour\n</said>".into(),
        ];
        assert_eq!(texts, &expected);
    }

    #[test]
    fn earlier_calls_are_sent_with_their_results() {
        let call = |id: &str, result: Option<ToolOutcome>| ToolCall {
            tool_use_id: id.into(),
            name: "look".into(),
            input: json!({"at": id}),
            output: String::new(),
            result,
            child: None,
        };
        let content = json!([{"type": "text", "text": "seen"}, {"type": "image", "data": "AAAA"}]);
        let tools = vec![call("a", Some(ToolOutcome { content, is_error: false })), call("b", None)];
        let history = [
            spoken(HistoryAuthor::Person("ann".into()), "look"),
            HistoryMessage { tools, ..spoken(HistoryAuthor::ThisAgent, "I saw it.") },
        ];
        let messages = conversation(&history, &no_files(), vec!["and now?".into()], &[]);
        let [_, ModelMessage::Assistant(made), ModelMessage::ToolResults(results), ModelMessage::Assistant(said), _] =
            &messages[..]
        else {
            panic!("{messages:?}")
        };
        assert!(
            matches!(&made[..], [AssistantBlock::ToolCall(call)] if call.id == results[0].call_id),
            "calls without a result are omitted"
        );
        assert_eq!(
            (results[0].text().as_str(), &said[0]),
            ("seen\n[image]", &AssistantBlock::Text("I saw it.".into()))
        );
    }

    #[test]
    fn system_prompt_may_be_empty() {
        assert_eq!(system_prompt(Some("  "), &[], true, ""), "");
        assert_eq!(system_prompt(Some("Be kind."), &[], true, "Use XML."), "Be kind.\n\nUse XML.");
    }
}

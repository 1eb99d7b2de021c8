//! One shape for what the four APIs are told: who said what, what tools returned, which tools there are.

use super::wrappings;
use serde_json::Value;

#[derive(Debug, Default, PartialEq)]
pub struct History {
    /// What people said, oldest first, without what CLIs wrap around it.
    pub users: Vec<String>,
    /// What recaps of Greenroom's told.
    pub told: Vec<String>,
    /// Of the tool calls since the last thing a person said.
    pub tool_results: Vec<String>,
    pub tools: Vec<Tool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    /// Of the Responses API: the group that the name lives in.
    pub namespace: Option<String>,
    /// Of the Responses API: takes a text instead of JSON.
    pub takes_text: bool,
}

impl Tool {
    fn named(name: &Value) -> Option<Self> {
        Some(Self { name: name.as_str()?.to_owned(), ..Self::default() })
    }

    /// As other APIs would call it.
    pub fn full_name(&self) -> String {
        format!("{}{}", self.namespace.as_deref().unwrap_or(""), self.name)
    }
}

impl History {
    pub fn prompt(&self) -> &str {
        self.users.last().map_or("", String::as_str)
    }

    fn hear(&mut self, raw: &str) {
        let found = wrappings::unwrap(raw);
        self.told.extend(found.told);
        if !found.text.is_empty() {
            self.users.push(found.text);
            self.tool_results.clear();
        }
        self.tool_results.extend(found.results);
    }

    pub fn of_messages(body: &Value) -> Self {
        let tools = list(&body["tools"]).iter().filter_map(|tool| Tool::named(&tool["name"])).collect();
        let mut history = Self { tools, ..Self::default() };
        for message in list(&body["messages"]).iter().filter(|message| message["role"] == "user") {
            let content = &message["content"];
            let blocks = list(content);
            for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
                // Claude Code reminds of its budget there too.
                history.tool_results.push(wrappings::unwrap(&joined(&block["content"], "")).text);
            }
            let texts =
                blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
            for text in content.as_str().into_iter().chain(texts) {
                history.hear(text);
                history.find_hidden_tools(text);
            }
        }
        history
    }

    /// Claude Code declares no tools of MCP servers; a reminder lists them, a line each, and they can be called all the
    /// same.
    fn find_hidden_tools(&mut self, text: &str) {
        let is_name = |line: &&str| {
            line.starts_with("mcp__")
                && line.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
        };
        for name in text.lines().map(str::trim).filter(is_name) {
            let tool = Tool { name: name.to_owned(), ..Tool::default() };
            if !self.tools.contains(&tool) {
                self.tools.push(tool);
            }
        }
    }

    pub fn of_responses(body: &Value) -> Self {
        let mut history = Self::default();
        if let Some(text) = body["input"].as_str() {
            history.hear(text);
        }
        for item in list(&body["input"]) {
            let kind = item["type"].as_str().unwrap_or("message");
            if kind == "message" && item["role"] == "user" {
                history.hear(&joined(&item["content"], "\n"));
            } else if kind.ends_with("_call_output") || kind == "tool_search_output" {
                let output = if item["output"].is_null() { &item["tools"] } else { &item["output"] };
                history.tool_results.push(as_text(output));
            }
        }
        for tool in list(&body["tools"]) {
            if tool["type"] == "namespace" {
                let within = list(&tool["tools"]).iter().filter_map(|inner| Tool::named(&inner["name"]));
                let namespace = tool["name"].as_str().map(str::to_owned);
                history.tools.extend(within.map(|inner| Tool { namespace: namespace.clone(), ..inner }));
            } else {
                let name = if tool["name"].is_null() { &tool["type"] } else { &tool["name"] };
                let takes_text = tool["type"] == "custom";
                history.tools.extend(Tool::named(name).map(|named| Tool { takes_text, ..named }));
            }
        }
        history
    }

    pub fn of_chat(body: &Value) -> Self {
        let mut history = Self::default();
        for message in list(&body["messages"]) {
            match message["role"].as_str() {
                Some("user") => history.hear(&joined(&message["content"], "\n")),
                Some("tool") => history.tool_results.push(as_text(&message["content"])),
                _ => {}
            }
        }
        let tools = list(&body["tools"]).iter();
        history.tools = tools.filter_map(|tool| Tool::named(&tool["function"]["name"])).collect();
        history
    }

    pub fn of_gemini(body: &Value) -> Self {
        let mut history = Self::default();
        let is_ours = |content: &&Value| matches!(content["role"].as_str(), None | Some("user" | "function"));
        for content in list(&body["contents"]).iter().filter(is_ours) {
            let parts = list(&content["parts"]);
            let mut results = parts.iter().filter(|part| part["functionResponse"].is_object()).peekable();
            // Text beside a result is the CLI's remark on it, not a person's.
            if results.peek().is_some() {
                history.tool_results.extend(results.map(|part| part["functionResponse"]["response"].to_string()));
            } else {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
                history.hear(&texts.join("\n"));
            }
        }
        let declared = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
        history.tools = declared.filter_map(|function| Tool::named(&function["name"])).collect();
        history
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A text, or the texts of its parts.
fn joined(content: &Value, between: &str) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let text = |part: &Value| match part["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!("[{}]", part["type"].as_str().unwrap_or("part")),
    };
    list(content).iter().map(text).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::{History, Tool};
    use serde_json::json;

    fn tool(name: &str) -> Tool {
        Tool { name: name.into(), ..Tool::default() }
    }

    #[test]
    fn messages_of_anthropic() {
        let body = json!({
            "messages": [
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "old"}]},
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": [
                    {"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "two"}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},
                    {"type": "tool_result", "content": "<system-reminder>left: 5</system-reminder>"},
                    {"type": "text", "text": "<system-reminder>x\nmcp__x__y\nmcp__ is a prefix</system-reminder>"}]},
            ],
            "tools": [{"name": "Bash"}, {"type": "nameless"}],
        });
        let history = History::of_messages(&body);
        assert_eq!(history.users, ["one", "two"]);
        assert_eq!(history.tool_results, ["a[image]", ""]);
        assert_eq!(history.tools, [tool("Bash"), tool("mcp__x__y")]);
    }

    #[test]
    fn input_of_responses() {
        let body = json!({
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "# AGENTS.md\nx"}]},
                {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
                {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"},
                {"type": "function_call_output", "call_id": "c", "output": "a"},
                {"type": "custom_tool_call_output", "call_id": "d", "output": {"b": 1}},
                {"type": "tool_search_output", "call_id": "e", "tools": []},
            ],
            "tools": [
                {"type": "function", "name": "exec_command"},
                {"type": "custom", "name": "apply_patch"},
                {"type": "namespace", "name": "mcp__x__", "tools": [{"name": "echo"}]},
                {"type": "web_search"},
            ],
        });
        let history = History::of_responses(&body);
        assert_eq!(history.users, ["one"]);
        assert_eq!(history.tool_results, ["a", "{\"b\":1}", "[]"]);
        let custom = Tool { takes_text: true, ..tool("apply_patch") };
        let spaced = Tool { namespace: Some("mcp__x__".into()), ..tool("echo") };
        assert_eq!(spaced.full_name(), "mcp__x__echo");
        assert_eq!(history.tools, [tool("exec_command"), custom, spaced, tool("web_search")]);
        assert_eq!(History::of_responses(&json!({"input": "plain"})).users, ["plain"]);
    }

    #[test]
    fn messages_of_chat_completions() {
        let body = json!({
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "tool", "tool_call_id": "c", "content": "out"},
            ],
            "tools": [{"type": "function", "function": {"name": "shell"}}],
        });
        let history = History::of_chat(&body);
        assert_eq!((history.prompt(), &history.tool_results[..]), ("a\nb", &["out".to_owned()][..]));
        assert_eq!(history.tools, [tool("shell")]);
    }

    #[test]
    fn contents_of_gemini() {
        let body = json!({
            "contents": [
                {"role": "user", "parts": [{"text": "<session_context>x</session_context>"}, {"text": "one"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command"}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "run_shell_command", "response": {"output": "hi"}}},
                    {"text": "look at that"}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
        });
        let history = History::of_gemini(&body);
        assert_eq!(history.users, ["one"]);
        assert_eq!(history.tool_results, ["{\"output\":\"hi\"}"]);
        assert_eq!(history.tools, [tool("run_shell_command")]);
    }

    #[test]
    fn a_body_of_another_shape_is_an_empty_history() {
        for body in [json!(null), json!([]), json!({"messages": 5, "input": {}, "contents": "x", "tools": {}})] {
            assert_eq!(History::of_messages(&body), History::default());
            assert_eq!(History::of_responses(&body), History::default());
            assert_eq!(History::of_chat(&body), History::default());
            assert_eq!(History::of_gemini(&body), History::default());
        }
    }
}

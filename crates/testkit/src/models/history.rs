//! One representation for requests to the four APIs: user texts, tool results and declared tools.

use super::wrappers;
use serde_json::Value;

#[derive(Debug, Default, PartialEq)]
pub struct RequestHistory {
    /// User texts, oldest first, without the wrappers that CLIs add.
    pub user_texts: Vec<String>,
    /// Texts from Greenroom's recaps.
    pub recap_texts: Vec<String>,
    /// Results of the tool calls since the last user text.
    pub tool_results: Vec<String>,
    pub tools: Vec<DeclaredTool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredTool {
    pub name: String,
    /// The namespace of the tool, in the Responses API.
    pub namespace: Option<String>,
    /// Whether the tool takes text instead of JSON, in the Responses API.
    pub takes_text: bool,
}

impl DeclaredTool {
    fn named(name: &Value) -> Option<Self> {
        Some(Self { name: name.as_str()?.to_owned(), ..Self::default() })
    }

    /// The name with its namespace, as the other APIs use it.
    pub fn full_name(&self) -> String {
        format!("{}{}", self.namespace.as_deref().unwrap_or(""), self.name)
    }
}

impl RequestHistory {
    pub fn prompt(&self) -> &str {
        self.user_texts.last().map_or("", String::as_str)
    }

    fn add_user_text(&mut self, raw: &str) {
        let found = wrappers::unwrap(raw);
        self.recap_texts.extend(found.recap_texts);
        if !found.text.is_empty() {
            self.user_texts.push(found.text);
            self.tool_results.clear();
        }
        self.tool_results.extend(found.results);
    }

    pub fn from_anthropic(body: &Value) -> Self {
        let tools = list(&body["tools"]).iter().filter_map(|tool| DeclaredTool::named(&tool["name"])).collect();
        let mut history = Self { tools, ..Self::default() };
        for message in list(&body["messages"]).iter().filter(|message| message["role"] == "user") {
            let content = &message["content"];
            let blocks = list(content);
            for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
                // Claude Code adds budget reminders here too.
                history.tool_results.push(wrappers::unwrap(&joined(&block["content"], "")).text);
            }
            let texts =
                blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
            for text in content.as_str().into_iter().chain(texts) {
                history.add_user_text(text);
                history.find_hidden_tools(text);
            }
        }
        history
    }

    /// Claude Code does not declare MCP tools; a reminder lists them, one per line, and they can still be called.
    fn find_hidden_tools(&mut self, text: &str) {
        let is_name = |line: &&str| {
            line.starts_with("mcp__")
                && line.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
        };
        for name in text.lines().map(str::trim).filter(is_name) {
            let tool = DeclaredTool { name: name.to_owned(), ..DeclaredTool::default() };
            if !self.tools.contains(&tool) {
                self.tools.push(tool);
            }
        }
    }

    pub fn from_responses(body: &Value) -> Self {
        let mut history = Self::default();
        if let Some(text) = body["input"].as_str() {
            history.add_user_text(text);
        }
        for item in list(&body["input"]) {
            let kind = item["type"].as_str().unwrap_or("message");
            if kind == "message" && item["role"] == "user" {
                history.add_user_text(&joined(&item["content"], "\n"));
            } else if kind.ends_with("_call_output") || kind == "tool_search_output" {
                let output = if item["output"].is_null() { &item["tools"] } else { &item["output"] };
                history.tool_results.push(as_text(output));
            }
        }
        for tool in list(&body["tools"]) {
            if tool["type"] == "namespace" {
                let within = list(&tool["tools"]).iter().filter_map(|inner| DeclaredTool::named(&inner["name"]));
                let namespace = tool["name"].as_str().map(str::to_owned);
                history.tools.extend(within.map(|inner| DeclaredTool { namespace: namespace.clone(), ..inner }));
            } else {
                let name = if tool["name"].is_null() { &tool["type"] } else { &tool["name"] };
                let takes_text = tool["type"] == "custom";
                history.tools.extend(DeclaredTool::named(name).map(|named| DeclaredTool { takes_text, ..named }));
            }
        }
        history
    }

    pub fn from_chat(body: &Value) -> Self {
        let mut history = Self::default();
        for message in list(&body["messages"]) {
            match message["role"].as_str() {
                Some("user") => history.add_user_text(&joined(&message["content"], "\n")),
                Some("tool") => history.tool_results.push(as_text(&message["content"])),
                _ => {}
            }
        }
        let tools = list(&body["tools"]).iter();
        history.tools = tools.filter_map(|tool| DeclaredTool::named(&tool["function"]["name"])).collect();
        history
    }

    pub fn from_gemini(body: &Value) -> Self {
        let mut history = Self::default();
        let is_user = |content: &&Value| matches!(content["role"].as_str(), None | Some("user" | "function"));
        for content in list(&body["contents"]).iter().filter(is_user) {
            let parts = list(&content["parts"]);
            let mut results = parts.iter().filter(|part| part["functionResponse"].is_object()).peekable();
            // Text next to a result is from the CLI, not from the user.
            if results.peek().is_some() {
                history.tool_results.extend(results.map(|part| output_of(&part["functionResponse"]["response"])));
            } else {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
                history.add_user_text(&texts.join("\n"));
            }
        }
        let declared = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
        history.tools = declared.filter_map(|function| DeclaredTool::named(&function["name"])).collect();
        history
    }
}

/// The text of a tool's result; other results as JSON.
fn output_of(response: &Value) -> String {
    response["output"].as_str().map_or_else(|| response.to_string(), str::to_owned)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the text, or the joined texts of the parts.
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
    use super::{DeclaredTool, RequestHistory};
    use serde_json::json;

    fn tool(name: &str) -> DeclaredTool {
        DeclaredTool { name: name.into(), ..DeclaredTool::default() }
    }

    #[test]
    fn parses_anthropic_messages() {
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
        let history = RequestHistory::from_anthropic(&body);
        assert_eq!(history.user_texts, ["one", "two"]);
        assert_eq!(history.tool_results, ["a[image]", ""]);
        assert_eq!(history.tools, [tool("Bash"), tool("mcp__x__y")]);
    }

    #[test]
    fn parses_responses_input() {
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
        let history = RequestHistory::from_responses(&body);
        assert_eq!(history.user_texts, ["one"]);
        assert_eq!(history.tool_results, ["a", "{\"b\":1}", "[]"]);
        let custom = DeclaredTool { takes_text: true, ..tool("apply_patch") };
        let spaced = DeclaredTool { namespace: Some("mcp__x__".into()), ..tool("echo") };
        assert_eq!(spaced.full_name(), "mcp__x__echo");
        assert_eq!(history.tools, [tool("exec_command"), custom, spaced, tool("web_search")]);
        assert_eq!(RequestHistory::from_responses(&json!({"input": "plain"})).user_texts, ["plain"]);
    }

    #[test]
    fn parses_chat_completions() {
        let body = json!({
            "messages": [
                {"role": "system", "content": "be good"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "tool", "tool_call_id": "c", "content": "out"},
            ],
            "tools": [{"type": "function", "function": {"name": "shell"}}],
        });
        let history = RequestHistory::from_chat(&body);
        assert_eq!((history.prompt(), &history.tool_results[..]), ("a\nb", &["out".to_owned()][..]));
        assert_eq!(history.tools, [tool("shell")]);
    }

    #[test]
    fn parses_gemini_contents() {
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
        let history = RequestHistory::from_gemini(&body);
        assert_eq!(history.user_texts, ["one"]);
        assert_eq!(history.tool_results, ["hi"]);
        assert_eq!(history.tools, [tool("run_shell_command")]);
    }

    #[test]
    fn unknown_bodies_give_an_empty_history() {
        for body in [json!(null), json!([]), json!({"messages": 5, "input": {}, "contents": "x", "tools": {}})] {
            assert_eq!(RequestHistory::from_anthropic(&body), RequestHistory::default());
            assert_eq!(RequestHistory::from_responses(&body), RequestHistory::default());
            assert_eq!(RequestHistory::from_chat(&body), RequestHistory::default());
            assert_eq!(RequestHistory::from_gemini(&body), RequestHistory::default());
        }
    }
}

//! Plans the answer from the last directive of the last user text, again after its tools have returned results.

use super::history::{DeclaredTool, RequestHistory};
use serde_json::{Value, json};
use std::time::Duration;

const WORDS: &[&str] = &[
    "count",
    "slow",
    "think",
    "tool",
    "write",
    "call",
    "recall",
    "fail",
    "fail-once",
    "midfail",
    "midfail-once",
    "cut",
    "xml",
];
/// The pace of the scripted provider.
const WORD_PACE: Duration = Duration::from_millis(15);
const MAX_WORDS: u32 = 1_000_000;
const QUOTED_CHARS: usize = 300;

const SHELLS: &[&str] =
    &["Bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command", "terminal", "execute"];
const WRITERS: &[&str] = &["Write", "write_file", "apply_patch"];

#[derive(Clone, Debug, PartialEq)]
pub enum AnswerPlan {
    Answer(ScriptedAnswer),
    /// An HTTP error; `None` is the default error of the API.
    Fail(Option<u16>),
    /// The first request with this text fails.
    FailOnce(Option<u16>),
    /// The first request with this text gets this answer.
    BreakOnce(ScriptedAnswer),
}

/// The model output, before it is formatted for an API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedAnswer {
    pub thinking: Vec<String>,
    pub text: Vec<String>,
    pub calls: Vec<ScriptedCall>,
    /// Between two deltas.
    pub pace: Duration,
    pub ending: AnswerEnding,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerEnding {
    #[default]
    Complete,
    /// An error inside the stream, after the text.
    Error,
    /// No end: the connection is cut.
    Cut,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedCall {
    pub tool: DeclaredTool,
    pub input: Value,
}

impl ScriptedAnswer {
    pub fn with_text(text: &str) -> Self {
        Self { text: words(text), pace: WORD_PACE, ..Self::default() }
    }
}

pub fn plan(history: &RequestHistory) -> AnswerPlan {
    let prompt = history.prompt();
    let mut lines = prompt.lines().rev().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let calls: Vec<ScriptedCall> = {
        let mut calls = Vec::new();
        while let Some(call) = lines.peek().and_then(|line| call(line, history)) {
            calls.push(call);
            lines.next();
        }
        calls.into_iter().rev().collect()
    };
    if !calls.is_empty() {
        let thought = lines.peek().and_then(|line| split(line)).filter(|(word, _)| *word == "think");
        return AnswerPlan::Answer(if history.tool_results.is_empty() {
            ScriptedAnswer {
                thinking: thought.map_or_else(Vec::new, |(_, thought)| words(thought)),
                ..call_tools(calls)
            }
        } else {
            quote_results(&history.tool_results)
        });
    }
    lines.find_map(|line| directive(line, history)).unwrap_or_else(|| AnswerPlan::Answer(echo(prompt)))
}

/// The answer after `!fail-once` has failed.
pub fn recovered() -> ScriptedAnswer {
    ScriptedAnswer::with_text("Recovered after a failure.")
}

fn directive(line: &str, history: &RequestHistory) -> Option<AnswerPlan> {
    let (word, rest) = split(line)?;
    let mut numbers = rest.split_whitespace().map_while(|word| word.parse::<u32>().ok());
    let answer = match word {
        "count" => {
            let to = numbers.next().filter(|to| (1..=MAX_WORDS).contains(to))?;
            let text = (1..=to).map(|number| if number == 1 { "1".to_owned() } else { format!(" {number}") });
            ScriptedAnswer {
                text: text.collect(),
                pace: millis(numbers.next().unwrap_or(0)),
                ..ScriptedAnswer::default()
            }
        }
        "slow" => {
            let count = numbers.next().unwrap_or(200).min(MAX_WORDS);
            let text = (0..count).map(|number| format!("word{number} ")).collect();
            ScriptedAnswer { text, pace: millis(numbers.next().unwrap_or(50)), ..ScriptedAnswer::default() }
        }
        "think" => {
            let thought = if rest.is_empty() { "Let me think about this. I conclude 42." } else { rest };
            ScriptedAnswer { thinking: words(thought), ..ScriptedAnswer::with_text("The answer is 42.") }
        }
        "recall" => recall(history),
        "xml" if !history.tool_results.is_empty() => quote_results(&history.tool_results),
        "xml" => {
            let (name, input) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
            xml(name, &serde_json::from_str(input).ok()?)
        }
        "midfail-once" => {
            let text = "Some partial text before the stream breaks once";
            return Some(AnswerPlan::BreakOnce(ScriptedAnswer {
                ending: AnswerEnding::Error,
                ..ScriptedAnswer::with_text(text)
            }));
        }
        "midfail" => ScriptedAnswer {
            ending: AnswerEnding::Error,
            ..ScriptedAnswer::with_text("Some partial text before the stream breaks")
        },
        "cut" => ScriptedAnswer {
            ending: AnswerEnding::Cut,
            ..ScriptedAnswer::with_text("Some partial text before the connection is cut")
        },
        "fail" | "fail-once" => {
            let status = numbers.next().and_then(|status| u16::try_from(status).ok());
            let status = status.filter(|status| (400..600).contains(status));
            return Some(if word == "fail" { AnswerPlan::Fail(status) } else { AnswerPlan::FailOnce(status) });
        }
        // Calls are taken only from the last lines.
        _ => return None,
    };
    Some(AnswerPlan::Answer(answer))
}

fn call(line: &str, history: &RequestHistory) -> Option<ScriptedCall> {
    let (word, rest) = split(line)?;
    let tools = &history.tools;
    match word {
        "tool" => {
            let command = if rest.is_empty() { "echo hi" } else { rest };
            let tool = pick(tools, SHELLS);
            let input = match tool.name.as_str() {
                "shell" | "local_shell" => json!({"command": ["bash", "-lc", command]}),
                "exec_command" => json!({"cmd": command, "yield_time_ms": 10000}),
                _ => json!({"command": command, "description": "Run a command"}),
            };
            Some(ScriptedCall { tool, input })
        }
        "write" => {
            let path = rest.split_whitespace().next().unwrap_or("out.txt");
            let tool = pick(tools, WRITERS);
            let input = match tool.name.as_str() {
                "apply_patch" => {
                    json!({"input": format!("*** Begin Patch\n*** Add File: {path}\n+hello from the model\n*** End Patch\n")})
                }
                _ => json!({"file_path": path, "content": "hello from the model\n"}),
            };
            Some(ScriptedCall { tool, input })
        }
        "call" => {
            let (name, input) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let input = if input.trim().is_empty() { json!({}) } else { serde_json::from_str(input).ok()? };
            Some(ScriptedCall { tool: named(tools, name), input })
        }
        _ => None,
    }
}

/// Splits a directive line into its word and the rest.
fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('!')?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    WORDS.contains(&word).then_some((word, rest.trim()))
}

/// Returns the first wanted tool that is declared, else one with a similar name, else the first wanted name, which the
/// CLI reports as unknown.
fn pick(tools: &[DeclaredTool], wanted: &[&str]) -> DeclaredTool {
    let exact = wanted.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name));
    let has_similar_name = |tool: &&DeclaredTool| {
        let name = tool.name.to_lowercase();
        wanted.iter().any(|wanted| name.contains(&wanted.to_lowercase()))
    };
    let found = exact.or_else(|| tools.iter().find(has_similar_name)).cloned();
    found.unwrap_or_else(|| DeclaredTool {
        name: wanted.first().copied().unwrap_or("tool").to_owned(),
        ..DeclaredTool::default()
    })
}

/// An undeclared tool is called anyway: CLIs hide some tools until they are searched for.
fn named(tools: &[DeclaredTool], name: &str) -> DeclaredTool {
    if let Some((namespace, name)) = name.split_once('/') {
        return DeclaredTool { name: name.to_owned(), namespace: Some(namespace.to_owned()), takes_text: false };
    }
    let exact = tools.iter().find(|tool| tool.name == name || tool.full_name() == name);
    let found = exact.or_else(|| tools.iter().find(|tool| tool.full_name().ends_with(name))).cloned();
    found.unwrap_or_else(|| DeclaredTool { name: name.to_owned(), ..DeclaredTool::default() })
}

fn call_tools(calls: Vec<ScriptedCall>) -> ScriptedAnswer {
    ScriptedAnswer { calls, ..ScriptedAnswer::with_text("I will use a tool.") }
}

fn quote_results(results: &[String]) -> ScriptedAnswer {
    let quoted: Vec<String> = results.iter().map(|result| result.chars().take(QUOTED_CHARS).collect()).collect();
    ScriptedAnswer::with_text(&format!("Done. The tool returned: {}", quoted.join(" | ")))
}

/// A call as XML, as written by a model without native tool calls.
fn xml(name: &str, input: &serde_json::Map<String, Value>) -> ScriptedAnswer {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parameter = |(key, it): (&String, &Value)| format!("<parameter name=\"{key}\">{}</parameter>\n", value(it));
    let parameters: String = input.iter().map(parameter).collect();
    let call = format!("<function_calls>\n<invoke name=\"{name}\">\n{parameters}</invoke>\n</function_calls>");
    ScriptedAnswer::with_text(&format!("I will use a tool.\n{call}"))
}

fn recall(history: &RequestHistory) -> ScriptedAnswer {
    let quoted =
        |texts: &[String]| texts.iter().map(|text| format!("{:?}", short(text))).collect::<Vec<_>>().join(", ");
    let mut text = format!("I remember {} user texts: {}", history.user_texts.len(), quoted(&history.user_texts));
    if !history.recap_texts.is_empty() {
        text.push_str(&format!(". I was told {} more: {}", history.recap_texts.len(), quoted(&history.recap_texts)));
    }
    ScriptedAnswer::with_text(&text)
}

fn echo(prompt: &str) -> ScriptedAnswer {
    // The prompt of a CLI that compacts a conversation.
    if prompt.contains("summary of the conversation") || prompt.contains("summarize the conversation") {
        return ScriptedAnswer::with_text("<summary>A short summary of the conversation.</summary>");
    }
    ScriptedAnswer::with_text(&format!("You said: {}", short(prompt)))
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Splits the text into words the way the scripted provider does.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned).collect()
}

fn millis(number: u32) -> Duration {
    Duration::from_millis(number.into())
}

#[cfg(test)]
mod tests {
    use super::{AnswerEnding, AnswerPlan, ScriptedAnswer, plan};
    use crate::models::history::{DeclaredTool, RequestHistory};
    use serde_json::json;
    use std::time::Duration;

    fn history(prompt: &str, tools: &[&str]) -> RequestHistory {
        let tool = |name: &&str| DeclaredTool { name: (*name).to_owned(), ..DeclaredTool::default() };
        RequestHistory {
            user_texts: vec!["earlier".into(), prompt.into()],
            tools: tools.iter().map(tool).collect(),
            ..RequestHistory::default()
        }
    }

    fn answer_to(history: &RequestHistory) -> ScriptedAnswer {
        match plan(history) {
            AnswerPlan::Answer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn text(prompt: &str) -> String {
        answer_to(&history(prompt, &[])).text.concat()
    }

    #[test]
    fn words_are_counted_and_paced() {
        let answer = answer_to(&history("!count 3 20", &[]));
        assert_eq!((answer.text, answer.pace), (vec!["1".into(), " 2".into(), " 3".into()], Duration::from_millis(20)));
        assert_eq!(answer_to(&history("!count 3", &[])).pace, Duration::ZERO);
        assert_eq!(answer_to(&history("!slow 2 7", &[])).text.concat(), "word0 word1 ");
        assert_eq!(answer_to(&history("!think a b", &[])).thinking, ["a ", "b"]);
    }

    #[test]
    fn last_directive_line_wins() {
        assert_eq!(text("!count 9\nand then\n  !count 2  \nplease"), "1 2");
        assert_eq!(text("say !count 2"), "You said: say !count 2");
        assert_eq!(text("!count five"), "You said: !count five");
        assert_eq!(text("!unknown 5"), "You said: !unknown 5");
        assert_eq!(text(""), "You said: ");
    }

    #[test]
    fn failures_have_a_status_or_the_default() {
        for (prompt, expected) in [
            ("!fail", AnswerPlan::Fail(None)),
            ("!fail 429", AnswerPlan::Fail(Some(429))),
            ("!fail 99", AnswerPlan::Fail(None)),
            ("!fail-once 529 abc", AnswerPlan::FailOnce(Some(529))),
        ] {
            assert_eq!(plan(&history(prompt, &[])), expected, "{prompt}");
        }
        assert_eq!(answer_to(&history("!midfail", &[])).ending, AnswerEnding::Error);
        assert_eq!(answer_to(&history("!cut", &[])).ending, AnswerEnding::Cut);
        assert!(matches!(
            plan(&history("!midfail-once a", &[])),
            AnswerPlan::BreakOnce(ScriptedAnswer { ending: AnswerEnding::Error, .. })
        ));
    }

    #[test]
    fn each_cli_has_its_own_shell_tool() {
        for (tools, name, input) in [
            (["Read", "Bash"], "Bash", json!({"command": "ls", "description": "Run a command"})),
            (["exec_command", "shell"], "exec_command", json!({"cmd": "ls", "yield_time_ms": 10000})),
            (["x", "shell"], "shell", json!({"command": ["bash", "-lc", "ls"]})),
            (["x", "my_terminal_tool"], "my_terminal_tool", json!({"command": "ls", "description": "Run a command"})),
        ] {
            let answer = answer_to(&history("!tool ls", &tools));
            assert_eq!((answer.calls[0].tool.name.as_str(), &answer.calls[0].input), (name, &input));
        }
        let patch = answer_to(&history("!write a.txt", &["apply_patch"])).calls.remove(0);
        assert!(patch.input["input"].as_str().unwrap().contains("*** Add File: a.txt\n+hello"));
    }

    #[test]
    fn call_lines_at_the_end_are_one_message() {
        let answer = answer_to(&history("!count 5\n!tool echo one\n!tool echo two\n", &["Bash"]));
        let commands: Vec<_> = answer.calls.iter().map(|call| call.input["command"].as_str().unwrap()).collect();
        assert_eq!(commands, ["echo one", "echo two"]);
    }

    #[test]
    fn tools_are_found_by_name_suffix() {
        let tools = ["Bash", "mcp__host__current_time"];
        let call = |prompt: &str| answer_to(&history(prompt, &tools)).calls.remove(0);
        assert_eq!(call("!call current_time {\"zone\":\"UTC\"}").tool.name, "mcp__host__current_time");
        assert_eq!(call("!call current_time {\"zone\":\"UTC\"}").input, json!({"zone": "UTC"}));
        assert_eq!(call("!call Hidden").tool.name, "Hidden");
        let spaced = call("!call mcp__x/echo {}").tool;
        assert_eq!((spaced.namespace.as_deref(), spaced.name.as_str()), (Some("mcp__x"), "echo"));
        assert_eq!(text("!call x {not json"), "You said: !call x {not json");
    }

    #[test]
    fn xml_calls_get_results_like_other_calls() {
        let mut history = history("!xml look {\"at\":\"a\",\"n\":[1]}", &[]);
        let expected = "<function_calls>\n<invoke name=\"look\">\n<parameter name=\"at\">a</parameter>\n\
                        <parameter name=\"n\">[1]</parameter>\n</invoke>\n</function_calls>";
        assert!(answer_to(&history).text.concat().ends_with(expected));
        history.tool_results = vec!["seen".into()];
        assert_eq!(answer_to(&history).text.concat(), "Done. The tool returned: seen");
    }

    #[test]
    fn results_end_the_tool_loop() {
        let mut history = history("!tool ls", &["Bash"]);
        history.tool_results = vec!["a.txt".into(), "x".repeat(400)];
        let answer = answer_to(&history);
        let expected = format!("Done. The tool returned: a.txt | {}", "x".repeat(300));
        assert_eq!((answer.calls.len(), answer.text.concat()), (0, expected));
    }

    #[test]
    fn recall_distinguishes_history_from_recap() {
        assert_eq!(text("!recall"), "I remember 2 user texts: \"earlier\", \"!recall\"");
        let mut history = history("!recall", &[]);
        history.recap_texts = vec!["before".into()];
        assert!(answer_to(&history).text.concat().ends_with(". I was told 1 more: \"before\""));
    }
}

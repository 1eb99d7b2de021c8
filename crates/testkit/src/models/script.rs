//! What to answer: the last directive of what was said last, played once more when its tools have answered.

use super::history::{History, Tool};
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
/// As the scripted provider speaks.
const WORD_PACE: Duration = Duration::from_millis(15);
const MAX_WORDS: u32 = 1_000_000;
const QUOTED_CHARS: usize = 300;

const SHELLS: &[&str] =
    &["Bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command", "terminal", "execute"];
const WRITERS: &[&str] = &["Write", "write_file", "apply_patch"];

#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Say(Answer),
    /// An HTTP error; each API has one that it gives when none is named.
    Fail(Option<u16>),
    /// The first request with this text fails.
    FailOnce(Option<u16>),
    /// The first request with this text is answered with this.
    BreakOnce(Answer),
}

/// What the model says, before an API puts it into its own words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub thinking: Vec<String>,
    pub text: Vec<String>,
    pub calls: Vec<Call>,
    /// Between two deltas.
    pub pace: Duration,
    pub ending: Ending,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    #[default]
    Complete,
    /// An error inside the stream, after the text.
    Error,
    /// No end at all: the connection is gone.
    Cut,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub tool: Tool,
    pub input: Value,
}

impl Answer {
    pub fn saying(text: &str) -> Self {
        Self { text: words(text), pace: WORD_PACE, ..Self::default() }
    }
}

pub fn plan(history: &History) -> Plan {
    let prompt = history.prompt();
    let mut lines = prompt.lines().rev().map(str::trim).filter(|line| !line.is_empty()).peekable();
    let calls: Vec<Call> = {
        let mut calls = Vec::new();
        while let Some(call) = lines.peek().and_then(|line| call(line, history)) {
            calls.push(call);
            lines.next();
        }
        calls.into_iter().rev().collect()
    };
    if !calls.is_empty() {
        return Plan::Say(if history.tool_results.is_empty() {
            calling(calls)
        } else {
            quoting(&history.tool_results)
        });
    }
    lines.find_map(|line| directive(line, history)).unwrap_or_else(|| Plan::Say(echo(prompt)))
}

/// After the failure of `!fail-once`.
pub fn recovered() -> Answer {
    Answer::saying("Recovered after a failure.")
}

fn directive(line: &str, history: &History) -> Option<Plan> {
    let (word, rest) = split(line)?;
    let mut numbers = rest.split_whitespace().map_while(|word| word.parse::<u32>().ok());
    let answer = match word {
        "count" => {
            let to = numbers.next().filter(|to| (1..=MAX_WORDS).contains(to))?;
            let text = (1..=to).map(|number| if number == 1 { "1".to_owned() } else { format!(" {number}") });
            Answer { text: text.collect(), pace: millis(numbers.next().unwrap_or(0)), ..Answer::default() }
        }
        "slow" => {
            let count = numbers.next().unwrap_or(200).min(MAX_WORDS);
            let text = (0..count).map(|number| format!("word{number} ")).collect();
            Answer { text, pace: millis(numbers.next().unwrap_or(50)), ..Answer::default() }
        }
        "think" => {
            let thought = if rest.is_empty() { "Let me think about this. I conclude 42." } else { rest };
            Answer { thinking: words(thought), ..Answer::saying("The answer is 42.") }
        }
        "recall" => recall(history),
        "xml" if !history.tool_results.is_empty() => quoting(&history.tool_results),
        "xml" => {
            let (name, input) = rest.split_once(char::is_whitespace).unwrap_or((rest, "{}"));
            xml(name, &serde_json::from_str(input).ok()?)
        }
        "midfail-once" => {
            let text = "Some partial text before the stream breaks once";
            return Some(Plan::BreakOnce(Answer { ending: Ending::Error, ..Answer::saying(text) }));
        }
        "midfail" => Answer { ending: Ending::Error, ..Answer::saying("Some partial text before the stream breaks") },
        "cut" => Answer { ending: Ending::Cut, ..Answer::saying("Some partial text before the connection is cut") },
        "fail" | "fail-once" => {
            let status = numbers.next().and_then(|status| u16::try_from(status).ok());
            let status = status.filter(|status| (400..600).contains(status));
            return Some(if word == "fail" { Plan::Fail(status) } else { Plan::FailOnce(status) });
        }
        // A call that is not in the last lines belongs to what was said before.
        _ => return None,
    };
    Some(Plan::Say(answer))
}

fn call(line: &str, history: &History) -> Option<Call> {
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
            Some(Call { tool, input })
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
            Some(Call { tool, input })
        }
        "call" => {
            let (name, input) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let input = if input.trim().is_empty() { json!({}) } else { serde_json::from_str(input).ok()? };
            Some(Call { tool: named(tools, name), input })
        }
        _ => None,
    }
}

/// The word and the rest of a line that is a directive.
fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix('!')?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    WORDS.contains(&word).then_some((word, rest.trim()))
}

/// The first of the wanted that is there, else one that sounds like it, else the first: the CLI will say it is unknown.
fn pick(tools: &[Tool], wanted: &[&str]) -> Tool {
    let exact = wanted.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name));
    let sounds_like = |tool: &&Tool| {
        let name = tool.name.to_lowercase();
        wanted.iter().any(|wanted| name.contains(&wanted.to_lowercase()))
    };
    let found = exact.or_else(|| tools.iter().find(sounds_like)).cloned();
    found.unwrap_or_else(|| Tool { name: wanted.first().copied().unwrap_or("tool").to_owned(), ..Tool::default() })
}

/// A tool that is not declared is called all the same: CLIs hide some until they are searched for.
fn named(tools: &[Tool], name: &str) -> Tool {
    if let Some((namespace, name)) = name.split_once('/') {
        return Tool { name: name.to_owned(), namespace: Some(namespace.to_owned()), takes_text: false };
    }
    let exact = tools.iter().find(|tool| tool.name == name || tool.full_name() == name);
    let found = exact.or_else(|| tools.iter().find(|tool| tool.full_name().ends_with(name))).cloned();
    found.unwrap_or_else(|| Tool { name: name.to_owned(), ..Tool::default() })
}

fn calling(calls: Vec<Call>) -> Answer {
    Answer { calls, ..Answer::saying("I will use a tool.") }
}

fn quoting(results: &[String]) -> Answer {
    let quoted: Vec<String> = results.iter().map(|result| result.chars().take(QUOTED_CHARS).collect()).collect();
    Answer::saying(&format!("Done. The tool returned: {}", quoted.join(" | ")))
}

/// A call as a model writes it that has no other way.
fn xml(name: &str, input: &serde_json::Map<String, Value>) -> Answer {
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parameter = |(key, it): (&String, &Value)| format!("<parameter name=\"{key}\">{}</parameter>\n", value(it));
    let parameters: String = input.iter().map(parameter).collect();
    let call = format!("<function_calls>\n<invoke name=\"{name}\">\n{parameters}</invoke>\n</function_calls>");
    Answer::saying(&format!("I will use a tool.\n{call}"))
}

fn recall(history: &History) -> Answer {
    let quoted =
        |texts: &[String]| texts.iter().map(|text| format!("{:?}", short(text))).collect::<Vec<_>>().join(", ");
    let mut text = format!("I remember {} user texts: {}", history.users.len(), quoted(&history.users));
    if !history.told.is_empty() {
        text.push_str(&format!(". I was told {} more: {}", history.told.len(), quoted(&history.told)));
    }
    Answer::saying(&text)
}

fn echo(prompt: &str) -> Answer {
    // What a CLI asks when it compacts a conversation.
    if prompt.contains("summary of the conversation") || prompt.contains("summarize the conversation") {
        return Answer::saying("<summary>A short summary of the conversation.</summary>");
    }
    Answer::saying(&format!("You said: {}", short(prompt)))
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// In pieces that make the text again, as the scripted provider cuts it.
fn words(text: &str) -> Vec<String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned).collect()
}

fn millis(number: u32) -> Duration {
    Duration::from_millis(number.into())
}

#[cfg(test)]
mod tests {
    use super::{Answer, Ending, Plan, plan};
    use crate::models::history::{History, Tool};
    use serde_json::json;
    use std::time::Duration;

    fn history(prompt: &str, tools: &[&str]) -> History {
        let tool = |name: &&str| Tool { name: (*name).to_owned(), ..Tool::default() };
        History {
            users: vec!["earlier".into(), prompt.into()],
            tools: tools.iter().map(tool).collect(),
            ..History::default()
        }
    }

    fn said(history: &History) -> Answer {
        match plan(history) {
            Plan::Say(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn text(prompt: &str) -> String {
        said(&history(prompt, &[])).text.concat()
    }

    #[test]
    fn words_are_counted_and_paced() {
        let answer = said(&history("!count 3 20", &[]));
        assert_eq!((answer.text, answer.pace), (vec!["1".into(), " 2".into(), " 3".into()], Duration::from_millis(20)));
        assert_eq!(said(&history("!count 3", &[])).pace, Duration::ZERO);
        assert_eq!(said(&history("!slow 2 7", &[])).text.concat(), "word0 word1 ");
        assert_eq!(said(&history("!think a b", &[])).thinking, ["a ", "b"]);
    }

    #[test]
    fn the_last_directive_line_counts() {
        assert_eq!(text("!count 9\nand then\n  !count 2  \nplease"), "1 2");
        assert_eq!(text("say !count 2"), "You said: say !count 2");
        assert_eq!(text("!count five"), "You said: !count five");
        assert_eq!(text("!unknown 5"), "You said: !unknown 5");
        assert_eq!(text(""), "You said: ");
    }

    #[test]
    fn failures_have_a_status_or_the_usual_one() {
        for (prompt, expected) in [
            ("!fail", Plan::Fail(None)),
            ("!fail 429", Plan::Fail(Some(429))),
            ("!fail 99", Plan::Fail(None)),
            ("!fail-once 529 abc", Plan::FailOnce(Some(529))),
        ] {
            assert_eq!(plan(&history(prompt, &[])), expected, "{prompt}");
        }
        assert_eq!(said(&history("!midfail", &[])).ending, Ending::Error);
        assert_eq!(said(&history("!cut", &[])).ending, Ending::Cut);
        assert!(matches!(
            plan(&history("!midfail-once a", &[])),
            Plan::BreakOnce(Answer { ending: Ending::Error, .. })
        ));
    }

    #[test]
    fn each_cli_has_its_own_shell() {
        for (tools, name, input) in [
            (["Read", "Bash"], "Bash", json!({"command": "ls", "description": "Run a command"})),
            (["exec_command", "shell"], "exec_command", json!({"cmd": "ls", "yield_time_ms": 10000})),
            (["x", "shell"], "shell", json!({"command": ["bash", "-lc", "ls"]})),
            (["x", "my_terminal_tool"], "my_terminal_tool", json!({"command": "ls", "description": "Run a command"})),
        ] {
            let answer = said(&history("!tool ls", &tools));
            assert_eq!((answer.calls[0].tool.name.as_str(), &answer.calls[0].input), (name, &input));
        }
        let patch = said(&history("!write a.txt", &["apply_patch"])).calls.remove(0);
        assert!(patch.input["input"].as_str().unwrap().contains("*** Add File: a.txt\n+hello"));
    }

    #[test]
    fn lines_of_calls_at_the_end_go_together() {
        let answer = said(&history("!count 5\n!tool echo one\n!tool echo two\n", &["Bash"]));
        let commands: Vec<_> = answer.calls.iter().map(|call| call.input["command"].as_str().unwrap()).collect();
        assert_eq!(commands, ["echo one", "echo two"]);
    }

    #[test]
    fn a_tool_is_found_by_the_end_of_its_name() {
        let tools = ["Bash", "mcp__host__current_time"];
        let call = |prompt: &str| said(&history(prompt, &tools)).calls.remove(0);
        assert_eq!(call("!call current_time {\"zone\":\"UTC\"}").tool.name, "mcp__host__current_time");
        assert_eq!(call("!call current_time {\"zone\":\"UTC\"}").input, json!({"zone": "UTC"}));
        assert_eq!(call("!call Hidden").tool.name, "Hidden");
        let spaced = call("!call mcp__x/echo {}").tool;
        assert_eq!((spaced.namespace.as_deref(), spaced.name.as_str()), (Some("mcp__x"), "echo"));
        assert_eq!(text("!call x {not json"), "You said: !call x {not json");
    }

    #[test]
    fn a_call_in_the_text_is_answered_like_any_other() {
        let mut history = history("!xml look {\"at\":\"a\",\"n\":[1]}", &[]);
        let expected = "<function_calls>\n<invoke name=\"look\">\n<parameter name=\"at\">a</parameter>\n\
                        <parameter name=\"n\">[1]</parameter>\n</invoke>\n</function_calls>";
        assert!(said(&history).text.concat().ends_with(expected));
        history.tool_results = vec!["seen".into()];
        assert_eq!(said(&history).text.concat(), "Done. The tool returned: seen");
    }

    #[test]
    fn a_result_ends_the_round() {
        let mut history = history("!tool ls", &["Bash"]);
        history.tool_results = vec!["a.txt".into(), "x".repeat(400)];
        let answer = said(&history);
        let expected = format!("Done. The tool returned: a.txt | {}", "x".repeat(300));
        assert_eq!((answer.calls.len(), answer.text.concat()), (0, expected));
    }

    #[test]
    fn what_is_remembered_and_what_was_told_are_told_apart() {
        assert_eq!(text("!recall"), "I remember 2 user texts: \"earlier\", \"!recall\"");
        let mut history = history("!recall", &[]);
        history.told = vec!["before".into()];
        assert!(said(&history).text.concat().ends_with(". I was told 1 more: \"before\""));
    }
}

//! Parses a message into steps. Pure: the same text gives the same steps, or the same error.

use super::{demo, script};
use crate::TurnEvent;
use domain::run::RunError;
use serde_json::{Map, Value};
use std::{ops::RangeInclusive, time::Duration};

/// Slow enough to be visible, fast enough not to annoy.
pub const WORD_PACE: Duration = Duration::from_millis(15);

const EXCERPT_CHARS: usize = 80;
const MAX_WORD_CHARS: usize = 64;

#[derive(Clone, PartialEq, Debug)]
pub enum ScriptStep {
    Wait(Duration),
    /// Sends the text word by word.
    Say(String),
    Think(String),
    /// `1 2 3 …`, generated while it is played, because there may be millions.
    Count {
        to: u32,
        pace: Duration,
    },
    Flood {
        bytes: u64,
    },
    Send(TurnEvent),
    /// Requests an approval, waits for the answer, and reports the call's result accordingly.
    Ask {
        tool_use_id: Option<String>,
        name: String,
        input: Value,
        is_question: bool,
        /// Whether to send the decision as text.
        says_decision: bool,
    },
    /// Calls a host tool once for each of these arguments, all at once, and says the results.
    CallHostTool {
        name: String,
        calls: Vec<Map<String, Value>>,
    },
    Fail(RunError),
    Skip,
    Hang {
        /// How long stopping takes.
        linger: Duration,
    },
}

struct Directive {
    word: &'static str,
    usage: &'static str,
    parse: fn(&str) -> Result<Vec<ScriptStep>, String>,
}

const DIRECTIVES: [Directive; 9] = [
    Directive { word: "count", usage: "!count N [MS]: N from 1 to 10000000, MS from 0 to 60000", parse: count },
    Directive { word: "think", usage: "!think [TEXT]", parse: think },
    Directive { word: "tool", usage: "!tool [NAME] [{json input}]", parse: tool },
    Directive {
        word: "call",
        usage: "!call HOST_TOOL [{json arguments}], or a JSON list of them",
        parse: call_host_tool,
    },
    Directive { word: "ask", usage: "!ask [TOOL] [{json input}]", parse: ask },
    Directive { word: "fail", usage: "!fail [CODE] [MESSAGE]: CODE in snake_case", parse: fail },
    Directive { word: "hang", usage: "!hang [MS]: MS from 0 to 60000", parse: hang },
    Directive { word: "flood", usage: "!flood BYTES: from 1 to 1073741824", parse: flood },
    Directive {
        word: "script",
        usage: "!script [json list of timed events]: see docs/scripted.md",
        parse: script::parse,
    },
];

/// A message that starts with `!` and a letter is a directive, and a few plain sentences stand for one; any other message
/// gets a friendly answer.
pub fn parse(text: &str) -> Result<Vec<ScriptStep>, String> {
    let text = demo::directive_of(text).unwrap_or(text);
    let Some(line) = text.trim().strip_prefix('!').filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
    else {
        return Ok(vec![ScriptStep::Say(greeting(text))]);
    };
    let (word, rest) = split_word(line);
    let Some(directive) = DIRECTIVES.iter().find(|directive| directive.word == word) else {
        let known: Vec<_> = DIRECTIVES.iter().map(|directive| format!("!{}", directive.word)).collect();
        return Err(format!("there is no directive !{}; there are {}", excerpt(word), known.join(", ")));
    };
    (directive.parse)(rest).map_err(|problem| format!("{problem}; usage: {}", directive.usage))
}

fn count(rest: &str) -> Result<Vec<ScriptStep>, String> {
    let (to, rest) = split_word(rest);
    let to = number("N", to, 1..=10_000_000)?;
    let millis = if rest.is_empty() { 0 } else { number("MS", rest, 0..=60_000)? };
    Ok(vec![ScriptStep::Count { to, pace: Duration::from_millis(millis) }])
}

fn think(rest: &str) -> Result<Vec<ScriptStep>, String> {
    let text = if rest.is_empty() { "Let me think about that." } else { rest };
    let answer = format!("I thought about it, in {} words.", text.split_whitespace().count());
    Ok(vec![ScriptStep::Think(text.to_owned()), ScriptStep::Say(answer)])
}

fn tool(rest: &str) -> Result<Vec<ScriptStep>, String> {
    let (name, input) = call(rest)?;
    let (id, input) = ("call_1".to_owned(), Value::Object(input));
    let mut steps =
        vec![ScriptStep::Send(TurnEvent::ToolUse { id: id.clone(), name: name.clone(), input: input.clone() })];
    let output = [format!("{name}: started\n"), format!("{name}: working\n"), format!("{name}: done\n")];
    steps.extend(output.map(|delta| ScriptStep::Send(TurnEvent::ToolOutput { id: id.clone(), delta })));
    steps.push(ScriptStep::Send(TurnEvent::ToolResult { id, content: input, is_error: false }));
    steps.push(ScriptStep::Say(format!("I used {name}.")));
    Ok(steps)
}

fn call_host_tool(rest: &str) -> Result<Vec<ScriptStep>, String> {
    if rest.is_empty() || rest.starts_with('{') {
        return Err("HOST_TOOL is missing".to_owned());
    }
    let (name, list) = split_word(rest);
    if list.starts_with('[') && is_tool_name(name) {
        let calls =
            serde_json::from_str(list).map_err(|error| format!("the calls are not a JSON list of objects: {error}"))?;
        return Ok(vec![ScriptStep::CallHostTool { name: name.to_owned(), calls }]);
    }
    let (name, arguments) = call(rest)?;
    Ok(vec![ScriptStep::CallHostTool { name, calls: vec![arguments] }])
}

fn ask(rest: &str) -> Result<Vec<ScriptStep>, String> {
    let (name, input) = call(rest)?;
    let (id, input) = ("call_1".to_owned(), Value::Object(input));
    Ok(vec![
        ScriptStep::Send(TurnEvent::ToolUse { id: id.clone(), name: name.clone(), input: input.clone() }),
        ScriptStep::Ask { tool_use_id: Some(id), name, input, is_question: false, says_decision: true },
    ])
}

fn fail(rest: &str) -> Result<Vec<ScriptStep>, String> {
    let (code, message) = split_word(rest);
    let code = if code.is_empty() { "scripted_failure" } else { code };
    let message = if message.is_empty() { "The message asked for a failure." } else { message };
    if !is_code(code) {
        return Err(format!("{:?} is not a code", excerpt(code)));
    }
    Ok(vec![ScriptStep::Say("I am about to fail.".to_owned()), ScriptStep::Fail(RunError::new(code, message))])
}

fn hang(rest: &str) -> Result<Vec<ScriptStep>, String> {
    let millis = if rest.is_empty() { 0 } else { number("MS", rest, 0..=60_000)? };
    Ok(vec![ScriptStep::Say("Hanging".to_owned()), ScriptStep::Hang { linger: Duration::from_millis(millis) }])
}

fn flood(rest: &str) -> Result<Vec<ScriptStep>, String> {
    Ok(vec![ScriptStep::Flood { bytes: number("BYTES", rest, 1..=1 << 30)? }])
}

fn greeting(text: &str) -> String {
    let said = excerpt(text);
    let heard = if said.is_empty() { "You said nothing".to_owned() } else { format!("You said “{said}”") };
    format!("{heard}. I am the scripted agent: I need no model and no key. Try !count 20 100")
}

/// Parses the name and the input of a tool call; both are optional.
fn call(rest: &str) -> Result<(String, Map<String, Value>), String> {
    let (name, json) = if rest.starts_with('{') { ("", rest) } else { split_word(rest) };
    let name = if name.is_empty() { "echo" } else { name };
    if !is_tool_name(name) {
        return Err(format!("{:?} is not the name of a tool", excerpt(name)));
    }
    let input: Map<String, Value> = match json {
        "" => Map::new(),
        json => serde_json::from_str(json).map_err(|error| format!("the input is not a JSON object: {error}"))?,
    };
    Ok((name.to_owned(), input))
}

pub fn is_code(text: &str) -> bool {
    fits(text, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

pub fn is_tool_name(text: &str) -> bool {
    fits(text, |b| b.is_ascii_alphanumeric() || b"_-.:/".contains(&b))
}

fn fits(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=MAX_WORD_CHARS).contains(&text.len()) && text.bytes().all(allowed)
}

fn number<T>(name: &str, text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    if text.is_empty() {
        return Err(format!("{name} is missing"));
    }
    // `from_str` accepts a leading '+', a directive does not.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse().ok().filter(|value| digits && range.contains(value));
    value.ok_or_else(|| {
        format!("{name} is a whole number from {} to {}, not {:?}", range.start(), range.end(), excerpt(text))
    })
}

/// Returns the first word, and the trimmed rest.
fn split_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Shortens a text to one bounded line.
fn excerpt(text: &str) -> String {
    let words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1);
    let mut line = words.flat_map(str::chars).filter(|c| !c.is_control());
    let mut excerpt: String = line.by_ref().take(EXCERPT_CHARS).collect();
    if line.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::{ScriptStep, excerpt, parse};
    use crate::TurnEvent;
    use domain::run::RunError;
    use serde_json::json;
    use std::time::Duration;

    fn tool_use(name: &str, input: serde_json::Value) -> ScriptStep {
        ScriptStep::Send(TurnEvent::ToolUse { id: "call_1".into(), name: name.into(), input })
    }

    #[test]
    fn parses_valid_directives() {
        let count = |to, ms| vec![ScriptStep::Count { to, pace: Duration::from_millis(ms) }];
        let fail = |code: &str, message: &str| ScriptStep::Fail(RunError::new(code, message));
        assert_eq!(parse("!count 5").unwrap(), count(5, 0));
        assert_eq!(parse("  !count\t10000000   60000 \n").unwrap(), count(10_000_000, 60_000));
        assert_eq!(parse("!flood 1073741824").unwrap(), vec![ScriptStep::Flood { bytes: 1 << 30 }]);
        assert_eq!(parse("!hang").unwrap()[1], ScriptStep::Hang { linger: Duration::ZERO });
        assert_eq!(parse("!hang 1500").unwrap()[1], ScriptStep::Hang { linger: Duration::from_millis(1500) });
        assert_eq!(parse("!think").unwrap()[0], ScriptStep::Think("Let me think about that.".into()));
        assert_eq!(parse("!think a  b\nc").unwrap()[0], ScriptStep::Think("a  b\nc".into()));
        assert_eq!(parse("!fail").unwrap()[1], fail("scripted_failure", "The message asked for a failure."));
        assert_eq!(parse("!fail over_loaded try later").unwrap()[1], fail("over_loaded", "try later"));
        assert_eq!(parse("!tool").unwrap()[0], tool_use("echo", json!({})));
        assert_eq!(parse("!tool {\"a\": 1}").unwrap()[0], tool_use("echo", json!({"a": 1})));
        assert_eq!(parse("!tool mcp__x.y {\"a\":[1, 2]}").unwrap()[0], tool_use("mcp__x.y", json!({"a": [1, 2]})));
        assert_eq!(parse("!ask Bash").unwrap()[0], tool_use("Bash", json!({})));
        assert_eq!(parse("!script []").unwrap(), vec![]);
    }

    #[test]
    fn invalid_directives_return_a_reason_and_the_usage() {
        let table = [
            ("!count", "N is missing; usage: !count N [MS]"),
            ("!count 0", "N is a whole number from 1 to 10000000, not \"0\"; usage: !count"),
            ("!count 10000001", "not \"10000001\""),
            ("!count +5", "not \"+5\""),
            ("!count -5", "not \"-5\""),
            ("!count 99999999999999999999", "usage: !count"),
            ("!count five", "not \"five\""),
            ("!count 5 60001", "MS is a whole number from 0 to 60000"),
            ("!count 5 10 15", "MS is a whole number"),
            ("!flood", "BYTES is missing; usage: !flood BYTES"),
            ("!flood 1073741825", "BYTES is a whole number"),
            ("!flood 1 2", "BYTES is a whole number"),
            ("!hang on", "MS is a whole number from 0 to 60000, not \"on\"; usage: !hang [MS]"),
            ("!fail Oops", "\"Oops\" is not a code; usage: !fail"),
            ("!tool na;me", "\"na;me\" is not the name of a tool"),
            ("!tool echo [1]", "the input is not a JSON object"),
            ("!tool echo {", "the input is not a JSON object"),
            ("!ask Bash no", "the input is not a JSON object"),
            ("!script", "usage: !script"),
            ("!call", "HOST_TOOL is missing"),
            ("!call {}", "HOST_TOOL is missing"),
            ("!coutn 5", "there is no directive !coutn; there are !count, !think, !tool, !call, !ask, !fail, !hang"),
            ("!COUNT 5", "there is no directive !COUNT"),
        ];
        for (text, expected) in table {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn other_messages_get_a_friendly_answer() {
        for text in ["hello", "! count 5", "!!!", "!", "", "say !count 5", "!7"] {
            let steps = parse(text).unwrap();
            let [ScriptStep::Say(answer)] = steps.as_slice() else { panic!("{text}: {steps:?}") };
            assert!(answer.contains(text) && answer.ends_with("Try !count 20 100"), "{answer}");
        }
    }

    #[test]
    fn excerpt_is_one_short_line() {
        assert_eq!(excerpt(" a\r\n\tb\u{1b}[2J "), "a b[2J");
        assert_eq!(excerpt(&"ä".repeat(80)), "ä".repeat(80));
        assert_eq!(excerpt(&"ä ".repeat(100)).chars().count(), 81);
        assert!(excerpt(&"ä".repeat(81)).ends_with("ä…"));
    }
}

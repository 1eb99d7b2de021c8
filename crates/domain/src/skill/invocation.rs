//! `/name key=value … free text` at the start of a message.

use super::{
    SkillName,
    parameter::{Given, Parameter, Trouble, is_name},
};

/// A message that may call a skill: whether there is one of this name is for others to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invocation<'a> {
    pub name: SkillName,
    /// What follows the name.
    pub rest: &'a str,
}

/// What was given to a skill in a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arguments {
    pub given: Given,
    /// What the person says beside the parameters.
    pub text: String,
}

impl<'a> Invocation<'a> {
    pub fn of(message: &'a str) -> Option<Self> {
        let message = message.trim_start().strip_prefix('/')?;
        let end = message.find(char::is_whitespace).unwrap_or(message.len());
        Some(Self { name: message[..end].parse().ok()?, rest: message[end..].trim() })
    }

    /// Words of the form `key=value` at the beginning are parameters, where the skill has any; a value with spaces stands in
    /// quotes. The rest is free text.
    pub fn arguments(&self, parameters: &[Parameter]) -> Result<Arguments, Trouble> {
        let mut arguments = Arguments::default();
        let mut rest = self.rest;
        while let Some((name, after)) = rest.split_once('=').filter(|(name, _)| !parameters.is_empty() && is_name(name))
        {
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
                let known = parameters.iter().map(|parameter| parameter.name.clone()).collect();
                return Err(Trouble::Unknown { name: name.to_owned(), known });
            };
            let unfit = |why: &str| Trouble::Unfit { name: name.to_owned(), why: why.to_owned() };
            let (word, left) = word(after).ok_or_else(|| unfit("is not quoted well"))?;
            if arguments.given.insert(name.to_owned(), parameter.read(&word)).is_some() {
                return Err(unfit("is given twice"));
            }
            rest = left.trim_start();
        }
        rest.clone_into(&mut arguments.text);
        Ok(arguments)
    }
}

/// The value at the beginning, and what comes after it. Within double quotes `\"` and `\\` stand for themselves.
fn word(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut open: Option<char> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (open, c) {
            (None, '"' | '\'') if value.is_empty() => open = Some(c),
            (None, c) if c.is_whitespace() => return Some((value, &text[at..])),
            (Some(quote), c) if c == quote => {
                let left = &text[at + c.len_utf8()..];
                // A quote ends the value: `"a"b` would be neither.
                return left.chars().next().is_none_or(char::is_whitespace).then_some((value, left));
            }
            (Some('"'), '\\') if text[at + 1..].starts_with(['"', '\\']) => value.extend(chars.next().map(|(_, c)| c)),
            (_, c) => value.push(c),
        }
    }
    open.is_none().then_some((value, ""))
}

#[cfg(test)]
mod tests {
    use super::Invocation;
    use crate::skill::{Parameter, ParameterKind, ParameterValue};
    use proptest::prelude::*;

    fn parameters() -> Vec<Parameter> {
        vec![
            Parameter::new("path", ParameterKind::FilePath),
            Parameter::new("depth", ParameterKind::Number),
            Parameter::new("strict", ParameterKind::Boolean),
        ]
    }

    #[test]
    fn a_message_that_calls_a_skill() {
        let called = |text| Invocation::of(text).map(|called| (called.name.to_string(), called.rest.to_owned()));
        assert_eq!(called("/review"), Some(("review".into(), String::new())));
        assert_eq!(called("  /code-review\n a=1 b\n"), Some(("code-review".into(), "a=1 b".into())));
        for text in ["", "/", "review", "/ review", "/etc/passwd", "/Review", "//x", "/a_b", "say /review"] {
            assert_eq!(called(text), None, "{text:?}");
        }
    }

    #[test]
    fn parameters_then_text() {
        let call = Invocation::of(r#"/review path="a b\"c\\" depth=3 strict=yes look at x=1 please"#).unwrap();
        let arguments = call.arguments(&parameters()).unwrap();
        assert_eq!(arguments.given["path"], ParameterValue::Text("a b\"c\\".into()));
        assert_eq!(arguments.given["depth"], ParameterValue::Number(3.into()));
        assert_eq!(arguments.given["strict"], ParameterValue::Boolean(true));
        assert_eq!(arguments.text, "look at x=1 please");
        let free = Invocation::of("/review x=1 please").unwrap();
        assert_eq!(free.arguments(&[]).unwrap().text, "x=1 please", "a skill without parameters takes text");
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, says) in [
            ("/review nope=1", "there is no parameter \"nope\"; it takes: path, depth, strict"),
            ("/review path=a path=b", "the parameter path is given twice"),
            ("/review path=\"a", "the parameter path is not quoted well"),
            ("/review path='a'b", "the parameter path is not quoted well"),
        ] {
            let trouble = Invocation::of(text).unwrap().arguments(&parameters()).unwrap_err();
            assert_eq!(trouble.to_string(), says, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_quoted(value in r#"[ a-z=\\"'é]{0,20}"#, text in "[a-z]{0,8}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let message = format!("/review path=\"{quoted}\" {text}");
            let arguments = Invocation::of(&message).unwrap().arguments(&parameters()).unwrap();
            prop_assert_eq!(&arguments.given["path"], &ParameterValue::Text(value));
            prop_assert_eq!(arguments.text, text);
        }

        #[test]
        fn nothing_makes_it_fail_badly(text in any::<String>()) {
            if let Some(call) = Invocation::of(&format!("/review {text}")) {
                drop(call.arguments(&parameters()));
            }
        }
    }
}

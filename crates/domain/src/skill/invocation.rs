//! `/name key=value … free text` at the start of a message.

use super::{
    SkillName,
    parameter::{Parameter, ParameterError, ParameterValues, is_parameter_name},
};

/// A message that may invoke a skill. The skill may not exist: the caller checks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkillInvocation<'a> {
    pub name: SkillName,
    /// The text after the name.
    pub rest: &'a str,
}

/// The arguments of a skill in a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SkillArguments {
    pub values: ParameterValues,
    /// The free text after the parameters.
    pub text: String,
}

impl<'a> SkillInvocation<'a> {
    pub fn parse(message: &'a str) -> Option<Self> {
        let message = message.trim_start().strip_prefix('/')?;
        let end = message.find(char::is_whitespace).unwrap_or(message.len());
        Some(Self { name: message[..end].parse().ok()?, rest: message[end..].trim() })
    }

    /// Parses leading `key=value` words as parameters, if the skill has any; a value with spaces is quoted. The rest is
    /// free text.
    pub fn arguments(&self, parameters: &[Parameter]) -> Result<SkillArguments, ParameterError> {
        let mut arguments = SkillArguments::default();
        let mut rest = self.rest;
        while let Some((name, after)) =
            rest.split_once('=').filter(|(name, _)| !parameters.is_empty() && is_parameter_name(name))
        {
            let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) else {
                let known = parameters.iter().map(|parameter| parameter.name.clone()).collect();
                return Err(ParameterError::Unknown { name: name.to_owned(), known });
            };
            let invalid = |why: &str| ParameterError::Invalid { name: name.to_owned(), why: why.to_owned() };
            let (word, left) = word(after).ok_or_else(|| invalid("has an invalid quote"))?;
            if arguments.values.insert(name.to_owned(), parameter.parse_word(&word)).is_some() {
                return Err(invalid("is given twice"));
            }
            rest = left.trim_start();
        }
        rest.clone_into(&mut arguments.text);
        Ok(arguments)
    }
}

/// Splits off the first value. Within double quotes, `\"` and `\\` are escapes.
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
                // The closing quote must end the value: `"a"b` is invalid.
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
    use super::SkillInvocation;
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
    fn parses_messages_that_invoke_a_skill() {
        let called =
            |text| SkillInvocation::parse(text).map(|called| (called.name.to_string(), called.rest.to_owned()));
        assert_eq!(called("/review"), Some(("review".into(), String::new())));
        assert_eq!(called("  /code-review\n a=1 b\n"), Some(("code-review".into(), "a=1 b".into())));
        for text in ["", "/", "review", "/ review", "/etc/passwd", "/Review", "//x", "/a_b", "say /review"] {
            assert_eq!(called(text), None, "{text:?}");
        }
    }

    #[test]
    fn parses_parameters_then_free_text() {
        let call = SkillInvocation::parse(r#"/review path="a b\"c\\" depth=3 strict=yes look at x=1 please"#).unwrap();
        let arguments = call.arguments(&parameters()).unwrap();
        assert_eq!(arguments.values["path"], ParameterValue::Text("a b\"c\\".into()));
        assert_eq!(arguments.values["depth"], ParameterValue::Number(3.into()));
        assert_eq!(arguments.values["strict"], ParameterValue::Boolean(true));
        assert_eq!(arguments.text, "look at x=1 please");
        let free = SkillInvocation::parse("/review x=1 please").unwrap();
        assert_eq!(free.arguments(&[]).unwrap().text, "x=1 please", "a skill without parameters takes text");
    }

    #[test]
    fn errors_name_the_parameter() {
        for (text, expected) in [
            ("/review nope=1", "unknown parameter \"nope\"; the skill has: path, depth, strict"),
            ("/review path=a path=b", "the parameter path is given twice"),
            ("/review path=\"a", "the parameter path has an invalid quote"),
            ("/review path='a'b", "the parameter path has an invalid quote"),
        ] {
            let error = SkillInvocation::parse(text).unwrap().arguments(&parameters()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_quoted(value in r#"[ a-z=\\"'é]{0,20}"#, text in "[a-z]{0,8}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let message = format!("/review path=\"{quoted}\" {text}");
            let arguments = SkillInvocation::parse(&message).unwrap().arguments(&parameters()).unwrap();
            prop_assert_eq!(&arguments.values["path"], &ParameterValue::Text(value));
            prop_assert_eq!(arguments.text, text);
        }

        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            if let Some(call) = SkillInvocation::parse(&format!("/review {text}")) {
                drop(call.arguments(&parameters()));
            }
        }
    }
}

//! Parameters of a skill: what may be given for them, and what a run is left with.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::{collections::BTreeMap, fmt};

pub const MAX_NAME: usize = 64;
/// Of one value, in bytes.
pub const MAX_VALUE: usize = 16 * 1024;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    #[schema(pattern = "^[a-z][a-z0-9_-]{0,63}$")]
    pub name: String,
    #[serde(rename = "type", default)]
    pub kind: ParameterKind,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
    /// A text, a number or a boolean, as the type says.
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    pub default: Option<ParameterValue>,
    /// For the type `choice`: one of these.
    #[serde(default)]
    pub choices: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    #[default]
    Text,
    Number,
    Choice,
    Boolean,
    /// Relative to where the agent works, and beneath it.
    FilePath,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    Boolean(bool),
    Number(Number),
    Text(String),
}

/// What somebody gave, by name.
pub type Given = BTreeMap<String, ParameterValue>;
/// What is filled in, by name: text, whatever it was.
pub type Values = BTreeMap<String, String>;

/// What stands between a skill and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    Unknown { name: String, known: Vec<String> },
    Unfit { name: String, why: String },
    Missing { names: Vec<String> },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } if known.is_empty() => {
                write!(f, "there is no parameter {name:?}; this skill takes none")
            }
            Self::Unknown { name, known } => {
                write!(f, "there is no parameter {name:?}; it takes: {}", known.join(", "))
            }
            Self::Unfit { name, why } => write!(f, "the parameter {name} {why}"),
            Self::Missing { names } => write!(f, "it needs a value for: {}", names.join(", ")),
        }
    }
}

impl Parameter {
    pub fn new(name: impl Into<String>, kind: ParameterKind) -> Self {
        let (description, default, choices) = (None, None, Vec::new());
        Self { name: name.into(), kind, description, required: false, default, choices }
    }

    /// The value as it is filled in, or why it is none of this type.
    pub fn fit(&self, value: &ParameterValue) -> Result<String, String> {
        let text = match value {
            ParameterValue::Boolean(value) => value.to_string(),
            ParameterValue::Number(value) => value.to_string(),
            ParameterValue::Text(value) => value.clone(),
        };
        if text.len() > MAX_VALUE {
            return Err(format!("has more than {MAX_VALUE} bytes"));
        }
        if text.contains('\0') {
            return Err("holds a NUL character".into());
        }
        match (self.kind, value) {
            (ParameterKind::Text, _)
            | (ParameterKind::Number, ParameterValue::Number(_))
            | (ParameterKind::Boolean, ParameterValue::Boolean(_)) => Ok(text),
            (ParameterKind::Number, _) => Err(format!("is a number, not {}", quoted(&text))),
            (ParameterKind::Boolean, _) => Err(format!("is true or false, not {}", quoted(&text))),
            (ParameterKind::Choice, _) if self.choices.contains(&text) => Ok(text),
            (ParameterKind::Choice, _) => Err(format!("is one of: {}; not {}", self.choices.join(", "), quoted(&text))),
            (ParameterKind::FilePath, _) if is_beneath(&text) => Ok(text),
            (ParameterKind::FilePath, _) => Err(format!(
                "is a path beneath the agent's folder, without a leading / and without ..; not {}",
                quoted(&text)
            )),
        }
    }

    /// What a word in a message means for this parameter.
    pub(super) fn read(&self, word: &str) -> ParameterValue {
        let text = || ParameterValue::Text(word.to_owned());
        match self.kind {
            ParameterKind::Boolean => match word.to_ascii_lowercase().as_str() {
                "true" | "yes" => ParameterValue::Boolean(true),
                "false" | "no" => ParameterValue::Boolean(false),
                _ => text(),
            },
            ParameterKind::Number => word.parse::<Number>().map_or_else(|_| text(), ParameterValue::Number),
            ParameterKind::Text | ParameterKind::Choice | ParameterKind::FilePath => text(),
        }
    }
}

/// What was given, checked. Nothing is missing yet.
pub(super) fn accept(parameters: &[Parameter], given: &Given) -> Result<Values, Trouble> {
    let mut values = Values::new();
    for (name, value) in given {
        let Some(parameter) = parameters.iter().find(|parameter| parameter.name == *name) else {
            let known = parameters.iter().map(|parameter| parameter.name.clone()).collect();
            return Err(Trouble::Unknown { name: name.chars().take(MAX_NAME).collect(), known });
        };
        let value = parameter.fit(value).map_err(|why| Trouble::Unfit { name: name.clone(), why })?;
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// The rest from the defaults. An optional parameter without one is filled with nothing.
pub(super) fn complete(parameters: &[Parameter], mut values: Values) -> Result<Values, Trouble> {
    let mut missing = Vec::new();
    for parameter in parameters.iter().filter(|parameter| !parameter.name.is_empty()) {
        if values.contains_key(&parameter.name) {
            continue;
        }
        match parameter.default.as_ref().and_then(|default| parameter.fit(default).ok()) {
            Some(default) => drop(values.insert(parameter.name.clone(), default)),
            None if parameter.required => missing.push(parameter.name.clone()),
            None => drop(values.insert(parameter.name.clone(), String::new())),
        }
    }
    match missing.is_empty() {
        true => Ok(values),
        false => Err(Trouble::Missing { names: missing }),
    }
}

impl super::SkillSpec {
    /// Whether these may be given, complete or not.
    pub fn accepts(&self, given: &Given) -> Result<(), Trouble> {
        accept(&self.parameters, given).map(drop)
    }

    /// What each parameter is filled with: the first of `layers` that says something, else the default.
    pub fn values(&self, layers: &[&Given]) -> Result<Values, Trouble> {
        let mut values = Values::new();
        for given in layers.iter().rev() {
            values.extend(accept(&self.parameters, given)?);
        }
        complete(&self.parameters, values)
    }
}

pub(super) fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn is_beneath(path: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "..");
    !path.contains(|c: char| c.is_control() || c == '\\') && path.split('/').all(is_part)
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(60).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{Given, Parameter, ParameterKind, ParameterValue, Trouble, Values};
    use crate::skill::SkillSpec;

    fn text(text: &str) -> ParameterValue {
        ParameterValue::Text(text.into())
    }

    fn number(number: i64) -> ParameterValue {
        ParameterValue::Number(number.into())
    }

    fn skill() -> SkillSpec {
        let mut spec = SkillSpec::new("s".parse().unwrap(), "d", "b");
        let choices = vec!["de".to_owned(), "en".to_owned()];
        spec.parameters = vec![
            Parameter { required: true, ..Parameter::new("path", ParameterKind::FilePath) },
            Parameter { choices, default: Some(text("en")), ..Parameter::new("language", ParameterKind::Choice) },
            Parameter::new("depth", ParameterKind::Number),
            Parameter::new("strict", ParameterKind::Boolean),
            Parameter::new("note", ParameterKind::Text),
        ];
        spec
    }

    #[test]
    fn each_type_takes_its_own() {
        let skill = skill();
        let path_kind = |value: &str| skill.parameters[0].fit(&text(value));
        assert_eq!(path_kind("src/main.rs").unwrap(), "src/main.rs");
        for path in ["/etc/passwd", "../x", "a/../b", "", "a\nb", "a\\b"] {
            assert!(path_kind(path).is_err(), "{path:?}");
        }
        for (at, good, bad) in [
            (1, text("de"), text("fr")),
            (2, number(3), text("3")),
            (3, ParameterValue::Boolean(true), text("true")),
            (4, number(3), text("a\0")),
        ] {
            assert!(skill.parameters[at].fit(&good).is_ok(), "{good:?}");
            assert!(skill.parameters[at].fit(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_nearer_layer_wins_and_what_is_missing_is_named() {
        let skill = skill();
        let agent = Given::from([("path".into(), text("a")), ("depth".into(), number(1))]);
        let message = Given::from([("depth".into(), number(2))]);
        let values = skill.values(&[&message, &agent]).unwrap();
        let expected = [("depth", "2"), ("language", "en"), ("note", ""), ("path", "a"), ("strict", "")];
        assert_eq!(
            values,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect::<Values>()
        );
        assert_eq!(skill.values(&[&message]), Err(Trouble::Missing { names: vec!["path".into()] }));
        let unknown = skill.values(&[&Given::from([("nope".into(), text("x"))])]).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "there is no parameter \"nope\"; it takes: path, language, depth, strict, note"
        );
    }
}

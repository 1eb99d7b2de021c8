//! Parameters of a skill: validation of their values, and resolution of the values of a run.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::{collections::BTreeMap, fmt};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type, schema::SchemaType},
};

pub const MAX_NAME: usize = 64;
/// The limit of one value, in bytes.
pub const MAX_VALUE: usize = 16 * 1024;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
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
    /// A text, a number or a boolean, depending on the type.
    #[serde(default)]
    pub default: Option<ParameterValue>,
    /// The allowed values of a parameter of type `choice`.
    #[serde(default)]
    pub choices: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    #[default]
    Text,
    Number,
    Choice,
    Boolean,
    /// A relative path beneath the agent's workspace.
    FilePath,
}

/// A text, a number or a boolean.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    Boolean(bool),
    Number(Number),
    Text(String),
}

impl PartialSchema for ParameterValue {
    fn schema() -> RefOr<Schema> {
        let types = SchemaType::from_iter([Type::Boolean, Type::Number, Type::String]);
        ObjectBuilder::new().schema_type(types).description(Some("A text, a number or a boolean.")).into()
    }
}

impl ToSchema for ParameterValue {}

/// Supplied values, by parameter name.
pub type ParameterValues = BTreeMap<String, ParameterValue>;
/// Final values as text, by parameter name.
pub type ResolvedParameters = BTreeMap<String, String>;

/// Why values for a skill's parameters are rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParameterError {
    Unknown { name: String, known: Vec<String> },
    Invalid { name: String, why: String },
    Missing { names: Vec<String> },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } if known.is_empty() => {
                write!(f, "unknown parameter {name:?}; the skill has none")
            }
            Self::Unknown { name, known } => {
                write!(f, "unknown parameter {name:?}; the skill has: {}", known.join(", "))
            }
            Self::Invalid { name, why } => write!(f, "the parameter {name} {why}"),
            Self::Missing { names } => write!(f, "missing values for: {}", names.join(", ")),
        }
    }
}

impl Parameter {
    pub fn new(name: impl Into<String>, kind: ParameterKind) -> Self {
        let (description, default, choices) = (None, None, Vec::new());
        Self { name: name.into(), kind, description, required: false, default, choices }
    }

    /// Returns the value as text, or why it is not valid for this parameter.
    pub fn validate(&self, value: &ParameterValue) -> Result<String, String> {
        let text = match value {
            ParameterValue::Boolean(value) => value.to_string(),
            ParameterValue::Number(value) => value.to_string(),
            ParameterValue::Text(value) => value.clone(),
        };
        if text.len() > MAX_VALUE {
            return Err(format!("has more than {MAX_VALUE} bytes"));
        }
        if text.contains('\0') {
            return Err("contains a NUL character".into());
        }
        match (self.kind, value) {
            (ParameterKind::Text, _)
            | (ParameterKind::Number, ParameterValue::Number(_))
            | (ParameterKind::Boolean, ParameterValue::Boolean(_)) => Ok(text),
            (ParameterKind::Number, _) => Err(format!("must be a number, not {}", quoted(&text))),
            (ParameterKind::Boolean, _) => Err(format!("must be true or false, not {}", quoted(&text))),
            (ParameterKind::Choice, _) if self.choices.contains(&text) => Ok(text),
            (ParameterKind::Choice, _) => {
                Err(format!("must be one of: {}; not {}", self.choices.join(", "), quoted(&text)))
            }
            (ParameterKind::FilePath, _) if is_beneath(&text) => Ok(text),
            (ParameterKind::FilePath, _) => Err(format!(
                "must be a path beneath the agent's folder, without a leading / and without ..; not {}",
                quoted(&text)
            )),
        }
    }

    /// Parses a word of a message as a value of this parameter.
    pub(super) fn parse_word(&self, word: &str) -> ParameterValue {
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

/// Validates the supplied values. Values may still be missing.
fn validate_all(parameters: &[Parameter], given: &ParameterValues) -> Result<ResolvedParameters, ParameterError> {
    let mut values = ResolvedParameters::new();
    for (name, value) in given {
        let Some(parameter) = parameters.iter().find(|parameter| parameter.name == *name) else {
            let known = parameters.iter().map(|parameter| parameter.name.clone()).collect();
            return Err(ParameterError::Unknown { name: name.chars().take(MAX_NAME).collect(), known });
        };
        let value = parameter.validate(value).map_err(|why| ParameterError::Invalid { name: name.clone(), why })?;
        values.insert(name.clone(), value);
    }
    Ok(values)
}

/// Adds defaults. An optional parameter without a default gets an empty value.
fn add_defaults(
    parameters: &[Parameter],
    mut values: ResolvedParameters,
) -> Result<ResolvedParameters, ParameterError> {
    let mut missing = Vec::new();
    for parameter in parameters.iter().filter(|parameter| !parameter.name.is_empty()) {
        if values.contains_key(&parameter.name) {
            continue;
        }
        match parameter.default.as_ref().and_then(|default| parameter.validate(default).ok()) {
            Some(default) => drop(values.insert(parameter.name.clone(), default)),
            None if parameter.required => missing.push(parameter.name.clone()),
            None => drop(values.insert(parameter.name.clone(), String::new())),
        }
    }
    match missing.is_empty() {
        true => Ok(values),
        false => Err(ParameterError::Missing { names: missing }),
    }
}

impl super::SkillSpec {
    /// Checks that the values are valid; values may be missing.
    pub fn check_values(&self, given: &ParameterValues) -> Result<(), ParameterError> {
        validate_all(&self.parameters, given).map(drop)
    }

    /// Returns the value of each parameter: from the first of `layers` that has one, else the default.
    pub fn resolve_parameters(&self, layers: &[&ParameterValues]) -> Result<ResolvedParameters, ParameterError> {
        let mut values = ResolvedParameters::new();
        for given in layers.iter().rev() {
            values.extend(validate_all(&self.parameters, given)?);
        }
        add_defaults(&self.parameters, values)
    }
}

pub(super) fn is_parameter_name(text: &str) -> bool {
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
    use super::{Parameter, ParameterError, ParameterKind, ParameterValue, ParameterValues, ResolvedParameters};
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
    fn each_type_accepts_only_its_values() {
        let skill = skill();
        let path_kind = |value: &str| skill.parameters[0].validate(&text(value));
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
            assert!(skill.parameters[at].validate(&good).is_ok(), "{good:?}");
            assert!(skill.parameters[at].validate(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_first_layer_wins_and_missing_values_are_named() {
        let skill = skill();
        let agent = ParameterValues::from([("path".into(), text("a")), ("depth".into(), number(1))]);
        let message = ParameterValues::from([("depth".into(), number(2))]);
        let values = skill.resolve_parameters(&[&message, &agent]).unwrap();
        let expected = [("depth", "2"), ("language", "en"), ("note", ""), ("path", "a"), ("strict", "")];
        assert_eq!(
            values,
            expected
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into_iter()
                .collect::<ResolvedParameters>()
        );
        assert_eq!(skill.resolve_parameters(&[&message]), Err(ParameterError::Missing { names: vec!["path".into()] }));
        let unknown = skill.resolve_parameters(&[&ParameterValues::from([("nope".into(), text("x"))])]).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "unknown parameter \"nope\"; the skill has: path, language, depth, strict, note"
        );
    }
}

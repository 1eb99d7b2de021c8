//! Parses and checks tool arguments.

use domain::{agent::Agent, ids::AgentId};
use rmcp::model::JsonObject;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::str::FromStr;

/// Why a tool call failed, in words that a model can act on.
#[derive(Clone, Debug)]
pub struct McpToolError(pub String);

impl From<engine::EngineError> for McpToolError {
    fn from(error: engine::EngineError) -> Self {
        // Database errors go to the log, not to the client.
        match error {
            engine::EngineError::Store(error) => {
                tracing::error!(%error, "an MCP tool failed");
                Self(
                    "the server could not read or write its data; try again, and tell the operator if this continues"
                        .into(),
                )
            }
            error => Self(error.to_string()),
        }
    }
}

impl From<store::StoreError> for McpToolError {
    fn from(error: store::StoreError) -> Self {
        engine::EngineError::from(error).into()
    }
}

impl McpToolError {
    /// Converts `NotFound` into a message that names `what`, with the hint `hint`.
    pub fn not_found(what: &str, hint: &str) -> impl FnOnce(engine::EngineError) -> Self + use<> {
        let why = format!("there is no {what}; {hint}");
        move |error| match error {
            engine::EngineError::NotFound => Self(why),
            error => error.into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

pub fn parse_arguments<T: DeserializeOwned>(given: JsonObject) -> Result<T, McpToolError> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let (path, why) = (error.path().to_string(), error.inner());
        match path.as_str() {
            "." => McpToolError(format!("invalid arguments: {why}")),
            path => McpToolError(format!("{path}: {why}")),
        }
    })
}

/// Parses an id.
pub fn parse_id<T: FromStr>(name: &str, text: &str) -> Result<T, McpToolError> {
    text.trim().parse().map_err(|_| McpToolError(format!("{name}: {:?} is not an id; ids are UUIDs", excerpt(text))))
}

pub fn check_range(name: &str, value: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64, McpToolError> {
    match range.contains(&value) {
        true => Ok(value),
        false => Err(McpToolError(format!("{name}: must be from {} to {}, not {value}", range.start(), range.end()))),
    }
}

/// Finds an agent by id or by name; the name may differ in case.
pub fn find_agent<'a>(agents: &'a [Agent], wanted: &str) -> Result<&'a Agent, McpToolError> {
    let wanted = wanted.trim();
    let by_id = wanted.parse::<AgentId>().ok();
    let found = agents.iter().find(|agent| Some(agent.id) == by_id || agent.spec.name.as_str() == wanted);
    let alike = || agents.iter().find(|agent| agent.spec.name.as_str().to_lowercase() == wanted.to_lowercase());
    found.or_else(alike).ok_or_else(|| {
        let who = super::agents::describe(agents);
        McpToolError(format!("there is no agent {:?}. {who}", excerpt(wanted)))
    })
}

pub fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::{NoArguments, check_range, parse_arguments};
    use serde_json::json;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only parsing is tested")]
    struct TestArguments {
        room: String,
        #[serde(default)]
        limit: Option<u64>,
    }

    #[test]
    fn errors_name_the_invalid_argument() {
        let wrong = |given: serde_json::Value| {
            parse_arguments::<TestArguments>(given.as_object().unwrap().clone()).unwrap_err().0
        };
        assert!(wrong(json!({})).contains("missing field `room`"));
        assert!(wrong(json!({"room": 7})).starts_with("room: "), "{}", wrong(json!({"room": 7})));
        assert!(wrong(json!({"room": "a", "limt": 1})).contains("unknown field `limt`"));
        assert!(wrong(json!({"room": "a", "limit": -1})).starts_with("limit: "));
        assert!(parse_arguments::<NoArguments>(json!({"x": 1}).as_object().unwrap().clone()).is_err());
        assert!(check_range("limit", 0, 1..=9).unwrap_err().0.contains("from 1 to 9"));
    }
}

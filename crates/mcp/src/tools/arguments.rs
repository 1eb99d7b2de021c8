//! Reading a tool's arguments, and saying what is wrong with them.

use domain::{agent::Agent, ids::AgentId};
use rmcp::model::JsonObject;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::str::FromStr;

/// Why a tool did not do what was asked, in words that a model can act on.
#[derive(Clone, Debug)]
pub struct Trouble(pub String);

impl From<engine::Error> for Trouble {
    fn from(error: engine::Error) -> Self {
        // What a database says of itself is nobody's business but the operator's.
        match error {
            engine::Error::Store(error) => {
                tracing::error!(%error, "an MCP tool failed");
                Self(
                    "the server could not read or write its data; try again, and tell its operator if it stays so"
                        .into(),
                )
            }
            error => Self(error.to_string()),
        }
    }
}

impl From<store::Error> for Trouble {
    fn from(error: store::Error) -> Self {
        engine::Error::from(error).into()
    }
}

impl Trouble {
    /// `what` is not there, and `else_` says where to look.
    pub fn missing(what: &str, else_: &str) -> impl FnOnce(engine::Error) -> Self + use<> {
        let why = format!("there is no {what}; {else_}");
        move |error| match error {
            engine::Error::NotFound => Self(why),
            error => error.into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

pub fn read<T: DeserializeOwned>(given: JsonObject) -> Result<T, Trouble> {
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let (path, why) = (error.path().to_string(), error.inner());
        match path.as_str() {
            "." => Trouble(format!("the arguments do not fit: {why}")),
            path => Trouble(format!("{path}: {why}")),
        }
    })
}

/// An id is given as text.
pub fn id<T: FromStr>(name: &str, text: &str) -> Result<T, Trouble> {
    text.trim().parse().map_err(|_| Trouble(format!("{name}: {:?} is no id; ids are UUIDs", shown(text))))
}

pub fn within(name: &str, value: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64, Trouble> {
    match range.contains(&value) {
        true => Ok(value),
        false => Err(Trouble(format!("{name}: from {} to {}, not {value}", range.start(), range.end()))),
    }
}

/// By id or by name.
pub fn agent_of<'a>(agents: &'a [Agent], wanted: &str) -> Result<&'a Agent, Trouble> {
    let wanted = wanted.trim();
    let by_id = wanted.parse::<AgentId>().ok();
    let found = agents.iter().find(|agent| Some(agent.id) == by_id || agent.spec.name.as_str() == wanted);
    let alike = || agents.iter().find(|agent| agent.spec.name.as_str().to_lowercase() == wanted.to_lowercase());
    found.or_else(alike).ok_or_else(|| {
        let who = super::agents::who(agents);
        Trouble(format!("there is no agent {:?}. {who}", shown(wanted)))
    })
}

pub fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::{Nothing, read, within};
    use serde_json::json;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the reading is looked at")]
    struct Wish {
        room: String,
        #[serde(default)]
        limit: Option<u64>,
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |given: serde_json::Value| read::<Wish>(given.as_object().unwrap().clone()).unwrap_err().0;
        assert!(wrong(json!({})).contains("missing field `room`"));
        assert!(wrong(json!({"room": 7})).starts_with("room: "), "{}", wrong(json!({"room": 7})));
        assert!(wrong(json!({"room": "a", "limt": 1})).contains("unknown field `limt`"));
        assert!(wrong(json!({"room": "a", "limit": -1})).starts_with("limit: "));
        assert!(read::<Nothing>(json!({"x": 1}).as_object().unwrap().clone()).is_err());
        assert!(within("limit", 0, 1..=9).unwrap_err().0.contains("from 1 to 9"));
    }
}

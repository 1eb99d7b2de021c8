//! The environment the server was started in. It holds secrets, so it is never shown and never passed on completely.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
};

/// Variables that mean the same: SDKs and programs read one or the other. Set in one spelling, each is set in both.
const SPELLINGS: [[&str; 2]; 2] = [["OPENAI_ORG_ID", "OPENAI_ORGANIZATION"], ["OPENAI_PROJECT_ID", "OPENAI_PROJECT"]];

#[derive(Clone, PartialEq, Eq, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.into_iter().collect()).spelled_both_ways()
    }

    fn spelled_both_ways(mut self) -> Self {
        for [one, other] in SPELLINGS {
            for (from, to) in [(one, other), (other, one)] {
                if let (Some(value), None) = (self.get(from).map(OsStr::to_owned), self.get(to)) {
                    self.0.insert(to.into(), value);
                }
            }
        }
        self
    }

    pub fn variables(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }

    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Adds or replaces one variable.
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.0.insert(name.into(), value.into());
        self.spelled_both_ways()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} variables", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Environment;

    #[test]
    fn both_spellings_of_a_variable_mean_the_same() {
        let environment =
            Environment::default().with("OPENAI_ORGANIZATION", "org").with("OPENAI_PROJECT_ID", "project");
        for (name, value) in [("OPENAI_ORG_ID", "org"), ("OPENAI_ORGANIZATION", "org"), ("OPENAI_PROJECT", "project")] {
            assert_eq!(environment.get(name).and_then(|value| value.to_str()), Some(value), "{name}");
        }
        let both = [("OPENAI_ORG_ID", "a"), ("OPENAI_ORGANIZATION", "b")];
        let both = Environment::new(both.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(
            (both.get("OPENAI_ORG_ID").unwrap(), both.get("OPENAI_ORGANIZATION").unwrap()),
            ("a".as_ref(), "b".as_ref())
        );
        assert!(Environment::default().get("OPENAI_ORG_ID").is_none());
    }
}

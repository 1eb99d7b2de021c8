//! The variables of the server's environment that the operator lets settings name. Nothing else of the environment is ever
//! put into one (invariant 17).

use domain::mcp::{Transport, variables_in};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// By name, with their values where they are set. The values are secrets.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, Option<String>>);

/// A variable that a server's settings name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpVariable)]
pub struct VariableUse {
    pub name: String,
    /// The operator has allowed it, and whoever configured this server may use it.
    pub allowed: bool,
    pub set: bool,
}

impl Variables {
    pub fn new(allowed: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self(allowed.into_iter().collect())
    }

    /// Only what the operator has written down gets values: anybody else could send them to an address of their own.
    pub(super) fn value(&self, name: &str, of_operator: bool) -> Option<String> {
        self.0.get(name).filter(|_| of_operator).cloned().flatten()
    }

    pub(super) fn allows(&self, name: &str, of_operator: bool) -> bool {
        of_operator && self.0.contains_key(name)
    }

    /// Those that are set.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.values().flatten().map(String::as_str)
    }

    pub(crate) fn used_by(&self, transport: &Transport, of_operator: bool) -> Vec<VariableUse> {
        let used = |name: String| VariableUse {
            allowed: self.allows(&name, of_operator),
            set: self.value(&name, of_operator).is_some(),
            name,
        };
        variables_in(transport).into_iter().map(used).collect()
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Variables;

    #[test]
    fn invariant_17_secrets_stay_values_are_the_operators_and_are_not_shown() {
        let variables = Variables::new([("TOKEN".to_owned(), Some("s3cret".to_owned())), ("UNSET".to_owned(), None)]);
        assert_eq!(variables.value("TOKEN", true).as_deref(), Some("s3cret"));
        assert_eq!(variables.value("TOKEN", false), None, "not for what others have written");
        assert!(variables.allows("UNSET", true) && variables.value("UNSET", true).is_none());
        assert!(!variables.allows("PATH", true), "what is not named is not there");
        let shown = format!("{variables:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("s3cret"), "{shown}");
    }
}

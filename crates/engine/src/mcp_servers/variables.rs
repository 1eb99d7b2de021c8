//! The environment variables that MCP server settings may use, as allowed by the operator. No other variable is ever
//! filled in (invariant 17).

use domain::mcp::{McpTransport, variables_in};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// Always allowed. It is no secret: to redact it would hide every path beneath it.
const HOME: &str = "HOME";

/// The allowed variables with their values, if set. The values are secrets.
#[derive(Clone, Default)]
pub struct McpVariables(BTreeMap<String, Option<String>>);

/// A variable that a server's settings refer to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpVariable)]
pub struct VariableUse {
    pub name: String,
    /// Whether the operator has allowed it and this server may use it.
    pub allowed: bool,
    pub set: bool,
}

impl McpVariables {
    /// The operator's `HOME` is among them without being listed.
    pub fn with_home(self, home: Option<String>) -> Self {
        let mut all = self;
        all.0.insert(HOME.to_owned(), home);
        all
    }

    pub fn new(allowed: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self(allowed.into_iter().collect())
    }

    /// Only servers of the operator get values: other owners could send them to a URL of their own.
    pub(super) fn value(&self, name: &str, of_operator: bool) -> Option<String> {
        self.0.get(name).filter(|_| of_operator).cloned().flatten()
    }

    pub(super) fn allows(&self, name: &str, of_operator: bool) -> bool {
        of_operator && self.0.contains_key(name)
    }

    /// The values of all variables that are set and may be secret.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        let secret = self.0.iter().filter(|(name, _)| name.as_str() != HOME);
        secret.filter_map(|(_, value)| value.as_deref())
    }

    pub(crate) fn used_by(&self, transport: &McpTransport, of_operator: bool) -> Vec<VariableUse> {
        let used = |name: String| VariableUse {
            allowed: self.allows(&name, of_operator),
            set: self.value(&name, of_operator).is_some(),
            name,
        };
        variables_in(transport).into_iter().map(used).collect()
    }
}

impl fmt::Debug for McpVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::McpVariables;

    #[test]
    fn invariant_17_secrets_stay_values_are_for_the_operator_and_hidden_in_debug() {
        let variables =
            McpVariables::new([("TOKEN".to_owned(), Some("s3cret".to_owned())), ("UNSET".to_owned(), None)]);
        assert_eq!(variables.value("TOKEN", true).as_deref(), Some("s3cret"));
        assert_eq!(variables.value("TOKEN", false), None, "not for servers of others");
        assert!(variables.allows("UNSET", true) && variables.value("UNSET", true).is_none());
        assert!(!variables.allows("PATH", true), "a variable that is not listed is not allowed");
        let with_home = variables.clone().with_home(Some("/srv/ann-lee".into()));
        assert_eq!(with_home.value("HOME", true).as_deref(), Some("/srv/ann-lee"));
        assert_eq!(with_home.value("HOME", false), None);
        assert_eq!(with_home.values().collect::<Vec<_>>(), ["s3cret"], "a path is not redacted");
        let shown = format!("{variables:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("s3cret"), "{shown}");
    }
}

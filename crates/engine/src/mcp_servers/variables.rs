//! The environment variables that MCP server settings may use, as allowed by the operator. No other variable is ever
//! filled in (invariant 17).

use domain::mcp::{McpTransport, may_be_allowed, variables_in};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

/// Always allowed. It is no secret: to redact it would hide every path beneath it.
const HOME: &str = "HOME";

/// The variables, and which of them the operator has allowed. The values are secrets.
#[derive(Clone, Default)]
pub struct McpVariables {
    /// Allowed in the configuration, with their values, if set.
    configured: BTreeMap<String, Option<String>>,
    /// What else the operator may allow.
    environment: Arc<BTreeMap<String, String>>,
    /// Allowed through the API, as last read from the store.
    added: Arc<RwLock<BTreeSet<String>>>,
}

/// A variable that a server's settings refer to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = McpVariable)]
pub struct VariableUse {
    pub name: String,
    /// Whether the operator has allowed it and this server may use it.
    pub allowed: bool,
    /// Whether the server's environment has it, also if it is not allowed. `false` for servers of others than the operator.
    pub set: bool,
}

impl McpVariables {
    pub fn new(allowed: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self { configured: allowed.into_iter().collect(), ..Self::default() }
    }

    /// The operator's `HOME` is among them without being listed.
    pub fn with_home(mut self, home: Option<String>) -> Self {
        self.configured.insert(HOME.to_owned(), home);
        self
    }

    /// The variables of the server that the operator may allow through the API.
    pub fn with_environment(self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables = variables.into_iter().filter(|(name, _)| may_be_allowed(name));
        Self { environment: Arc::new(variables.collect()), ..self }
    }

    /// Replaces those that are allowed through the API.
    pub(crate) fn set_added(&self, names: Vec<String>) {
        *self.added.write().unwrap_or_else(PoisonError::into_inner) = names.into_iter().collect();
    }

    fn is_added(&self, name: &str) -> bool {
        self.added.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    pub(crate) fn is_configured(&self, name: &str) -> bool {
        self.configured.contains_key(name)
    }

    /// The names in the configuration.
    pub(crate) fn configured(&self) -> impl Iterator<Item = &str> {
        self.configured.keys().map(String::as_str)
    }

    /// Whether the server's environment has it.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        match self.configured.get(name) {
            Some(value) => value.is_some(),
            None => self.environment.contains_key(name),
        }
    }

    /// Only servers of the operator get values: other owners could send them to a URL of their own.
    pub(super) fn value(&self, name: &str, of_operator: bool) -> Option<String> {
        match self.configured.get(name).filter(|_| of_operator) {
            Some(value) => value.clone(),
            None if self.allows(name, of_operator) => self.environment.get(name).cloned(),
            None => None,
        }
    }

    pub(super) fn allows(&self, name: &str, of_operator: bool) -> bool {
        of_operator && (self.is_configured(name) || self.is_added(name))
    }

    /// The values of all allowed variables that are set and may be secret.
    pub(crate) fn values(&self) -> Vec<String> {
        let configured = self.configured.iter().filter(|(name, _)| name.as_str() != HOME);
        let mut values: Vec<String> = configured.filter_map(|(_, value)| value.clone()).collect();
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        values.extend(added.iter().filter_map(|name| self.environment.get(name).cloned()));
        values
    }

    pub(crate) fn used_by(&self, transport: &McpTransport, of_operator: bool) -> Vec<VariableUse> {
        let used = |name: String| VariableUse {
            allowed: self.allows(&name, of_operator),
            set: of_operator && self.is_set(&name),
            name,
        };
        variables_in(transport).into_iter().map(used).collect()
    }
}

impl fmt::Debug for McpVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.configured.keys()).finish()
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
        assert_eq!(with_home.values(), ["s3cret"], "a path is not redacted");
        let environment = [("OTHER", "0ther"), ("GREENROOM_STORE__DATABASE", "postgres://secret")];
        let all = with_home.with_environment(environment.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(all.is_set("OTHER") && all.value("OTHER", true).is_none(), "not before it is allowed");
        all.set_added(vec!["OTHER".into(), "GREENROOM_STORE__DATABASE".into()]);
        assert_eq!((all.value("OTHER", true).as_deref(), all.value("OTHER", false)), (Some("0ther"), None));
        assert_eq!(all.value("GREENROOM_STORE__DATABASE", true), None, "settings of Greenroom are never available");
        assert_eq!(all.values(), ["s3cret", "0ther"], "both are redacted");
        all.set_added(Vec::new());
        assert!(!all.allows("OTHER", true) && all.value("OTHER", true).is_none());
        let shown = format!("{variables:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("s3cret"), "{shown}");
    }
}

//! The owner of stored objects: a workspace, by its name. A person alone has a workspace of the same name.

use crate::name::Name;
use serde::{Deserialize, Serialize};

/// The workspace whose objects a query may see. Every store query takes one: a foreign id and an unknown id look the same.
// The stored column is `owner`. The user who acts in the workspace is part of `Actor`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Owner(Name);

/// The workspace of the operator, which exists from the start.
pub const LOCAL: &str = "local";

impl Owner {
    pub fn new(name: Name) -> Self {
        Self(name)
    }

    pub fn local() -> Self {
        // `LOCAL` is a valid name; the test below checks it.
        Name::parse(LOCAL).map_or_else(|_| unreachable!("{LOCAL} is a name"), Self)
    }

    /// Whether this is the operator's workspace, which the local key opens. Only its agents run programs that
    /// people configured.
    pub fn belongs_to_operator(&self) -> bool {
        self.as_str() == LOCAL
    }

    pub fn name(&self) -> &Name {
        &self.0
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_local_owner_has_a_valid_name() {
        assert_eq!(super::Owner::local().as_str(), "local");
    }
}

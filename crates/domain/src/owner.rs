//! The owner of stored objects, and the principal of a request.

use crate::name::Name;
use serde::{Deserialize, Serialize};

/// The owner whose objects a query may see. Every store query takes one: a foreign id and an unknown id look the same.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Owner(Name);

/// The implicit owner on loopback while no account exists.
pub const LOCAL: &str = "local";

impl Owner {
    pub fn new(name: Name) -> Self {
        Self(name)
    }

    pub fn local() -> Self {
        // `LOCAL` is a valid name; the test below checks it.
        Name::parse(LOCAL).map_or_else(|_| unreachable!("{LOCAL} is a name"), Self)
    }

    /// Returns whether this is the operator of the server: the implicit owner while no account exists, afterwards the
    /// user `local`, whose first token was created on the machine itself. Only the operator configures programs.
    pub fn is_operator(&self) -> bool {
        self.as_str() == LOCAL
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

/// The caller of one request, after authentication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    pub owner: Owner,
    /// The token that was presented, or `None` for the implicit local owner.
    pub token: Option<crate::ids::TokenId>,
    /// The browser session, if a browser presented a cookie instead of the token itself.
    pub browser_session: Option<crate::ids::BrowserSessionId>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_local_owner_has_a_valid_name() {
        assert_eq!(super::Owner::local().as_str(), "local");
    }
}

//! Who is asking, and whose things these are.

use crate::name::Name;
use serde::{Deserialize, Serialize};

/// Whose objects a query may see. Every store query takes one: a foreign id and an unknown id look the same.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Owner(Name);

/// The owner that is implied on loopback while no account exists.
pub const LOCAL: &str = "local";

impl Owner {
    pub fn new(name: Name) -> Self {
        Self(name)
    }

    pub fn local() -> Self {
        // `LOCAL` is a valid name by construction; the test below holds it to that.
        Name::parse(LOCAL).map_or_else(|_| unreachable!("{LOCAL} is a name"), Self)
    }

    /// Whoever runs the server: alone on it while no account exists, and the user of this name afterwards, whose first
    /// token was made on the machine itself. May say which programs are started.
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
    /// The token that was shown, or `None` for the implied local owner.
    pub token: Option<crate::ids::TokenId>,
    /// The visit it was shown for, where a browser showed a cookie instead of the token itself.
    pub visit: Option<crate::ids::VisitId>,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_local_owner_exists() {
        assert_eq!(super::Owner::local().as_str(), "local");
    }
}

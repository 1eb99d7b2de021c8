//! Whose agents may use the logins and the keys of the server. An agent's program has what it is started with in its own
//! hands: its environment, and the login file in its home. So these are for the operator's agents only, unless the
//! operator lends them to another workspace.

use domain::owner::Owner;
use std::collections::BTreeSet;

/// The workspaces that the operator lends them to, besides their own.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum LoginGrants {
    Everyone,
    #[default]
    Nobody,
    Workspaces(BTreeSet<Owner>),
}

impl LoginGrants {
    pub fn allow(&self, workspace: &Owner) -> bool {
        match self {
            _ if workspace.belongs_to_operator() => true,
            Self::Everyone => true,
            Self::Nobody => false,
            Self::Workspaces(granted) => granted.contains(workspace),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LoginGrants;
    use domain::{name::Name, owner::Owner};

    #[test]
    fn m9_logins_of_the_server_are_for_the_operator_and_for_whom_they_grant_them() {
        let [ada, bob] = ["ada", "bob"].map(|name| Owner::new(Name::parse(name).unwrap()));
        let some = LoginGrants::Workspaces([ada.clone()].into());
        for (grants, expected) in [
            (LoginGrants::default(), [true, false, false]),
            (some, [true, true, false]),
            (LoginGrants::Everyone, [true, true, true]),
        ] {
            assert_eq!([&Owner::local(), &ada, &bob].map(|workspace| grants.allow(workspace)), expected);
        }
    }
}

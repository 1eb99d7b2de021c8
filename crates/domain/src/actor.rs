//! Who does something: a workspace, a user with a role in it, and the credential that proves it. An actor is the first
//! argument of every command and is stored with what it changed (invariant 22).

use crate::{
    ids::{BrowserSessionId, RunId, TokenId, UserId},
    name::Name,
    owner::Owner,
    permission::{Forbidden, Permission, Role},
    scope::{Scope, Scopes},
};
use std::net::IpAddr;

/// The author of a command, after authentication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// The workspace whose objects the command may see and change.
    pub workspace: Owner,
    /// `None` for the server's own work and for a process of an agent, which is never a person.
    pub user: Option<User>,
    pub role: Role,
    /// What the credential may be used for; a role has more.
    pub scopes: Scopes,
    pub credential: Credential,
    /// The address that the request came from, if it came over the network.
    pub address: Option<IpAddr>,
}

/// A person or a service account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub id: UserId,
    pub name: Name,
}

/// What proves who the actor is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Credential {
    /// The local key of the data folder, or access to the data folder itself: the operator.
    LocalKey,
    /// None: the server was started with `--no-auth`, and every direct request on loopback is the operator's.
    NoAuth,
    Token(TokenId),
    /// The cookie of a browser that signed in with this token; `None` if it signed in with the local key or a link.
    BrowserSession {
        session: BrowserSessionId,
        token: Option<TokenId>,
    },
    /// The agent token of a process of this run.
    Agent(RunId),
    /// The server itself: what it does after a client has disconnected, or for a server that crashed.
    System,
}

impl Actor {
    /// The operator, by the local key.
    pub fn local() -> Self {
        Self {
            workspace: Owner::local(),
            user: Some(User { id: UserId::LOCAL, name: Owner::local().name().clone() }),
            role: Role::Owner,
            scopes: Scopes::ALL,
            credential: Credential::LocalKey,
            address: None,
        }
    }

    /// The same actor, at the address of a request.
    pub fn at(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Whether both act for the same user by the same credential. A client may change its address.
    pub fn is_same(&self, other: &Self) -> bool {
        let Self { workspace, user, role, scopes, credential, address: _ } = self;
        *workspace == other.workspace
            && *user == other.user
            && *role == other.role
            && *scopes == other.scopes
            && *credential == other.credential
    }

    /// The server itself, in a workspace.
    pub fn system(workspace: Owner) -> Self {
        let (role, scopes, credential) = (Role::Owner, Scopes::ALL, Credential::System);
        Self { workspace, user: None, role, scopes, credential, address: None }
    }

    /// A process of an agent's run. It changes what the agent itself keeps, and may ask for nothing else.
    pub fn agent(workspace: Owner, run: RunId) -> Self {
        let (role, scopes, credential) = (Role::Viewer, Scopes::ALL, Credential::Agent(run));
        Self { workspace, user: None, role, scopes, credential, address: None }
    }

    /// Returns the workspace, if the actor's role has a permission in it and the credential is for that. Every command
    /// begins with this.
    pub fn require(&self, permission: Permission) -> Result<&Owner, Forbidden> {
        match (self.has_role_for(permission), self.scopes.contains(Scope::of(permission))) {
            (true, true) => Ok(&self.workspace),
            (false, _) => Err(Forbidden::Role { role: self.role, permission }),
            (true, false) => Err(Forbidden::Scope { permission }),
        }
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.require(permission).is_ok()
    }

    fn has_role_for(&self, permission: Permission) -> bool {
        let in_workspace = permission != Permission::Operate || self.workspace.belongs_to_operator();
        in_workspace && self.role.grants(permission)
    }

    /// The name under which the actor posts.
    pub fn name(&self) -> &Name {
        self.user.as_ref().map_or(self.workspace.name(), |user| &user.name)
    }

    pub fn user_id(&self) -> Option<UserId> {
        self.user.as_ref().map(|user| user.id)
    }
}

impl Credential {
    /// The token behind the credential.
    pub fn token(self) -> Option<TokenId> {
        match self {
            Self::Token(token) => Some(token),
            Self::BrowserSession { token, .. } => token,
            Self::LocalKey | Self::NoAuth | Self::Agent(_) | Self::System => None,
        }
    }

    /// Whether a program sent a secret with the request. A browser adds a cookie by itself, whichever page asks it to.
    pub fn is_bearer(self) -> bool {
        matches!(self, Self::LocalKey | Self::Token(_) | Self::Agent(_))
    }
}

#[cfg(test)]
mod tests {
    use super::Actor;
    use crate::{
        name::Name,
        owner::Owner,
        permission::{Permission, Role},
        scope::Scopes,
    };

    #[test]
    fn only_an_owner_of_the_operators_workspace_may_operate_the_server() {
        let actor = |workspace: &str, role| {
            let workspace = Owner::new(Name::parse(workspace).unwrap());
            Actor { workspace, role, ..Actor::local() }
        };
        assert!(actor("local", Role::Owner).may(Permission::Operate));
        assert!(!actor("local", Role::Admin).may(Permission::Operate));
        assert!(!actor("ada", Role::Owner).may(Permission::Operate));
        assert!(actor("ada", Role::Owner).may(Permission::ManageTokens));
    }

    #[test]
    fn an_actor_is_the_same_at_another_address() {
        let at_home = Actor::local().at(Some([192, 0, 2, 1].into()));
        assert!(at_home.is_same(&Actor::local()) && at_home != Actor::local());
        assert!(!at_home.is_same(&Actor::system(Owner::local())));
    }

    #[test]
    fn a_refusal_names_the_role_and_what_it_lacks() {
        let viewer = Actor { role: Role::Viewer, ..Actor::local() };
        let refused = viewer.require(Permission::ManageAgents).unwrap_err().to_string();
        assert!(refused.contains("viewer") && refused.contains("agents"), "{refused}");
        assert_eq!(viewer.require(Permission::Read), Ok(&viewer.workspace));
    }

    #[test]
    fn m11_a_scope_takes_away_what_the_role_has_and_adds_nothing() {
        let token = Actor { scopes: Scopes::READ_AND_RUN, ..Actor::local() };
        assert!(token.may(Permission::Post) && !token.may(Permission::Approve) && !token.may(Permission::Operate));
        let refused = token.require(Permission::Approve).unwrap_err().to_string();
        assert!(refused.contains("scope approve"), "{refused}");
        let viewer = Actor { role: Role::Viewer, ..Actor::local() };
        assert!(!viewer.may(Permission::Post), "all scopes, but not the role");
    }
}

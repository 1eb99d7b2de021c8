//! Scopes: what a token may be used for, besides what the role of its user allows.

use crate::permission::Permission;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// One use of a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// See the workspace.
    Read,
    /// Work with agents: rooms, messages, files, cancelling.
    Run,
    /// Answer the approvals of agents.
    Approve,
    /// Change agents, skills, MCP servers, providers and tokens, and operate the server.
    Admin,
}

impl Scope {
    pub const EVERY: [Self; 4] = [Self::Read, Self::Run, Self::Approve, Self::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// The scope that a permission needs.
    pub fn of(permission: Permission) -> Self {
        match permission {
            Permission::Read => Self::Read,
            Permission::Post => Self::Run,
            Permission::Approve => Self::Approve,
            Permission::ManageTokens
            | Permission::ManageAgents
            | Permission::ManageSkills
            | Permission::ManageMcpServers
            | Permission::ManageProviders
            | Permission::ManageBudgets
            | Permission::ReadAudit
            | Permission::Purge
            | Permission::Operate => Self::Admin,
        }
    }
}

/// A set of scopes; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scopes(u8);

impl Scopes {
    pub const ALL: Self = Self(0b1111);
    /// For a new token, unless its creator asks for more: reads and runs, but neither approves nor configures.
    pub const READ_AND_RUN: Self = Self(0b0011);

    pub fn new(scopes: &[Scope]) -> Option<Self> {
        let bits = scopes.iter().fold(0, |bits, scope| bits | 1 << *scope as u8);
        (bits != 0).then_some(Self(bits))
    }

    pub fn contains(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u8 != 0
    }

    /// Whether these are all among the others.
    pub fn is_within(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }

    pub fn to_vec(self) -> Vec<Scope> {
        Scope::EVERY.into_iter().filter(|scope| self.contains(*scope)).collect()
    }
}

/// As stored and as given on the command line: `read,run`.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.to_vec().into_iter().map(Scope::as_str).collect();
        f.write_str(&names.join(","))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a list of scopes; the scopes are read, run, approve and admin, or all")]
pub struct UnknownScopes(String);

impl FromStr for Scopes {
    type Err = UnknownScopes;

    fn from_str(text: &str) -> Result<Self, UnknownScopes> {
        if text == "all" {
            return Ok(Self::ALL);
        }
        let find = |name: &str| Scope::EVERY.into_iter().find(|scope| scope.as_str() == name.trim());
        let scopes: Option<Vec<Scope>> = text.split(',').map(find).collect();
        scopes.and_then(|scopes| Self::new(&scopes)).ok_or_else(|| UnknownScopes(text.to_owned()))
    }
}

impl Serialize for Scopes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_vec().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Scopes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scopes = Vec::<Scope>::deserialize(deserializer)?;
        Self::new(&scopes).ok_or_else(|| de::Error::custom("at least one scope is needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Scope, Scopes};
    use crate::permission::Permission;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for (text, scopes) in [
            ("read,run,approve,admin", Scopes::ALL),
            ("read,run", Scopes::READ_AND_RUN),
            ("approve", Scopes::new(&[Scope::Approve]).unwrap()),
        ] {
            assert_eq!((text.parse(), scopes.to_string().as_str()), (Ok(scopes), text));
            assert_eq!(serde_json::from_value::<Scopes>(serde_json::to_value(scopes).unwrap()).unwrap(), scopes);
        }
        assert_eq!("all".parse(), Ok(Scopes::ALL));
        assert_eq!("run, read".parse(), Ok(Scopes::READ_AND_RUN));
        for bad in ["", "root", "read,", "read,root"] {
            assert!(bad.parse::<Scopes>().is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Scopes>("[]").is_err());
    }

    /// The whole table, written out: a change of it is a decision.
    #[test]
    fn m11_a_default_token_reads_and_runs_only() {
        let allowed: Vec<Permission> =
            Permission::ALL.into_iter().filter(|it| Scopes::READ_AND_RUN.contains(Scope::of(*it))).collect();
        assert_eq!(allowed, [Permission::Read, Permission::Post]);
        assert!(Permission::ALL.into_iter().all(|it| Scopes::ALL.contains(Scope::of(it))));
        assert!(Scopes::READ_AND_RUN.is_within(Scopes::ALL) && !Scopes::ALL.is_within(Scopes::READ_AND_RUN));
    }
}

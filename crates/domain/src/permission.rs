//! Roles and what they may do. This is the only table of it; routes and commands name a [`Permission`].

use crate::scope::Scope;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// The role of a user in a workspace. Each includes what the one before it may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads everything and changes nothing.
    Viewer,
    /// Works with agents: rooms, messages, files, approvals.
    Member,
    /// Configures the workspace: agents, skills, MCP servers, providers, budgets.
    Admin,
    /// May do everything.
    Owner,
}

/// What a route or a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Permission {
    /// See the workspace: rooms, runs, agents, skills, MCP servers, usage.
    Read,
    /// Create and change rooms, post messages, upload files, cancel runs.
    Post,
    /// Answer the approvals of agents, and withdraw what was allowed permanently.
    Approve,
    /// Create and revoke one's own tokens.
    ManageTokens,
    ManageAgents,
    ManageSkills,
    /// Configure MCP servers, call their tools, and trust the `.mcp.json` of a room.
    ManageMcpServers,
    /// Set the keys, addresses and models of providers.
    ManageProviders,
    /// Limit what runs may cost.
    ManageBudgets,
    /// See who did what: changes, sign-ins, refused requests.
    ReadAudit,
    /// Erase what was deleted without waiting for the grace period.
    Purge,
    /// Act for the server itself: configure programs that it starts, see its log files and checks. Only in the
    /// operator's workspace.
    Operate,
}

/// The actor lacks a permission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Forbidden {
    #[error("your role in this workspace is {role}, which may not {}; ask an owner of the workspace", .permission.activity())]
    Role { role: Role, permission: Permission },
    /// The role has it, but the token is not for that.
    #[error(
        "your token may not {}: it lacks the scope {}; use one that has it",
        .permission.activity(),
        Scope::of(*.permission).as_str()
    )]
    Scope { permission: Permission },
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Member, Self::Admin, Self::Owner];

    /// Whether the role has a permission.
    pub fn grants(self, permission: Permission) -> bool {
        self >= permission.lowest_role()
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl Permission {
    pub const ALL: [Self; 12] = [
        Self::Read,
        Self::Post,
        Self::Approve,
        Self::ManageTokens,
        Self::ManageAgents,
        Self::ManageSkills,
        Self::ManageMcpServers,
        Self::ManageProviders,
        Self::ManageBudgets,
        Self::ReadAudit,
        Self::Purge,
        Self::Operate,
    ];

    /// The table: the lowest role that has the permission.
    fn lowest_role(self) -> Role {
        match self {
            Self::Read => Role::Viewer,
            Self::Post | Self::Approve | Self::ManageTokens => Role::Member,
            Self::ManageAgents
            | Self::ManageSkills
            | Self::ManageMcpServers
            | Self::ManageProviders
            | Self::ManageBudgets
            | Self::ReadAudit
            | Self::Purge => Role::Admin,
            Self::Operate => Role::Owner,
        }
    }

    /// What the permission allows, for people.
    fn activity(self) -> &'static str {
        match self {
            Self::Read => "read it",
            Self::Post => "post or change rooms",
            Self::Approve => "answer approvals",
            Self::ManageTokens => "manage tokens",
            Self::ManageAgents => "manage agents",
            Self::ManageSkills => "manage skills",
            Self::ManageMcpServers => "manage MCP servers",
            Self::ManageProviders => "manage providers",
            Self::ManageBudgets => "manage budgets",
            Self::ReadAudit => "read the audit log",
            Self::Purge => "purge what is deleted",
            Self::Operate => "operate the server",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not a role; the roles are owner, admin, member and viewer")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Permission, Role};

    /// The whole table, written out: a change of it is a decision.
    #[test]
    fn what_each_role_may_do() {
        let may = |role: Role| -> Vec<Permission> {
            Permission::ALL.into_iter().filter(|permission| role.grants(*permission)).collect()
        };
        let (viewer, member) = (may(Role::Viewer), may(Role::Member));
        assert_eq!(viewer, [Permission::Read]);
        assert_eq!(member, [Permission::Read, Permission::Post, Permission::Approve, Permission::ManageTokens]);
        let configures = [
            Permission::ManageAgents,
            Permission::ManageSkills,
            Permission::ManageMcpServers,
            Permission::ManageProviders,
            Permission::ManageBudgets,
            Permission::ReadAudit,
            Permission::Purge,
        ];
        assert_eq!(may(Role::Admin), [&member[..], &configures].concat());
        assert_eq!(may(Role::Owner), Permission::ALL);
    }

    #[test]
    fn a_role_is_read_as_it_is_written() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        assert!("root".parse::<Role>().is_err());
    }
}

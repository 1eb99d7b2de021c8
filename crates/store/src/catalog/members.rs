//! Workspaces, their users and the roles of these. A token acts as one user in one workspace.

use crate::{Store, StoreError, database::reading, error::Result, row::row};
use domain::{
    actor::{Actor, Credential, User},
    ids::UserId,
    name::Name,
    owner::Owner,
    permission::Role,
    scope::Scopes,
    time::Timestamp,
};
use uuid::Uuid;

/// The user that a new token is for, and the user's role in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub workspace: Owner,
    /// A user of this name is created if there is none.
    pub user: Name,
    /// The role to set. `None` keeps the role of a member; a new member gets `owner` in a new workspace, else `member`.
    pub role: Option<Role>,
}

impl Membership {
    /// A person alone, in the workspace of the same name.
    pub fn alone(workspace: &Owner) -> Self {
        Self { workspace: workspace.clone(), user: workspace.name().clone(), role: None }
    }
}

row! {
    /// A member of a workspace.
    pub(super) struct ActorRow {
        workspace: String,
        user_id: Uuid,
        user_name: String,
        role: String,
        scopes: String,
    }
}

impl ActorRow {
    pub(super) fn actor(self, credential: Credential) -> Result<Actor> {
        let name = Name::parse(&self.user_name).map_err(|error| StoreError::unreadable("a name").caused_by(error))?;
        Ok(Actor {
            workspace: super::tokens::parse_owner(&self.workspace)?,
            user: Some(User { id: UserId(self.user_id), name }),
            role: parse_role(&self.role)?,
            scopes: parse_scopes(&self.scopes)?,
            credential,
            address: None,
        })
    }
}

pub(super) fn parse_role(text: &str) -> Result<Role> {
    text.parse().map_err(|error: domain::permission::UnknownRole| StoreError::unreadable("a role").caused_by(error))
}

pub(super) fn parse_scopes(text: &str) -> Result<Scopes> {
    text.parse().map_err(|error: domain::scope::UnknownScopes| StoreError::unreadable("scopes").caused_by(error))
}

impl Store {
    /// Returns the role that a credential has now, if it is valid: `$1` is its id, `$2` the time.
    pub(super) async fn current_role(&self, statement: &'static str, id: Uuid) -> Result<Option<Role>> {
        let role: Option<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar(statement).bind(id).bind(Timestamp::now().as_millis()).fetch_optional(pool).await
        })?;
        role.as_deref().map(parse_role).transpose()
    }

    /// Returns the member of a workspace with this name.
    pub async fn member_named(&self, owner: &Owner, name: &Name) -> Result<Option<UserId>> {
        let id: Option<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT u.id FROM users u JOIN members m ON m.user_id = u.id WHERE m.workspace = $1 AND u.name = $2",
            )
            .bind(owner.as_str())
            .bind(name.as_str())
            .fetch_optional(pool)
            .await
        })?;
        Ok(id.map(UserId))
    }

    /// Returns the role of a user in a workspace.
    pub async fn role_of_member(&self, owner: &Owner, user: UserId) -> Result<Role> {
        let role: String = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT role FROM members WHERE workspace = $1 AND user_id = $2")
                .bind(owner.as_str())
                .bind(user.0)
                .fetch_one(pool)
                .await
        })?;
        parse_role(&role)
    }
}

/// Creates the workspace, the user and the membership as far as they are missing. Evaluates to the user's id.
macro_rules! ensure_member {
    ($transaction:ident, $member:expr, $now:expr) => {{
        let member: &$crate::catalog::members::Membership = $member;
        let created =
            sqlx::query("INSERT INTO workspaces (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
                .bind(member.workspace.as_str())
                .bind($now.as_millis())
                .execute(&mut *$transaction)
                .await?;
        sqlx::query("INSERT INTO users (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING")
            .bind(domain::ids::UserId::generate().0)
            .bind(member.user.as_str())
            .bind($now.as_millis())
            .execute(&mut *$transaction)
            .await?;
        let user: uuid::Uuid = sqlx::query_scalar("SELECT id FROM users WHERE name = $1")
            .bind(member.user.as_str())
            .fetch_one(&mut *$transaction)
            .await?;
        let is_new_workspace = created.rows_affected() > 0;
        let first = if is_new_workspace { domain::permission::Role::Owner } else { domain::permission::Role::Member };
        sqlx::query(
            "INSERT INTO members (workspace, user_id, role, created_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (workspace, user_id) DO NOTHING",
        )
        .bind(member.workspace.as_str())
        .bind(user)
        .bind(member.role.unwrap_or(first).as_str())
        .bind($now.as_millis())
        .execute(&mut *$transaction)
        .await?;
        if let Some(role) = member.role {
            sqlx::query("UPDATE members SET role = $3 WHERE workspace = $1 AND user_id = $2")
                .bind(member.workspace.as_str())
                .bind(user)
                .bind(role.as_str())
                .execute(&mut *$transaction)
                .await?;
        }
        domain::ids::UserId(user)
    }};
}
pub(super) use ensure_member;

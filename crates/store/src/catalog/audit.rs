//! The audit log: who changed what. Each entry is stored in the transaction of its change (invariant 22).

use crate::{
    Store, StoreError,
    commit::{Statement, without_nul},
    database::{reading, writing},
    error::Result,
    row::row,
};
use domain::{
    actor::Credential,
    audit::AuditEntry,
    ids::{RoomId, UserId},
    owner::Owner,
    permission::Role,
    time::Timestamp,
};
use std::time::Duration;
use uuid::Uuid;

/// How long an entry is kept, and how many the server keeps at most.
const LIFETIME: Duration = Duration::from_secs(400 * 24 * 3600);
const MAX_ENTRIES: i64 = 1_000_000;

const INSERT: &str = "INSERT INTO audit (workspace, user_id, role, credential, credential_id, action, object, \
     object_id, room_id, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// Stores an entry inside a transaction of the catalog.
macro_rules! store_audit {
    ($transaction:ident, $entry:expr, $now:expr) => {{
        let statement = $crate::catalog::audit::insert(&$entry, $now);
        let query = $crate::commit::bind_all!(sqlx::query(statement.sql), statement.values);
        query.execute(&mut *$transaction).await?;
    }};
}
pub(crate) use store_audit;

pub(crate) fn insert(entry: &AuditEntry, now: Timestamp) -> Statement {
    let AuditEntry { actor, action, object, object_id, room_id } = entry;
    let (credential, credential_id) = stored_credential(actor.credential);
    Statement::new(INSERT)
        .with(actor.workspace.as_str())
        .with(actor.user_id().map(|user| user.0))
        .with(actor.role.as_str())
        .with(credential)
        .with(credential_id)
        .with(action.as_str())
        .with(object.as_str())
        .with(without_nul(object_id))
        .with(room_id.map(|room| room.0))
        .with(now.as_millis())
}

fn stored_credential(credential: Credential) -> (&'static str, Option<Uuid>) {
    match credential {
        Credential::LocalKey => ("local_key", None),
        Credential::NoAuth => ("no_auth", None),
        Credential::Token(token) => ("token", Some(token.0)),
        Credential::BrowserSession { session, .. } => ("browser_session", Some(session.0)),
        Credential::Agent(run) => ("agent", Some(run.0)),
        Credential::System => ("system", None),
    }
}

/// A stored entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    pub user_id: Option<UserId>,
    pub role: Role,
    /// `local_key`, `no_auth`, `token`, `browser_session`, `agent` or `system`; earlier versions stored `local`.
    pub credential: String,
    /// The id of the token, the browser session or the agent's run.
    pub credential_id: Option<Uuid>,
    pub action: String,
    pub object: String,
    pub object_id: String,
    pub room_id: Option<RoomId>,
    pub created_at: Timestamp,
}

row! {
    struct AuditRow {
        user_id: Option<Uuid>,
        role: String,
        credential: String,
        credential_id: Option<Uuid>,
        action: String,
        object: String,
        object_id: String,
        room_id: Option<Uuid>,
        created_at: i64,
    }
}

impl TryFrom<AuditRow> for AuditRecord {
    type Error = StoreError;
    fn try_from(row: AuditRow) -> Result<Self> {
        let AuditRow { credential, credential_id, action, object, object_id, .. } = row;
        Ok(Self {
            user_id: row.user_id.map(UserId),
            role: super::members::parse_role(&row.role)?,
            credential,
            credential_id,
            action,
            object,
            object_id,
            room_id: row.room_id.map(RoomId),
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

impl Store {
    /// Returns the newest entries of a workspace, newest first.
    pub async fn audit_log(&self, owner: &Owner, limit: u32) -> Result<Vec<AuditRecord>> {
        let rows: Vec<AuditRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT user_id, role, credential, credential_id, action, object, object_id, room_id, created_at \
                 FROM audit WHERE workspace = $1 ORDER BY id DESC LIMIT $2",
            )
            .bind(owner.as_str())
            .bind(i64::from(limit))
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(AuditRecord::try_from).collect()
    }

    /// Deletes entries that are too old or too many.
    pub async fn delete_expired_audit(&self) -> Result<()> {
        let before = Timestamp::now().as_millis() - i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        writing!(self.database(), |transaction| {
            // Ids ascend with time, so the first young entry is found by passing only the ones to delete.
            sqlx::query(
                "DELETE FROM audit WHERE id < COALESCE((SELECT id FROM audit WHERE created_at >= $1 ORDER BY id LIMIT 1), 0) \
                 OR id <= (SELECT MAX(id) FROM audit) - $2",
            )
            .bind(before)
            .bind(MAX_ENTRIES)
            .execute(&mut *transaction)
            .await?;
        });
        Ok::<(), StoreError>(())
    }
}

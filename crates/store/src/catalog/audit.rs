//! The audit log: who changed what, and from where. Each entry is stored in the transaction of its change (invariant 22);
//! counted entries by [`crate::counted_audit`].

use crate::{
    Store, StoreError,
    commit::{Statement, bind_all, without_nul},
    database::{reading, writing},
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    actor::Credential,
    audit::{AuditEntry, CountedEntry},
    ids::{RoomId, UserId},
    owner::Owner,
    permission::Role,
    time::Timestamp,
};
use std::{net::IpAddr, time::Duration};
use uuid::Uuid;

/// How long an entry is kept, and how many at most, of one workspace and of all.
const LIFETIME: Duration = Duration::from_secs(400 * 24 * 3600);
const LIMITS: AuditLimits = AuditLimits { workspace: 200_000, total: 1_000_000 };

macro_rules! insert_audit {
    ($rest:literal) => {
        concat!(
            "INSERT INTO audit (workspace, user_id, role, credential, credential_id, action, object, object_id, room_id, ",
            "created_at, address, detail, count) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            $rest
        )
    };
}
const INSERT: &str = insert_audit!("");
const INSERT_RETURNING: &str = insert_audit!(" RETURNING id");
/// Stored as the role and the credential of an entry without a known author.
const NONE: &str = "none";

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
    let AuditEntry { actor, action, object, object_id, room_id, detail } = entry;
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
        .with(actor.address.map(|address| address.to_string()))
        .with(detail.as_ref().map(ToString::to_string))
        .with(1_i64)
}

fn insert_counted(entry: &CountedEntry, count: i64, now: Timestamp) -> Statement {
    let by = entry.by.as_ref();
    let (credential, credential_id) = by.map_or((NONE, None), |author| stored_credential(author.credential));
    Statement::new(INSERT)
        .with(entry.workspace.as_str())
        .with(by.and_then(|author| author.user_id).map(|user| user.0))
        .with(by.map_or(NONE, |author| author.role.as_str()))
        .with(credential)
        .with(credential_id)
        .with(entry.action.as_str())
        .with(entry.object.as_str())
        .with(without_nul(&entry.object_id))
        .with(None::<Uuid>)
        .with(now.as_millis())
        .with(entry.address.map(|address| address.to_string()))
        .with(entry.detail.as_ref().map(ToString::to_string))
        .with(count)
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
    /// Ascends with time.
    pub id: i64,
    pub workspace: String,
    pub user_id: Option<UserId>,
    /// The present name of the user.
    pub user_name: Option<String>,
    /// `None` if nobody was authenticated.
    pub role: Option<Role>,
    /// `local_key`, `no_auth`, `token`, `browser_session`, `agent`, `system` or `none`; earlier versions stored `local`.
    pub credential: String,
    /// The id of the token, the browser session or the agent's run.
    pub credential_id: Option<Uuid>,
    pub action: String,
    pub object: String,
    pub object_id: String,
    pub room_id: Option<RoomId>,
    pub address: Option<IpAddr>,
    /// How often it happened, within a minute.
    pub count: u64,
    pub detail: Option<serde_json::Value>,
    pub created_at: Timestamp,
}

/// Which entries to return, newest first. What is not set matches everything.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only entries before this id.
    pub before: Option<i64>,
    pub action: Option<String>,
    pub object: Option<String>,
    pub user_id: Option<UserId>,
    pub limit: u32,
}

row! {
    struct AuditRow {
        id: i64,
        workspace: String,
        user_id: Option<Uuid>,
        user_name: Option<String>,
        role: String,
        credential: String,
        credential_id: Option<Uuid>,
        action: String,
        object: String,
        object_id: String,
        room_id: Option<Uuid>,
        address: Option<String>,
        detail: Option<String>,
        count: i64,
        created_at: i64,
    }
}

impl TryFrom<AuditRow> for AuditRecord {
    type Error = StoreError;
    fn try_from(row: AuditRow) -> Result<Self> {
        let AuditRow { id, workspace, user_name, credential, credential_id, action, object, object_id, .. } = row;
        let role = Some(row.role.as_str()).filter(|role| *role != NONE);
        Ok(Self {
            id,
            workspace,
            user_id: row.user_id.map(UserId),
            user_name,
            role: role.map(super::members::parse_role).transpose()?,
            credential,
            credential_id,
            action,
            object,
            object_id,
            room_id: row.room_id.map(RoomId),
            address: row.address.and_then(|address| address.parse().ok()),
            count: unsigned(row.count)?,
            detail: row.detail.as_deref().map(serde_json::from_str).transpose()?,
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

/// $1 before which id, $2 action, $3 object, $4 user, $5 limit.
macro_rules! select_audit {
    ($condition:literal) => {
        concat!(
            "SELECT a.id, a.workspace, a.user_id, u.name AS user_name, a.role, a.credential, a.credential_id, a.action, ",
            "a.object, a.object_id, a.room_id, a.address, a.detail, a.count, a.created_at ",
            "FROM audit a LEFT JOIN users u ON u.id = a.user_id WHERE ",
            $condition,
            "a.id < $1 AND ($2 IS NULL OR a.action = $2) AND ($3 IS NULL OR a.object = $3) ",
            "AND ($4 IS NULL OR a.user_id = $4) ORDER BY a.id DESC LIMIT $5"
        )
    };
}

impl Store {
    /// Stores an entry for a change outside of the database.
    pub async fn record_audit(&self, entry: AuditEntry) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            store_audit!(transaction, entry, now);
        });
        Ok(())
    }

    /// Returns the newest entries of a workspace, newest first.
    pub async fn audit_log(&self, owner: &Owner, limit: u32) -> Result<Vec<AuditRecord>> {
        self.filtered_audit_log(Some(owner), &AuditFilter { limit, ..AuditFilter::default() }).await
    }

    /// Returns entries of a workspace, or of all of them, newest first. All is only for the operator.
    pub async fn filtered_audit_log(&self, owner: Option<&Owner>, filter: &AuditFilter) -> Result<Vec<AuditRecord>> {
        let before = filter.before.unwrap_or(i64::MAX);
        // Two statements, so that each uses its index: by workspace, or by id alone.
        let sql = match owner {
            Some(_) => select_audit!("a.workspace = $6 AND "),
            None => select_audit!(""),
        };
        let rows: Vec<AuditRow> = reading!(self.database(), |pool| {
            let query = sqlx::query_as(sql)
                .bind(before)
                .bind(filter.action.as_deref())
                .bind(filter.object.as_deref())
                .bind(filter.user_id.map(|user| user.0))
                .bind(i64::from(filter.limit));
            match owner {
                Some(owner) => query.bind(owner.as_str()).fetch_all(pool).await,
                None => query.fetch_all(pool).await,
            }
        })?;
        rows.into_iter().map(AuditRecord::try_from).collect()
    }

    /// Stores a counted entry and returns its id.
    pub(crate) async fn store_counted(&self, entry: &CountedEntry, count: u64) -> Result<i64> {
        let statement = insert_counted(entry, signed(count), Timestamp::now());
        let id: i64 = writing!(self.database(), |transaction| {
            let query = bind_all!(sqlx::query_scalar(INSERT_RETURNING), statement.values);
            query.fetch_one(&mut *transaction).await?
        });
        Ok(id)
    }

    pub(crate) async fn add_to_count(&self, id: i64, more: u64) -> Result<()> {
        writing!(self.database(), |transaction| {
            sqlx::query("UPDATE audit SET count = count + $2 WHERE id = $1")
                .bind(id)
                .bind(signed(more))
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<(), StoreError>(())
    }

    /// Deletes entries that are too old or too many.
    pub async fn delete_expired_audit(&self) -> Result<()> {
        self.delete_audit_beyond(LIMITS).await
    }

    /// The same with other limits than the server's own.
    pub async fn delete_audit_beyond(&self, limits: AuditLimits) -> Result<()> {
        let before = Timestamp::now().as_millis() - i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
        writing!(self.database(), |transaction| {
            // Ids ascend with time, so the first young entry is found by passing only the ones to delete.
            sqlx::query(
                "DELETE FROM audit WHERE id < COALESCE((SELECT id FROM audit WHERE created_at >= $1 ORDER BY id LIMIT 1), 0)",
            )
            .bind(before)
            .execute(&mut *transaction)
            .await?;
        });
        let counts: Vec<(String, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT workspace, COUNT(*) FROM audit GROUP BY workspace").fetch_all(pool).await
        })?;
        let kept = limits.kept_of_each(counts.iter().map(|(_, count)| *count).collect());
        for (workspace, _) in counts.iter().filter(|(_, count)| *count > kept) {
            writing!(self.database(), |transaction| {
                sqlx::query(
                    "DELETE FROM audit WHERE workspace = $1 AND id <= \
                     (SELECT id FROM audit WHERE workspace = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)",
                )
                .bind(workspace)
                .bind(kept)
                .execute(&mut *transaction)
                .await?;
            });
        }
        Ok::<(), StoreError>(())
    }
}

/// How many entries are kept at most.
#[derive(Debug, Clone, Copy)]
pub struct AuditLimits {
    pub workspace: i64,
    pub total: i64,
}

impl AuditLimits {
    /// How many entries each workspace keeps. Only those that have many give way when all together have too many.
    fn kept_of_each(self, mut counts: Vec<i64>) -> i64 {
        counts.sort_unstable();
        let mut left = self.total;
        for (index, count) in counts.iter().enumerate() {
            let share = left / (counts.len() - index) as i64;
            if *count > share {
                return share.clamp(1, self.workspace);
            }
            left -= count;
        }
        self.workspace
    }
}

#[cfg(test)]
mod tests {
    use super::AuditLimits;

    #[test]
    fn m10_a_noisy_workspace_gives_way_and_a_quiet_one_keeps_its_entries() {
        let kept = |counts: &[i64]| AuditLimits { workspace: 50, total: 100 }.kept_of_each(counts.to_vec());
        assert_eq!(kept(&[]), 50);
        assert_eq!(kept(&[10, 90]), 50, "the limit of one workspace");
        assert_eq!(kept(&[5, 1000, 40, 40]), 31, "5 are kept, and the others share 95");
        assert_eq!(kept(&[30, 30, 30]), 50, "all of them");
        assert_eq!(kept(&[2; 200]), 1, "the newest of each");
    }
}

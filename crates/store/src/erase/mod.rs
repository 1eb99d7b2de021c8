//! Erases what was deleted (invariant 30): a deleted room, agent or project is a row of `erasures` from its delete until nothing of
//! it is left. Rows are erased in small transactions that can be repeated, so a crash or a second server does no harm.
//!
//! This module must not know files: it tells the engine which there are. Start at [`Store::due_erasures`]; `rooms`,
//! `agents` and `projects` hold the statements, `space` returns the space to the file system.

mod agents;
mod projects;
mod rooms;
mod space;

use crate::{
    Store, StoreError,
    catalog::audit::store_audit,
    database::{reading, writing},
    error::Result,
    row::row,
};
use agents::AGENT_ROWS;
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{AgentId, ProjectId, RoomId, UploadId},
    name::Name,
    owner::Owner,
    time::Timestamp,
};
use projects::PROJECT_ROWS;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

/// How long other servers have to remove their files of what is erased.
const KEPT_FOR_OTHERS: Duration = Duration::from_secs(30 * 24 * 3600);
/// Revoked and expired tokens that are deleted in one transaction.
const TOKENS_PER_BATCH: i64 = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErasedObject {
    Room(RoomId),
    Agent(AgentId),
    Project(ProjectId),
}

impl ErasedObject {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Room(_) => "room",
            Self::Agent(_) => "agent",
            Self::Project(_) => "project",
        }
    }

    pub(crate) fn id(self) -> Uuid {
        match self {
            Self::Room(room) => room.0,
            Self::Agent(agent) => agent.0,
            Self::Project(project) => project.0,
        }
    }

    fn audited(self) -> AuditedObject {
        match self {
            Self::Room(_) => AuditedObject::Room,
            Self::Agent(_) => AuditedObject::Agent,
            Self::Project(_) => AuditedObject::Project,
        }
    }
}

/// What a deleted room has on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasedFiles {
    /// The agents that answered there: their programs keep conversations in their home folders.
    pub agents: Vec<AgentId>,
    /// The ids of the providers' sessions.
    pub sessions: Vec<String>,
    /// Attachments that no other room refers to.
    pub uploads: Vec<UploadId>,
}

/// A deleted object whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erasure {
    pub object: ErasedObject,
    pub owner: Owner,
    /// `None` until it is known.
    pub files: Option<ErasedFiles>,
}

/// What a step of an erasure has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureStep {
    /// There is more to erase.
    More,
    /// No row is left.
    RowsErased,
    /// It still has an unfinished run.
    Waiting,
}

/// The statements that erase an object whose rows are few enough for one transaction. `$1` is its id.
struct ErasedRows {
    unfinished_run: &'static str,
    statements: &'static [&'static str],
}

row! {
    struct ErasureRow {
        id: Uuid,
        kind: String,
        owner: String,
        files: Option<String>,
    }
}

impl TryFrom<ErasureRow> for Erasure {
    type Error = StoreError;
    fn try_from(row: ErasureRow) -> Result<Self> {
        let object = match row.kind.as_str() {
            "room" => ErasedObject::Room(RoomId(row.id)),
            "agent" => ErasedObject::Agent(AgentId(row.id)),
            "project" => ErasedObject::Project(ProjectId(row.id)),
            other => return Err(StoreError::unreadable(format!("the kind {other:?} of an erasure"))),
        };
        let owner = Name::parse(&row.owner).map_err(|error| StoreError::unreadable("a name").caused_by(error))?;
        let files = row.files.as_deref().map(serde_json::from_str).transpose()?;
        Ok(Self { object, owner: Owner::new(owner), files })
    }
}

/// Adds the row of a deleted object, in the transaction of its delete.
macro_rules! store_erasure {
    ($transaction:ident, $object:expr, $owner:expr, $purge:expr, $now:expr) => {{
        let object: $crate::erase::ErasedObject = $object;
        sqlx::query($crate::erase::INSERT)
            .bind(object.id())
            .bind(object.kind())
            .bind($owner.as_str())
            .bind($now.as_millis())
            .bind(i64::from($purge))
            .execute(&mut *$transaction)
            .await?;
    }};
}
pub(crate) use store_erasure;

/// A second delete may only hurry: it purges what waits.
pub(crate) const INSERT: &str = "INSERT INTO erasures (id, kind, owner, deleted_at, purge) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (id) DO UPDATE SET purge = CASE WHEN excluded.purge > erasures.purge THEN excluded.purge \
     ELSE erasures.purge END";

impl Store {
    /// Returns deleted objects whose grace period is over, oldest first, without the first `skipped` ones.
    pub async fn due_erasures(&self, grace: Duration, skipped: u32, limit: u32) -> Result<Vec<Erasure>> {
        let before = millis_ago(grace);
        let rows: Vec<ErasureRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, kind, owner, files FROM erasures WHERE erased_at IS NULL AND (deleted_at <= $1 OR purge = 1) \
                 ORDER BY deleted_at, id LIMIT $2 OFFSET $3",
            )
            .bind(before)
            .bind(i64::from(limit))
            .bind(i64::from(skipped))
            .fetch_all(pool)
            .await
        })?;
        rows.into_iter().map(Erasure::try_from).collect()
    }

    /// Returns what other servers have erased lately, whose files may be on this one.
    pub async fn finished_erasures(&self) -> Result<Vec<Erasure>> {
        let rows: Vec<ErasureRow> = reading!(self.database(), |pool| {
            sqlx::query_as("SELECT id, kind, owner, files FROM erasures WHERE erased_at IS NOT NULL")
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(Erasure::try_from).collect()
    }

    /// Finds out which files there are and stores it, before the rows that tell it are erased.
    pub async fn find_erased_files(&self, erasure: &Erasure) -> Result<ErasedFiles> {
        if let Some(files) = &erasure.files {
            return Ok(files.clone());
        }
        let files = match erasure.object {
            ErasedObject::Room(room) => self.files_of_room(&erasure.owner, room).await?,
            ErasedObject::Agent(_) | ErasedObject::Project(_) => ErasedFiles::default(),
        };
        let json = serde_json::to_string(&files)?;
        writing!(self.database(), |transaction| {
            sqlx::query("UPDATE erasures SET files = $2 WHERE id = $1")
                .bind(erasure.object.id())
                .bind(json.as_str())
                .execute(&mut *transaction)
                .await?;
        });
        Ok(files)
    }

    /// Erases a part of the rows, in one short transaction.
    pub async fn erase_rows(&self, erasure: &Erasure, files: &ErasedFiles) -> Result<ErasureStep> {
        match erasure.object {
            ErasedObject::Room(room) => self.erase_room_rows(&erasure.owner, room, files).await,
            ErasedObject::Agent(_) => self.erase_when_idle(erasure, &AGENT_ROWS).await,
            ErasedObject::Project(_) => self.erase_when_idle(erasure, &PROJECT_ROWS).await,
        }
    }

    /// Erases the rows of an object that has no unfinished run, and the stored result of the request that created it.
    async fn erase_when_idle(&self, erasure: &Erasure, rows: &ErasedRows) -> Result<ErasureStep> {
        let id = erasure.object.id();
        let unfinished: Option<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(rows.unfinished_run).bind(id).fetch_optional(pool).await
        })?;
        if unfinished.is_some() {
            return Ok(ErasureStep::Waiting);
        }
        writing!(self.database(), |transaction| {
            for statement in rows.statements {
                sqlx::query(*statement).bind(id).execute(&mut *transaction).await?;
            }
            sqlx::query("DELETE FROM idempotency WHERE owner = $1 AND result = $2")
                .bind(erasure.owner.as_str())
                .bind(id.to_string())
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<_, StoreError>(ErasureStep::RowsErased)
    }

    /// Ends an erasure: nothing of the object is left here.
    pub async fn finish_erasure(&self, erasure: &Erasure) -> Result<()> {
        let (id, now) = (erasure.object.id(), Timestamp::now());
        let actor = Actor::system(erasure.owner.clone());
        let entry = AuditEntry::new(&actor, AuditAction::Erase, erasure.object.audited(), id);
        let is_only_server = self.is_only_server();
        writing!(self.database(), |transaction| {
            let end = match is_only_server {
                true => sqlx::query("DELETE FROM erasures WHERE id = $1").bind(id),
                false => sqlx::query("UPDATE erasures SET erased_at = $2 WHERE id = $1 AND erased_at IS NULL")
                    .bind(id)
                    .bind(now.as_millis()),
            };
            let ended = end.execute(&mut *transaction).await?;
            // Another server was faster, and has recorded it.
            if ended.rows_affected() > 0 {
                store_audit!(transaction, entry, now);
            }
        });
        Ok(())
    }

    /// Deletes tokens that were revoked or expired longer than the grace period ago, and what other servers need no more.
    pub async fn delete_ended_tokens(&self, grace: Duration) -> Result<()> {
        let (before, kept) = (millis_ago(grace), millis_ago(KEPT_FOR_OTHERS));
        writing!(self.database(), |transaction| {
            let ended: Vec<Uuid> = sqlx::query_scalar(
                "SELECT id FROM tokens WHERE COALESCE(revoked_at, expires_at) <= $1 ORDER BY id LIMIT $2",
            )
            .bind(before)
            .bind(TOKENS_PER_BATCH)
            .fetch_all(&mut *transaction)
            .await?;
            for id in ended {
                for rows in ["DELETE FROM visits WHERE token_id = $1", "DELETE FROM tokens WHERE id = $1"] {
                    sqlx::query(rows).bind(id).execute(&mut *transaction).await?;
                }
            }
            sqlx::query("DELETE FROM erasures WHERE erased_at <= $1").bind(kept).execute(&mut *transaction).await?;
        });
        Ok::<(), StoreError>(())
    }

    /// Notified when something was deleted on this server.
    pub fn deleted(&self) -> &Notify {
        self.delete_notify()
    }
}

fn millis_ago(age: Duration) -> i64 {
    Timestamp::now().as_millis().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

//! Projects, and what is deleted with them.

use super::{audit::store_audit, idempotency::store_key, owned::must_exist};
use crate::{
    IdempotentRequest, Store, StoreError,
    commit::{Refusal, Statement},
    database::{reading, writing},
    erase::{ErasedObject, store_erasure},
    error::Result,
    notify::OwnerList,
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{ProjectId, RoomId},
    name::Name,
    owner::Owner,
    project::{Project, ProjectSettings},
    time::Timestamp,
};
use serde_json::json;
use uuid::Uuid;

row! {
    struct ProjectRow {
        id: Uuid,
        name: String,
        folder: Option<String>,
        settings: String,
        created_at: i64,
        updated_at: i64,
    }
}

impl TryFrom<ProjectRow> for Project {
    type Error = StoreError;
    fn try_from(row: ProjectRow) -> Result<Self> {
        Ok(Self {
            id: ProjectId(row.id),
            name: Name::parse(&row.name).map_err(|error| StoreError::unreadable("a name").caused_by(error))?,
            folder: row.folder,
            settings: serde_json::from_str(&row.settings)?,
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        })
    }
}

macro_rules! select_projects {
    ($rest:literal) => {
        concat!("SELECT p.id, p.name, p.folder, p.settings, p.created_at, p.updated_at FROM projects p ", $rest)
    };
}

const INSERT: &str = "INSERT INTO projects (id, owner, name, folder, settings, created_at, updated_at) \
     SELECT $1, $2, $3, $4, $5, $6, $6 WHERE (SELECT COUNT(*) FROM projects WHERE owner = $2 AND deleted_at IS NULL) < $7";

/// Stores a new project, unless the workspace has `limit` of them.
pub(crate) fn create(owner: &Owner, project: &Project, limit: usize) -> Result<Statement> {
    Ok(Statement::new(INSERT)
        .with(project.id.0)
        .with(owner.as_str())
        .with(project.name.as_str())
        .with(project.folder.clone())
        .with(serde_json::to_string(&project.settings)?)
        .with(project.created_at.as_millis())
        .with(i64::try_from(limit).unwrap_or(i64::MAX))
        .must_change_or(Refusal::ProjectLimit))
}

/// Holds the project of a new room until the commit, so that a delete of the project sees the room.
pub(crate) fn hold(owner: &Owner, project: ProjectId) -> Statement {
    Statement::new("UPDATE projects SET owner = owner WHERE id = $1 AND owner = $2 AND deleted_at IS NULL")
        .with(project.0)
        .with(owner.as_str())
        .must_change_or(Refusal::NotFound)
}

impl Store {
    /// Returns all projects of a workspace, newest first.
    pub async fn projects(&self, owner: &Owner) -> Result<Vec<Project>> {
        let rows: Vec<ProjectRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_projects!("WHERE p.owner = $1 AND p.deleted_at IS NULL ORDER BY p.id DESC"))
                .bind(owner.as_str())
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(Project::try_from).collect()
    }

    pub async fn project(&self, owner: &Owner, id: ProjectId) -> Result<Project> {
        let row: ProjectRow = reading!(self.database(), |pool| {
            sqlx::query_as(select_projects!("WHERE p.id = $1 AND p.owner = $2 AND p.deleted_at IS NULL"))
                .bind(id.0)
                .bind(owner.as_str())
                .fetch_one(pool)
                .await
        })?;
        row.try_into()
    }

    /// Returns the project of a room, also while both are being erased; `None` if the room has none.
    pub async fn project_of_room(&self, owner: &Owner, room: RoomId) -> Result<Option<Project>> {
        let project: Option<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT project_id FROM rooms WHERE id = $1 AND owner = $2")
                .bind(room.0)
                .bind(owner.as_str())
                .fetch_one(pool)
                .await
        })?;
        match project {
            Some(id) => self.any_project(owner, ProjectId(id)).await,
            None => Ok(None),
        }
    }

    /// Returns a project, also a deleted one until it is erased.
    pub async fn any_project(&self, owner: &Owner, id: ProjectId) -> Result<Option<Project>> {
        let row: Option<ProjectRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_projects!("WHERE p.id = $1 AND p.owner = $2"))
                .bind(id.0)
                .bind(owner.as_str())
                .fetch_optional(pool)
                .await
        })?;
        row.map(Project::try_from).transpose()
    }

    /// Returns the rooms of a project, newest first.
    pub async fn rooms_of_project(&self, owner: &Owner, id: ProjectId) -> Result<Vec<RoomId>> {
        let rooms: Vec<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT id FROM rooms WHERE project_id = $1 AND owner = $2 AND deleted_at IS NULL ORDER BY id DESC",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        Ok(rooms.into_iter().map(RoomId).collect())
    }

    /// Stores a new project, unless the workspace has `limit` of them.
    pub async fn create_project(
        &self,
        actor: &Actor,
        project: &Project,
        limit: usize,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, project.created_at);
        let settings = serde_json::to_string(&project.settings)?;
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, project.id, now);
            store_audit!(transaction, audit(actor, AuditAction::Create, project), now);
            let inserted = sqlx::query(INSERT)
                .bind(project.id.0)
                .bind(owner.as_str())
                .bind(project.name.as_str())
                .bind(project.folder.as_deref())
                .bind(settings.as_str())
                .bind(now.as_millis())
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
                .execute(&mut *transaction)
                .await?;
            if inserted.rows_affected() == 0 {
                let detail = format!("this workspace has {limit} projects, the most it may have; delete some");
                return Err(StoreError::LimitReached(detail));
            }
        });
        Ok(())
    }

    /// Replaces the name and the settings of a project.
    pub async fn update_project(
        &self,
        actor: &Actor,
        id: ProjectId,
        name: &Name,
        settings: &ProjectSettings,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        let json = serde_json::to_string(settings)?;
        let entry = AuditEntry::new(actor, AuditAction::Update, AuditedObject::Project, id)
            .with_detail(json!({"sandbox": settings.sandbox, "network": settings.network}));
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            let changed = sqlx::query(
                "UPDATE projects SET name = $3, settings = $4, updated_at = $5 \
                 WHERE id = $1 AND owner = $2 AND deleted_at IS NULL",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .bind(name.as_str())
            .bind(json.as_str())
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await?;
            must_exist(changed.rows_affected())?;
            store_audit!(transaction, entry, now);
        });
        Ok(())
    }

    /// Deletes a project together with its rooms. They are erased when the grace period is over; with `purge` at once,
    /// also if they are deleted already.
    pub async fn delete_project(
        &self,
        actor: &Actor,
        id: ProjectId,
        purge: bool,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let (owner, now) = (&actor.workspace, Timestamp::now());
        let action = if purge { AuditAction::Purge } else { AuditAction::Delete };
        let delete = match purge {
            true => "UPDATE projects SET deleted_at = COALESCE(deleted_at, $3) WHERE id = $1 AND owner = $2",
            false => "UPDATE projects SET deleted_at = $3 WHERE id = $1 AND owner = $2 AND deleted_at IS NULL",
        };
        let rooms = match purge {
            true => {
                "INSERT INTO erasures (id, kind, owner, deleted_at, purge) \
                 SELECT id, 'room', owner, $3, 1 FROM rooms WHERE project_id = $1 AND owner = $2 \
                 ON CONFLICT (id) DO UPDATE SET purge = 1"
            }
            false => {
                "INSERT INTO erasures (id, kind, owner, deleted_at, purge) \
                 SELECT id, 'room', owner, $3, 0 FROM rooms \
                 WHERE project_id = $1 AND owner = $2 AND deleted_at IS NULL ON CONFLICT (id) DO NOTHING"
            }
        };
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, id, now);
            // The project first: a room that is being created in it holds its row.
            let deleted = sqlx::query(delete).bind(id.0).bind(owner.as_str()).bind(now.as_millis());
            must_exist(deleted.execute(&mut *transaction).await?.rows_affected())?;
            store_erasure!(transaction, ErasedObject::Project(id), owner, purge, now);
            let erased = sqlx::query(rooms).bind(id.0).bind(owner.as_str()).bind(now.as_millis());
            let rooms = erased.execute(&mut *transaction).await?.rows_affected();
            sqlx::query("UPDATE rooms SET deleted_at = $3 WHERE project_id = $1 AND owner = $2 AND deleted_at IS NULL")
                .bind(id.0)
                .bind(owner.as_str())
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            let entry = AuditEntry::new(actor, action, AuditedObject::Project, id).with_detail(json!({"rooms": rooms}));
            store_audit!(transaction, entry, now);
        });
        self.delete_notify().notify_one();
        self.list_changed(owner, OwnerList::Rooms);
        Ok(())
    }
}

fn audit(actor: &Actor, action: AuditAction, project: &Project) -> AuditEntry {
    let detail = json!({
        "folder": project.folder, "sandbox": project.settings.sandbox, "network": project.settings.network,
    });
    AuditEntry::new(actor, action, AuditedObject::Project, project.id).with_detail(detail)
}

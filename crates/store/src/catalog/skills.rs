//! Skills and their versions. A version never changes; the newest [`KEPT_VERSIONS`] are kept.

use super::{
    audit::store_audit,
    idempotency::store_key,
    skill_files::{FileRow, SkillFilesChange, change_files},
};
use crate::{
    IdempotentRequest, Store, StoreError,
    database::{reading, snapshot, writing},
    error::Result,
    notify::OwnerList,
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::SkillId,
    owner::Owner,
    skill::{FileEntry, Skill, SkillName, SkillRequests, SkillSpec},
    time::Timestamp,
};
use uuid::Uuid;

const MAX_SKILLS: i64 = 1000;
pub(super) const KEPT_VERSIONS: i64 = 200;

/// One version of a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillVersion {
    pub version: u32,
    pub spec: SkillSpec,
    pub note: Option<String>,
    pub files: Vec<FileEntry>,
    pub created_at: Timestamp,
}

/// The content of the next version.
#[derive(Debug, Clone)]
pub struct SkillChange {
    /// The version that the change is based on; if it is no longer the newest, the change conflicts.
    pub base_version: u32,
    pub spec: SkillSpec,
    pub files: SkillFilesChange,
    pub note: Option<String>,
}

row! {
    struct SkillRow {
        id: Uuid,
        version: i64,
        experience: Option<i64>,
        review_since: Option<i64>,
        spec: String,
        created_at: i64,
        updated_at: i64,
    }
}

impl SkillRow {
    fn skill(self, files: Vec<FileEntry>) -> Result<Skill> {
        Ok(Skill {
            id: SkillId(self.id),
            spec: serde_json::from_str(&self.spec)?,
            version: checked_number(self.version)?,
            files,
            experience: self.experience.map(checked_number).transpose()?,
            needs_review: self.review_since.is_some(),
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

row! {
    struct VersionRow {
        version: i64,
        spec: String,
        note: Option<String>,
        created_at: i64,
    }
}

impl VersionRow {
    fn version(self, files: Vec<FileEntry>) -> Result<SkillVersion> {
        Ok(SkillVersion {
            version: checked_number(self.version)?,
            spec: serde_json::from_str(&self.spec)?,
            note: self.note,
            files,
            created_at: Timestamp::from_millis(self.created_at),
        })
    }
}

/// Converts a stored number; one that is out of range is unreadable.
pub(super) fn checked_number<T: TryFrom<i64>>(number: i64) -> Result<T> {
    T::try_from(number).map_err(|_| StoreError::unreadable(format!("a number is out of range: {number}")))
}

macro_rules! select_skills {
    ($rest:literal) => {
        concat!(
            "SELECT s.id, s.version, s.experience, r.created_at AS review_since, v.spec, s.created_at, s.updated_at ",
            "FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.version = s.version ",
            "LEFT JOIN skill_reviews r ON r.skill_id = s.id ",
            $rest
        )
    };
}

const ONE: &str = select_skills!("WHERE s.owner = $1 AND s.name = $2");
const ALL: &str = select_skills!("WHERE s.owner = $1");
const FILES: &str =
    "SELECT path, bytes, executable FROM skill_files WHERE skill_id = $1 AND version = $2 ORDER BY path";
const FILES_OF_ALL: &str = "SELECT f.skill_id, f.path, f.bytes, f.executable FROM skills s JOIN skill_files f \
     ON f.skill_id = s.id AND f.version = s.version WHERE s.owner = $1 ORDER BY f.path";
const VERSIONS: &str = "SELECT v.version, v.spec, v.note, v.created_at FROM skills s JOIN skill_versions v \
     ON v.skill_id = s.id WHERE s.owner = $1 AND s.name = $2 ORDER BY v.version DESC LIMIT $3";
const VERSION: &str = "SELECT v.version, v.spec, v.note, v.created_at FROM skills s JOIN skill_versions v \
     ON v.skill_id = s.id WHERE s.owner = $1 AND s.name = $2 AND v.version = $3";
/// Locks the row, so that concurrent changes are serialized.
const ADVANCE: &str = "UPDATE skills SET version = version + 1, updated_at = $4 WHERE owner = $1 AND name = $2 \
     AND version = $3";

/// Writes the rows of a new version and deletes old versions.
macro_rules! write_version {
    ($transaction:ident, $id:expr, $version:expr, $spec:expr, $note:expr, $now:expr) => {{
        sqlx::query(
            "INSERT INTO skill_versions (skill_id, version, spec, note, created_at) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind($id.0)
        .bind($version)
        .bind($spec)
        .bind($note)
        .bind($now.as_millis())
        .execute(&mut *$transaction)
        .await?;
        let oldest = $version - $crate::catalog::skills::KEPT_VERSIONS;
        for old in [
            "DELETE FROM skill_versions WHERE skill_id = $1 AND version <= $2",
            "DELETE FROM skill_files WHERE skill_id = $1 AND version <= $2",
        ] {
            sqlx::query(old).bind($id.0).bind(oldest).execute(&mut *$transaction).await?;
        }
    }};
}
pub(super) use write_version;

/// Marks an imported skill that asks for something.
macro_rules! request_review {
    ($transaction:ident, $id:expr, $spec:expr, $files:expr, $now:expr) => {
        if $files.imported().is_some_and(|files| !SkillRequests::of($spec, &files).is_empty()) {
            sqlx::query(
                "INSERT INTO skill_reviews (skill_id, created_at) VALUES ($1, $2) ON CONFLICT (skill_id) DO NOTHING",
            )
            .bind($id.0)
            .bind($now.as_millis())
            .execute(&mut *$transaction)
            .await?;
        }
    };
}

impl Store {
    /// Returns all skills, sorted by name.
    pub async fn skills(&self, owner: &Owner) -> Result<Vec<Skill>> {
        let (rows, files) = snapshot!(self.database(), |transaction| {
            let rows: Vec<SkillRow> = sqlx::query_as(ALL).bind(owner.as_str()).fetch_all(&mut *transaction).await?;
            let files: Vec<(Uuid, String, i64, i64)> =
                sqlx::query_as(FILES_OF_ALL).bind(owner.as_str()).fetch_all(&mut *transaction).await?;
            (rows, files)
        });
        let skill = |row: SkillRow| {
            let of_skill = files.iter().filter(|(id, ..)| *id == row.id);
            let entries = of_skill.map(|(_, path, bytes, executable)| {
                FileRow { path: path.clone(), bytes: *bytes, executable: *executable }.try_into()
            });
            let entries = entries.collect::<Result<_>>()?;
            row.skill(entries)
        };
        let mut skills = rows.into_iter().map(skill).collect::<Result<Vec<Skill>>>()?;
        // Sorted here because the databases collate text differently.
        skills.sort_unstable_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Ok(skills)
    }

    pub async fn skill(&self, owner: &Owner, name: &SkillName) -> Result<Skill> {
        let (row, files) = snapshot!(self.database(), |transaction| {
            let row: SkillRow =
                sqlx::query_as(ONE).bind(owner.as_str()).bind(name.as_str()).fetch_one(&mut *transaction).await?;
            let files: Vec<FileRow> =
                sqlx::query_as(FILES).bind(row.id).bind(row.version).fetch_all(&mut *transaction).await?;
            (row, files)
        });
        row.skill(files.into_iter().map(FileEntry::try_from).collect::<Result<_>>()?)
    }

    /// Returns all versions, newest first, without their files.
    pub async fn skill_versions(&self, owner: &Owner, name: &SkillName) -> Result<Vec<SkillVersion>> {
        let rows: Vec<VersionRow> = reading!(self.database(), |pool| {
            sqlx::query_as(VERSIONS).bind(owner.as_str()).bind(name.as_str()).bind(KEPT_VERSIONS).fetch_all(pool).await
        })?;
        match rows.is_empty() {
            true => Err(StoreError::NotFound),
            false => rows.into_iter().map(|row| row.version(Vec::new())).collect(),
        }
    }

    pub async fn skill_version(&self, owner: &Owner, name: &SkillName, version: u32) -> Result<SkillVersion> {
        let (row, files) = snapshot!(self.database(), |transaction| {
            let row: VersionRow = sqlx::query_as(VERSION)
                .bind(owner.as_str())
                .bind(name.as_str())
                .bind(i64::from(version))
                .fetch_one(&mut *transaction)
                .await?;
            let files: Vec<FileRow> = sqlx::query_as(
                "SELECT f.path, f.bytes, f.executable FROM skills s JOIN skill_files f ON f.skill_id = s.id \
                 WHERE s.owner = $1 AND s.name = $2 AND f.version = $3 ORDER BY f.path",
            )
            .bind(owner.as_str())
            .bind(name.as_str())
            .bind(i64::from(version))
            .fetch_all(&mut *transaction)
            .await?;
            (row, files)
        });
        row.version(files.into_iter().map(FileEntry::try_from).collect::<Result<_>>()?)
    }

    pub async fn create_skill(
        &self,
        actor: &Actor,
        spec: &SkillSpec,
        files: SkillFilesChange,
        note: Option<&str>,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill> {
        let owner = &actor.workspace;
        let (id, now, json) = (SkillId::generate(), Timestamp::now(), serde_json::to_string(spec)?);
        let name = spec.name.as_str();
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, name, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Create, AuditedObject::Skill, name), now);
            let inserted = sqlx::query(
                "INSERT INTO skills (id, owner, name, version, created_at, updated_at) SELECT $1, $2, $3, 1, $4, $4 \
                 WHERE (SELECT COUNT(*) FROM skills WHERE owner = $2) < $5",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .bind(name)
            .bind(now.as_millis())
            .bind(MAX_SKILLS)
            .execute(&mut *transaction)
            .await
            .map_err(|error| name_taken(error, name))?;
            if inserted.rows_affected() == 0 {
                return Err(StoreError::LimitReached("the limit of 1000 skills is reached; delete some first".into()));
            }
            write_version!(transaction, id, 1_i64, json.as_str(), note, now);
            change_files!(transaction, id, 1_i64, &files);
            request_review!(transaction, id, spec, files, now);
        });
        self.list_changed(owner, OwnerList::Skills);
        self.skill(owner, &spec.name).await
    }

    pub async fn change_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        change: SkillChange,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<Skill> {
        let owner = &actor.workspace;
        let SkillChange { base_version: base, spec, files, note } = change;
        let (now, json) = (Timestamp::now(), serde_json::to_string(&spec)?);
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, name, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Update, AuditedObject::Skill, name), now);
            let advanced = sqlx::query(ADVANCE)
                .bind(owner.as_str())
                .bind(name.as_str())
                .bind(i64::from(base))
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            let id: Uuid = sqlx::query_scalar("SELECT id FROM skills WHERE owner = $1 AND name = $2")
                .bind(owner.as_str())
                .bind(name.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            if advanced.rows_affected() == 0 {
                return Err(StoreError::SkillChanged);
            }
            let (id, version) = (SkillId(id), i64::from(base) + 1);
            write_version!(transaction, id, version, json.as_str(), note.as_deref(), now);
            change_files!(transaction, id, version, &files);
            request_review!(transaction, id, &spec, files, now);
        });
        self.list_changed(owner, OwnerList::Skills);
        self.skill(owner, name).await
    }

    /// Ends the review of a skill. Fails with `SkillChanged` if `version` is no longer the newest.
    pub async fn accept_skill(&self, actor: &Actor, name: &SkillName, version: u32) -> Result<Skill> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Accept, AuditedObject::Skill, name), now);
            let (id, newest): (Uuid, i64) =
                sqlx::query_as("SELECT id, version FROM skills WHERE owner = $1 AND name = $2")
                    .bind(owner.as_str())
                    .bind(name.as_str())
                    .fetch_one(&mut *transaction)
                    .await?;
            if newest != i64::from(version) {
                return Err(StoreError::SkillChanged);
            }
            sqlx::query("DELETE FROM skill_reviews WHERE skill_id = $1").bind(id).execute(&mut *transaction).await?;
        });
        self.list_changed(owner, OwnerList::Skills);
        self.skill(owner, name).await
    }

    /// Deletes a skill with its versions, files and training history; its training rooms stay.
    pub async fn delete_skill(
        &self,
        actor: &Actor,
        name: &SkillName,
        attempt: Option<&IdempotentRequest>,
    ) -> Result<()> {
        let owner = &actor.workspace;
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            store_key!(transaction, owner, attempt, name, now);
            store_audit!(transaction, AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Skill, name), now);
            let id: Uuid = sqlx::query_scalar("DELETE FROM skills WHERE owner = $1 AND name = $2 RETURNING id")
                .bind(owner.as_str())
                .bind(name.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            for rows in [
                "DELETE FROM skill_versions WHERE skill_id = $1",
                "DELETE FROM skill_reviews WHERE skill_id = $1",
                "DELETE FROM skill_files WHERE skill_id = $1",
                "DELETE FROM skill_contents WHERE skill_id = $1",
                "DELETE FROM skill_rooms WHERE skill_id = $1",
                "DELETE FROM skill_rounds WHERE skill_id = $1",
                "DELETE FROM skill_proposals WHERE skill_id = $1",
                "DELETE FROM skill_uses WHERE skill_id = $1",
            ] {
                sqlx::query(rows).bind(id).execute(&mut *transaction).await?;
            }
        });
        self.list_changed(owner, OwnerList::Skills);
        Ok(())
    }
}

fn name_taken(error: sqlx::Error, name: &str) -> StoreError {
    match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => StoreError::SkillNameTaken(name.to_owned()),
        _ => error.into(),
    }
}

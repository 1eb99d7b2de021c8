//! Skills and their versions. A version is written once and never altered; the newest [`KEPT_VERSIONS`] are kept.

use super::{
    idempotency::{Attempt, remember},
    skill_files::{FileChange, FileRow, change_files},
};
use crate::{
    Error, Store,
    database::{reading, snapshot, writing},
    error::Result,
    journal::List,
};
use domain::{
    ids::SkillId,
    owner::Owner,
    skill::{FileEntry, Skill, SkillName, SkillSpec},
    time::Timestamp,
};
use uuid::Uuid;

const MAX_SKILLS: i64 = 1000;
pub(super) const KEPT_VERSIONS: i64 = 200;

/// One version, as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillVersion {
    pub version: u32,
    pub spec: SkillSpec,
    pub note: Option<String>,
    pub files: Vec<FileEntry>,
    pub created_at: Timestamp,
}

/// What becomes the next version.
#[derive(Debug, Clone)]
pub struct SkillChange {
    /// The version that this was made from; another one by now is a conflict.
    pub base: u32,
    pub spec: SkillSpec,
    pub files: FileChange,
    pub note: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    version: i64,
    experience: Option<i64>,
    spec: String,
    created_at: i64,
    updated_at: i64,
}

impl Row {
    fn skill(self, files: Vec<FileEntry>) -> Result<Skill> {
        Ok(Skill {
            id: SkillId(self.id),
            spec: serde_json::from_str(&self.spec)?,
            version: number(self.version)?,
            files,
            experience: self.experience.map(number).transpose()?,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

#[derive(sqlx::FromRow)]
struct VersionRow {
    version: i64,
    spec: String,
    note: Option<String>,
    created_at: i64,
}

impl VersionRow {
    fn version(self, files: Vec<FileEntry>) -> Result<SkillVersion> {
        Ok(SkillVersion {
            version: number(self.version)?,
            spec: serde_json::from_str(&self.spec)?,
            note: self.note,
            files,
            created_at: Timestamp::from_millis(self.created_at),
        })
    }
}

/// Counts here are small; one that is not cannot be read.
pub(super) fn number<T: TryFrom<i64>>(number: i64) -> Result<T> {
    T::try_from(number).map_err(|_| Error::Unreadable(format!("an impossible count: {number}")))
}

const ONE: &str = "SELECT s.id, s.version, s.experience, v.spec, s.created_at, s.updated_at FROM skills s \
     JOIN skill_versions v ON v.skill_id = s.id AND v.version = s.version WHERE s.owner = $1 AND s.name = $2";
const ALL: &str = "SELECT s.id, s.version, s.experience, v.spec, s.created_at, s.updated_at FROM skills s \
     JOIN skill_versions v ON v.skill_id = s.id AND v.version = s.version WHERE s.owner = $1";
const FILES: &str =
    "SELECT path, bytes, executable FROM skill_files WHERE skill_id = $1 AND version = $2 ORDER BY path";
const FILES_OF_ALL: &str = "SELECT f.skill_id, f.path, f.bytes, f.executable FROM skills s JOIN skill_files f \
     ON f.skill_id = s.id AND f.version = s.version WHERE s.owner = $1 ORDER BY f.path";
const VERSIONS: &str = "SELECT v.version, v.spec, v.note, v.created_at FROM skills s JOIN skill_versions v \
     ON v.skill_id = s.id WHERE s.owner = $1 AND s.name = $2 ORDER BY v.version DESC LIMIT $3";
const VERSION: &str = "SELECT v.version, v.spec, v.note, v.created_at FROM skills s JOIN skill_versions v \
     ON v.skill_id = s.id WHERE s.owner = $1 AND s.name = $2 AND v.version = $3";
/// Takes the row, so that two changes at once are one after the other.
const ADVANCE: &str = "UPDATE skills SET version = version + 1, updated_at = $4 WHERE owner = $1 AND name = $2 \
     AND version = $3";

/// Writes the rows of a new version and lets go of those that are too old.
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

impl Store {
    /// By name.
    pub async fn skills(&self, owner: &Owner) -> Result<Vec<Skill>> {
        let (rows, files) = snapshot!(self.database(), |transaction| {
            let rows: Vec<Row> = sqlx::query_as(ALL).bind(owner.as_str()).fetch_all(&mut *transaction).await?;
            let files: Vec<(Uuid, String, i64, i64)> =
                sqlx::query_as(FILES_OF_ALL).bind(owner.as_str()).fetch_all(&mut *transaction).await?;
            (rows, files)
        });
        let skill = |row: Row| {
            let of_skill = files.iter().filter(|(id, ..)| *id == row.id);
            let entries = of_skill.map(|(_, path, bytes, executable)| {
                FileRow { path: path.clone(), bytes: *bytes, executable: *executable }.try_into()
            });
            let entries = entries.collect::<Result<_>>()?;
            row.skill(entries)
        };
        let mut skills = rows.into_iter().map(skill).collect::<Result<Vec<Skill>>>()?;
        // Here, not in SQL: databases do not agree on the order of letters.
        skills.sort_unstable_by(|a, b| a.spec.name.cmp(&b.spec.name));
        Ok(skills)
    }

    pub async fn skill(&self, owner: &Owner, name: &SkillName) -> Result<Skill> {
        let (row, files) = snapshot!(self.database(), |transaction| {
            let row: Row =
                sqlx::query_as(ONE).bind(owner.as_str()).bind(name.as_str()).fetch_one(&mut *transaction).await?;
            let files: Vec<FileRow> =
                sqlx::query_as(FILES).bind(row.id).bind(row.version).fetch_all(&mut *transaction).await?;
            (row, files)
        });
        row.skill(files.into_iter().map(FileEntry::try_from).collect::<Result<_>>()?)
    }

    /// Newest first, without their files.
    pub async fn skill_versions(&self, owner: &Owner, name: &SkillName) -> Result<Vec<SkillVersion>> {
        let rows: Vec<VersionRow> = reading!(self.database(), |pool| {
            sqlx::query_as(VERSIONS).bind(owner.as_str()).bind(name.as_str()).bind(KEPT_VERSIONS).fetch_all(pool).await
        })?;
        match rows.is_empty() {
            true => Err(Error::NotFound),
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
        owner: &Owner,
        spec: &SkillSpec,
        files: FileChange,
        note: Option<&str>,
        attempt: Option<&Attempt>,
    ) -> Result<Skill> {
        let (id, now, json) = (SkillId::generate(), Timestamp::now(), serde_json::to_string(spec)?);
        let name = spec.name.as_str();
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, name, now);
            let made = sqlx::query(
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
            .map_err(|error| taken(error, name))?;
            if made.rows_affected() == 0 {
                return Err(Error::Full("there are 1000 skills already; delete some".into()));
            }
            write_version!(transaction, id, 1_i64, json.as_str(), note, now);
            change_files!(transaction, id, 1_i64, &files);
        });
        self.watches().listed(owner, List::Skills);
        self.skill(owner, &spec.name).await
    }

    pub async fn change_skill(
        &self,
        owner: &Owner,
        name: &SkillName,
        change: SkillChange,
        attempt: Option<&Attempt>,
    ) -> Result<Skill> {
        let SkillChange { base, spec, files, note } = change;
        let (now, json) = (Timestamp::now(), serde_json::to_string(&spec)?);
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, name, now);
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
                return Err(Error::SkillChanged);
            }
            let (id, version) = (SkillId(id), i64::from(base) + 1);
            write_version!(transaction, id, version, json.as_str(), note.as_deref(), now);
            change_files!(transaction, id, version, &files);
        });
        self.watches().listed(owner, List::Skills);
        self.skill(owner, name).await
    }

    /// With its versions, its files and its training; the rooms it was trained in stay.
    pub async fn delete_skill(&self, owner: &Owner, name: &SkillName, attempt: Option<&Attempt>) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, name, now);
            let id: Uuid = sqlx::query_scalar("DELETE FROM skills WHERE owner = $1 AND name = $2 RETURNING id")
                .bind(owner.as_str())
                .bind(name.as_str())
                .fetch_one(&mut *transaction)
                .await?;
            for rows in [
                "DELETE FROM skill_versions WHERE skill_id = $1",
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
        self.watches().listed(owner, List::Skills);
        Ok(())
    }
}

fn taken(error: sqlx::Error, name: &str) -> Error {
    match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => Error::SkillTaken(name.to_owned()),
        _ => error.into(),
    }
}

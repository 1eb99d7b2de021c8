//! The files of skills, by version. Content is stored once per skill, even if many versions share it.

use crate::{
    Store, StoreError,
    database::reading,
    error::{Result, unsigned},
    row::row,
};
use domain::{
    owner::Owner,
    skill::{FileEntry, FilePath, MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, SkillFile, SkillName},
};
use sha2::{Digest as _, Sha256};

/// The files of a new version, relative to an earlier version.
#[derive(Debug, Clone)]
pub enum SkillFilesChange {
    /// The same files as in this version.
    SameAs(u32),
    /// The files of this version, with one file added or replaced.
    Put(u32, SkillFile),
    /// The files of this version, without one file.
    Remove(u32, FilePath),
    /// Exactly these files.
    All(Vec<SkillFile>),
    /// Exactly these files, from somebody else: what the skill asks for waits for a review.
    Imported(Vec<SkillFile>),
}

impl SkillFilesChange {
    /// The files of an import.
    pub(super) fn imported(&self) -> Option<Vec<FileEntry>> {
        let entry = |file: &SkillFile| FileEntry {
            path: file.path.clone(),
            bytes: file.content.len() as u64,
            executable: file.executable,
        };
        match self {
            Self::Imported(files) => Some(files.iter().map(entry).collect()),
            _ => None,
        }
    }

    pub(super) fn base_version(&self) -> Option<u32> {
        match self {
            Self::SameAs(version) | Self::Put(version, _) | Self::Remove(version, _) => Some(*version),
            Self::All(_) | Self::Imported(_) => None,
        }
    }

    pub(super) fn added(&self) -> &[SkillFile] {
        match self {
            Self::Put(_, file) => std::slice::from_ref(file),
            Self::All(files) | Self::Imported(files) => files,
            Self::SameAs(_) | Self::Remove(..) => &[],
        }
    }

    /// The file that is not copied because it is replaced or removed.
    pub(super) fn replaced_path(&self) -> Option<&FilePath> {
        match self {
            Self::Put(_, file) => Some(&file.path),
            Self::Remove(_, path) => Some(path),
            Self::SameAs(_) | Self::All(_) | Self::Imported(_) => None,
        }
    }
}

pub(super) fn hash(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

/// Checks the total number and size of a version's files.
pub(super) fn check_total_size(count: i64, bytes: i64) -> Result<()> {
    match count <= MAX_FILES as i64 && unsigned(bytes)? <= MAX_TOTAL_BYTES {
        true => Ok(()),
        false => Err(StoreError::LimitReached("a skill has at most 200 files with 8 MB in total".into())),
    }
}

/// Checks that no file has the path of another file's folder.
pub(super) fn check_paths(paths: &[String]) -> Result<()> {
    let is_folder_of =
        |file: &String, other: &String| other.strip_prefix(file.as_str()).is_some_and(|r| r.starts_with('/'));
    match paths.iter().find(|file| paths.iter().any(|other| is_folder_of(file, other))) {
        Some(file) => Err(StoreError::LimitReached(format!("{file:?} cannot be both a file and a folder"))),
        None => Ok(()),
    }
}

pub(super) fn check_file_size(file: &SkillFile) -> Result<()> {
    match file.content.len() as u64 <= MAX_FILE_BYTES {
        true => Ok(()),
        false => Err(StoreError::LimitReached("a file of a skill has at most 4 MB".into())),
    }
}

/// Writes the files of a new version.
macro_rules! change_files {
    ($transaction:ident, $id:expr, $version:expr, $change:expr) => {{
        use $crate::catalog::skill_files as files;
        let change: &files::SkillFilesChange = $change;
        if let Some(from) = change.base_version() {
            sqlx::query(
                "INSERT INTO skill_files (skill_id, version, path, hash, bytes, executable) \
                 SELECT skill_id, $2, path, hash, bytes, executable FROM skill_files \
                 WHERE skill_id = $1 AND version = $3 AND path <> $4",
            )
            .bind($id.0)
            .bind($version)
            .bind(i64::from(from))
            .bind(change.replaced_path().map_or("", |path| path.as_str()))
            .execute(&mut *$transaction)
            .await?;
        }
        for file in change.added() {
            files::check_file_size(file)?;
            let hash = files::hash(&file.content);
            sqlx::query(
                "INSERT INTO skill_contents (skill_id, hash, content) VALUES ($1, $2, $3) \
                 ON CONFLICT (skill_id, hash) DO NOTHING",
            )
            .bind($id.0)
            .bind(hash.as_slice())
            .bind(file.content.as_slice())
            .execute(&mut *$transaction)
            .await?;
            sqlx::query(
                "INSERT INTO skill_files (skill_id, version, path, hash, bytes, executable) \
                 VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (skill_id, version, path) DO NOTHING",
            )
            .bind($id.0)
            .bind($version)
            .bind(file.path.as_str())
            .bind(hash.as_slice())
            .bind(file.content.len() as i64)
            .bind(i64::from(file.executable))
            .execute(&mut *$transaction)
            .await?;
        }
        let (count, bytes): (i64, i64) = sqlx::query_as(
            "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM skill_files \
             WHERE skill_id = $1 AND version = $2",
        )
        .bind($id.0)
        .bind($version)
        .fetch_one(&mut *$transaction)
        .await?;
        files::check_total_size(count, bytes)?;
        let paths: Vec<String> =
            sqlx::query_scalar("SELECT path FROM skill_files WHERE skill_id = $1 AND version = $2 ORDER BY path")
                .bind($id.0)
                .bind($version)
                .fetch_all(&mut *$transaction)
                .await?;
        files::check_paths(&paths)?;
        // Content that no version uses.
        sqlx::query(
            "DELETE FROM skill_contents WHERE skill_id = $1 AND hash NOT IN \
             (SELECT hash FROM skill_files WHERE skill_id = $1)",
        )
        .bind($id.0)
        .execute(&mut *$transaction)
        .await?;
    }};
}
pub(super) use change_files;

row! {
    pub(super) struct FileRow {
        pub path: String,
        pub bytes: i64,
        pub executable: i64,
    }
}

impl TryFrom<FileRow> for FileEntry {
    type Error = StoreError;
    fn try_from(row: FileRow) -> Result<Self> {
        Ok(Self { path: path(&row.path)?, bytes: unsigned(row.bytes)?, executable: row.executable != 0 })
    }
}

fn path(text: &str) -> Result<FilePath> {
    text.parse().map_err(StoreError::unreadable)
}

const FILES: &str = "SELECT f.path, f.executable, c.content FROM skills s \
     JOIN skill_files f ON f.skill_id = s.id \
     JOIN skill_contents c ON c.skill_id = f.skill_id AND c.hash = f.hash \
     WHERE s.owner = $1 AND s.name = $2 AND f.version = $3 ORDER BY f.path";
const FILE: &str = "SELECT f.path, f.executable, c.content FROM skills s \
     JOIN skill_files f ON f.skill_id = s.id \
     JOIN skill_contents c ON c.skill_id = f.skill_id AND c.hash = f.hash \
     WHERE s.owner = $1 AND s.name = $2 AND f.version = $3 AND f.path = $4";

impl Store {
    /// Returns all files of a version. Their size is limited on write.
    pub async fn skill_files(&self, owner: &Owner, name: &SkillName, version: u32) -> Result<Vec<SkillFile>> {
        let rows: Vec<(String, i64, Vec<u8>)> = reading!(self.database(), |pool| {
            sqlx::query_as(FILES)
                .bind(owner.as_str())
                .bind(name.as_str())
                .bind(i64::from(version))
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(file).collect()
    }

    pub async fn skill_file(
        &self,
        owner: &Owner,
        name: &SkillName,
        version: u32,
        path: &FilePath,
    ) -> Result<SkillFile> {
        let row: (String, i64, Vec<u8>) = reading!(self.database(), |pool| {
            sqlx::query_as(FILE)
                .bind(owner.as_str())
                .bind(name.as_str())
                .bind(i64::from(version))
                .bind(path.as_str())
                .fetch_one(pool)
                .await
        })?;
        file(row)
    }
}

fn file((text, executable, content): (String, i64, Vec<u8>)) -> Result<SkillFile> {
    Ok(SkillFile { path: path(&text)?, executable: executable != 0, content })
}

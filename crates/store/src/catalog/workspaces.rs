//! What workspaces use of the server. Queries over all of them are for the operator.

use crate::{
    Store,
    database::reading,
    error::{Result, signed, unsigned},
};
use domain::{ids::RunId, owner::Owner};
use uuid::Uuid;

/// What one workspace has on this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceUse {
    pub workspace: Owner,
    pub rooms: u64,
    pub unfinished_runs: u64,
    /// The events of its rooms, its uploads and the files of its skills.
    pub stored_bytes: u64,
}

/// What a workspace stores. A sum over rooms, uploads and skill files, each found by an index; the events of a room are
/// counted when they are stored (`journals.bytes`). Deleted rooms count until their events are gone.
macro_rules! stored_bytes {
    ($workspace:literal) => {
        concat!(
            "CAST(COALESCE((SELECT SUM(j.bytes) FROM journals j JOIN rooms r ON r.id = j.room_id WHERE r.owner = ",
            $workspace,
            "), 0) + COALESCE((SELECT SUM(u.bytes) FROM uploads u WHERE u.owner = ",
            $workspace,
            "), 0) + COALESCE((SELECT SUM(octet_length(c.content)) FROM skill_contents c ",
            "JOIN skills s ON s.id = c.skill_id WHERE s.owner = ",
            $workspace,
            "), 0) AS BIGINT)"
        )
    };
}

impl Store {
    /// Returns the number of rooms of a workspace, up to `at_most`.
    pub async fn room_count(&self, owner: &Owner, at_most: usize) -> Result<usize> {
        let rooms: i64 = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT COUNT(*) FROM (SELECT 1 FROM rooms WHERE owner = $1 AND deleted_at IS NULL LIMIT $2) AS counted",
            )
            .bind(owner.as_str())
            .bind(signed(at_most as u64))
            .fetch_one(pool)
            .await
        })?;
        Ok(usize::try_from(unsigned(rooms)?).unwrap_or(usize::MAX))
    }

    pub async fn stored_bytes(&self, owner: &Owner) -> Result<u64> {
        let bytes: i64 = reading!(self.database(), |pool| {
            sqlx::query_scalar(concat!("SELECT ", stored_bytes!("$1"))).bind(owner.as_str()).fetch_one(pool).await
        })?;
        unsigned(bytes)
    }

    /// Returns the workspaces that store the most.
    pub async fn workspace_uses(&self, limit: u32) -> Result<Vec<WorkspaceUse>> {
        let rows: Vec<(String, i64, i64, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(concat!(
                "SELECT w.name, (SELECT COUNT(*) FROM rooms r WHERE r.owner = w.name AND r.deleted_at IS NULL), ",
                "(SELECT COUNT(*) FROM queue q WHERE q.owner = w.name), ",
                stored_bytes!("w.name"),
                " AS bytes FROM workspaces w ORDER BY bytes DESC, w.name LIMIT $1"
            ))
            .bind(i64::from(limit))
            .fetch_all(pool)
            .await
        })?;
        let used = |(workspace, rooms, runs, bytes): (String, i64, i64, i64)| {
            Ok(WorkspaceUse {
                workspace: super::tokens::parse_owner(&workspace)?,
                rooms: unsigned(rooms)?,
                unfinished_runs: unsigned(runs)?,
                stored_bytes: unsigned(bytes)?,
            })
        };
        rows.into_iter().map(used).collect()
    }

    /// Returns the workspace of a run. For the operator: everybody else names the workspace.
    pub async fn workspace_of_run(&self, run: RunId) -> Result<Owner> {
        let workspace: String = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT owner FROM runs WHERE id = $1").bind::<Uuid>(run.0).fetch_one(pool).await
        })?;
        super::tokens::parse_owner(&workspace)
    }
}

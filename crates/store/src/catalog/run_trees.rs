//! Run trees: the runs below a run, those above it, and the rooms of children.

use super::runs::{NamedRun, NamedRunRow, select_named_runs, select_runs};
use crate::{Store, StoreError, database::reading, error::Result};
use domain::{
    ids::{RoomId, RunId},
    owner::Owner,
    run::Run,
    run_tree::MAX_TREE_DEPTH,
};
use uuid::Uuid;

impl Store {
    /// Returns a run and all runs below it, with the names of their rooms and agents, oldest first. A tree has a limited
    /// number of runs.
    pub async fn run_tree(&self, owner: &Owner, run: RunId) -> Result<Vec<NamedRun>> {
        let rows: Vec<NamedRunRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_named_runs!(
                "u.owner = $1 AND ",
                "u.id IN (WITH RECURSIVE tree(id) AS (SELECT t.id FROM runs t WHERE t.id = $2 AND t.owner = $1 \
                 UNION ALL SELECT c.id FROM runs c JOIN tree ON c.parent_id = tree.id) SELECT id FROM tree) \
                 ORDER BY u.depth, u.created_at, u.id"
            ))
            .bind(owner.as_str())
            .bind(run.0)
            .fetch_all(pool)
            .await
        })?;
        if rows.is_empty() {
            return Err(StoreError::NotFound);
        }
        rows.into_iter().map(NamedRun::try_from).collect()
    }

    /// Returns the runs that a run has started, in order.
    pub async fn child_runs(&self, owner: &Owner, run: RunId) -> Result<Vec<Run>> {
        let rows: Vec<super::runs::RunRow> = reading!(self.database(), |pool| {
            sqlx::query_as(select_runs!("u.parent_id = $2 ORDER BY u.created_at, u.id"))
                .bind(owner.as_str())
                .bind(run.0)
                .fetch_all(pool)
                .await
        })?;
        rows.into_iter().map(Run::try_from).collect()
    }

    /// Returns the runs above a run, the nearest first. An erased one ends the list.
    pub async fn run_ancestors(&self, owner: &Owner, run: &Run) -> Result<Vec<Run>> {
        let (mut above, mut next) = (Vec::new(), run.parent_id);
        while let Some(parent) = next.filter(|_| above.len() < MAX_TREE_DEPTH as usize) {
            match self.run(owner, parent).await {
                Ok(found) => {
                    next = found.parent_id;
                    above.push(found);
                }
                Err(StoreError::NotFound) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(above)
    }

    /// Returns the rooms that the runs of a room have opened for their children, deleted ones included.
    pub async fn rooms_of_children(&self, owner: &Owner, room: RoomId) -> Result<Vec<RoomId>> {
        let rows: Vec<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT r.id FROM runs u JOIN rooms r ON r.parent_run_id = u.id \
                 WHERE u.room_id = $1 AND r.owner = $2 ORDER BY r.id",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_all(pool)
            .await
        })?;
        Ok(rows.into_iter().map(RoomId).collect())
    }
}

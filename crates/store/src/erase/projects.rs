//! The rows of a project. Its rooms are deleted with it, and erased by themselves.

use super::ErasureStep;
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{ids::ProjectId, owner::Owner};
use uuid::Uuid;

impl Store {
    pub(super) async fn erase_project_rows(&self, owner: &Owner, project: ProjectId) -> Result<ErasureStep> {
        let unfinished: Option<Uuid> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT q.run_id FROM queue q JOIN rooms r ON r.id = q.room_id WHERE r.project_id = $1 LIMIT 1",
            )
            .bind(project.0)
            .fetch_optional(pool)
            .await
        })?;
        if unfinished.is_some() {
            return Ok(ErasureStep::Waiting);
        }
        writing!(self.database(), |transaction| {
            sqlx::query("DELETE FROM projects WHERE id = $1").bind(project.0).execute(&mut *transaction).await?;
            sqlx::query("DELETE FROM idempotency WHERE owner = $1 AND result = $2")
                .bind(owner.as_str())
                .bind(project.to_string())
                .execute(&mut *transaction)
                .await?;
        });
        Ok::<_, StoreError>(ErasureStep::RowsErased)
    }
}

//! The rows of a project. Its rooms are deleted with it, and erased by themselves.

use super::ErasedRows;

pub(super) const PROJECT_ROWS: ErasedRows = ErasedRows {
    unfinished_run: "SELECT q.run_id FROM queue q JOIN rooms r ON r.id = q.room_id WHERE r.project_id = $1 LIMIT 1",
    statements: &["DELETE FROM projects WHERE id = $1"],
};

//! The rows of a room. What its runs have cost stays, without the room.

use super::{ErasedFiles, ErasureStep};
use crate::{
    Store, StoreError,
    database::{reading, writing},
    error::Result,
};
use domain::{
    ids::{AgentId, RoomId, UploadId},
    message::Attachment,
    owner::Owner,
    time::Timestamp,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Rows of one transaction, and about how many bytes: every commit waits for it.
const ROWS_PER_STEP: i64 = 200;
const BYTES_PER_STEP: i64 = 512 * 1024;
/// Messages that are read at once to find their attachments.
const MESSAGES_PER_PAGE: i64 = 100;

/// What is left when runs, events and messages are erased; `$1` is the room. The room's own row is the last.
const REST: [&str; 16] = [
    "DELETE FROM search_entries WHERE room_id = $1",
    "DELETE FROM search_cursors WHERE room_id = $1",
    "DELETE FROM run_contexts WHERE room_id = $1",
    "DELETE FROM participants WHERE room_id = $1",
    "DELETE FROM provider_sessions WHERE room_id = $1",
    "DELETE FROM room_tools WHERE room_id = $1",
    "DELETE FROM remembered_rules WHERE room_id = $1",
    "DELETE FROM tapes WHERE room_id = $1",
    "DELETE FROM signals WHERE room_id = $1",
    "DELETE FROM skill_rooms WHERE room_id = $1",
    "UPDATE skill_rounds SET room_id = NULL, message_id = NULL WHERE room_id = $1",
    "DELETE FROM budgets WHERE scope = 'room' AND subject = $1",
    "DELETE FROM messages WHERE room_id = $1",
    "DELETE FROM events WHERE room_id = $1",
    "DELETE FROM journals WHERE room_id = $1",
    "DELETE FROM rooms WHERE id = $1",
];

#[derive(Deserialize)]
struct StoredAttachments {
    #[serde(default)]
    attachments: Vec<Attachment>,
}

impl Store {
    pub(super) async fn files_of_room(&self, owner: &Owner, room: RoomId) -> Result<ErasedFiles> {
        let agents: Vec<Uuid> = self.column("SELECT DISTINCT agent_id FROM runs WHERE room_id = $1", room).await?;
        let sessions: Vec<String> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT session_id FROM provider_sessions WHERE room_id = $1")
                .bind(room.0)
                .fetch_all(pool)
                .await
        })?;
        let mut uploads = Vec::new();
        for upload in self.attached_uploads(room).await? {
            if !self.is_attached_elsewhere(owner, room, upload).await? {
                uploads.push(upload);
            }
        }
        Ok(ErasedFiles { agents: agents.into_iter().map(AgentId).collect(), sessions, uploads })
    }

    async fn attached_uploads(&self, room: RoomId) -> Result<BTreeSet<UploadId>> {
        let (mut found, mut after) = (BTreeSet::new(), -1_i64);
        loop {
            let page: Vec<(i64, String)> = reading!(self.database(), |pool| {
                sqlx::query_as(
                    "SELECT seq, body FROM messages WHERE room_id = $1 AND seq > $2 AND body LIKE '%/api/uploads/%' \
                     ORDER BY seq LIMIT $3",
                )
                .bind(room.0)
                .bind(after)
                .bind(MESSAGES_PER_PAGE)
                .fetch_all(pool)
                .await
            })?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            after = *last;
            for (_, body) in &page {
                let StoredAttachments { attachments } = serde_json::from_str(body)?;
                found.extend(attachments.iter().filter_map(Attachment::upload_id));
            }
        }
    }

    /// Whether another room of the workspace refers to an upload, by any message. A room that is deleted too keeps it until
    /// it is erased.
    async fn is_attached_elsewhere(&self, owner: &Owner, room: RoomId, upload: UploadId) -> Result<bool> {
        let found: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT m.seq FROM messages m JOIN rooms r ON r.id = m.room_id \
                 WHERE r.owner = $1 AND m.room_id <> $2 AND m.body LIKE $3 LIMIT 1",
            )
            .bind(owner.as_str())
            .bind(room.0)
            .bind(format!("%/api/uploads/{upload}%"))
            .fetch_optional(pool)
            .await
        })?;
        Ok(found.is_some())
    }

    pub(super) async fn erase_room_rows(
        &self,
        owner: &Owner,
        room: RoomId,
        files: &ErasedFiles,
    ) -> Result<ErasureStep> {
        let unfinished: Vec<Uuid> = self.column("SELECT run_id FROM queue WHERE room_id = $1 LIMIT 1", room).await?;
        if !unfinished.is_empty() {
            return Ok(ErasureStep::Waiting);
        }
        if self.erase_indexed_words(room).await?
            || self.strip_runs(room).await?
            || self.erase_events(room).await?
            || self.erase_messages(room).await?
        {
            return Ok(ErasureStep::More);
        }
        writing!(self.database(), |transaction| {
            for rows in REST {
                sqlx::query(rows).bind(room.0).execute(&mut *transaction).await?;
            }
            for upload in &files.uploads {
                sqlx::query("DELETE FROM uploads WHERE id = $1 AND owner = $2")
                    .bind(upload.0)
                    .bind(owner.as_str())
                    .execute(&mut *transaction)
                    .await?;
            }
            sqlx::query("DELETE FROM idempotency WHERE owner = $1 AND result = $2")
                .bind(owner.as_str())
                .bind(room.to_string())
                .execute(&mut *transaction)
                .await?;
        });
        self.tails().forget(room);
        Ok(ErasureStep::RowsErased)
    }

    /// Takes away from some runs all but what they cost. Returns whether there were any.
    async fn strip_runs(&self, room: RoomId) -> Result<bool> {
        let now = Timestamp::now().as_millis();
        let runs: Vec<Uuid> =
            self.column("SELECT id FROM runs WHERE room_id = $1 ORDER BY queued_seq LIMIT 200", room).await?;
        writing!(self.database(), |transaction| {
            for run in &runs {
                sqlx::query("DELETE FROM signals WHERE run_id = $1").bind(run).execute(&mut *transaction).await?;
                // Its message, while it is there, tells whom the run costs.
                sqlx::query(
                    "UPDATE runs SET user_id = COALESCE(user_id, (SELECT m.user_id FROM messages m WHERE m.id = runs.message_id)), \
                     room_id = $2, message_id = $2, error = NULL, receipt = NULL, erased_at = $3 WHERE id = $1",
                )
                .bind(run)
                .bind(Uuid::nil())
                .bind(now)
                .execute(&mut *transaction)
                .await?;
            }
        });
        Ok::<_, StoreError>(!runs.is_empty())
    }

    async fn erase_events(&self, room: RoomId) -> Result<bool> {
        let next: Vec<(i64, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT seq, CAST(octet_length(data) + COALESCE(octet_length(raw), 0) AS BIGINT) FROM events \
                 WHERE room_id = $1 ORDER BY seq LIMIT $2",
            )
            .bind(room.0)
            .bind(ROWS_PER_STEP)
            .fetch_all(pool)
            .await
        })?;
        self.erase_up_to(room, "DELETE FROM events WHERE room_id = $1 AND seq <= $2", &next).await
    }

    async fn erase_messages(&self, room: RoomId) -> Result<bool> {
        let next: Vec<(i64, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT seq, CAST(octet_length(body) AS BIGINT) FROM messages WHERE room_id = $1 ORDER BY seq LIMIT $2",
            )
            .bind(room.0)
            .bind(ROWS_PER_STEP)
            .fetch_all(pool)
            .await
        })?;
        if let Some(last) = last_of_step(&next) {
            // Proposals for a skill name the message that they came from.
            writing!(self.database(), |transaction| {
                sqlx::query(
                    "UPDATE skill_proposals SET message_id = NULL WHERE message_id IN \
                     (SELECT id FROM messages WHERE room_id = $1 AND seq <= $2)",
                )
                .bind(room.0)
                .bind(last)
                .execute(&mut *transaction)
                .await?;
            });
        }
        self.erase_up_to(room, "DELETE FROM messages WHERE room_id = $1 AND seq <= $2", &next).await
    }

    async fn erase_up_to(&self, room: RoomId, statement: &'static str, next: &[(i64, i64)]) -> Result<bool> {
        let Some(last) = last_of_step(next) else { return Ok(false) };
        writing!(self.database(), |transaction| {
            sqlx::query(statement).bind(room.0).bind(last).execute(&mut *transaction).await?;
        });
        Ok(true)
    }

    async fn column(&self, statement: &'static str, room: RoomId) -> Result<Vec<Uuid>> {
        let found: Vec<Uuid> =
            reading!(self.database(), |pool| sqlx::query_scalar(statement).bind(room.0).fetch_all(pool).await)?;
        Ok(found)
    }
}

/// The last seq that one step erases: at least one row, then as many as fit.
fn last_of_step(next: &[(i64, i64)]) -> Option<i64> {
    let mut bytes = 0_i64;
    let fitting = next.iter().enumerate().take_while(|(index, (_, size))| {
        bytes = bytes.saturating_add(*size);
        *index == 0 || bytes <= BYTES_PER_STEP
    });
    fitting.last().map(|(_, (seq, _))| *seq)
}

#[cfg(test)]
mod tests {
    use super::{BYTES_PER_STEP, last_of_step};

    #[test]
    fn a_step_is_bounded_in_bytes_and_always_goes_on() {
        assert_eq!(last_of_step(&[]), None);
        assert_eq!(last_of_step(&[(7, BYTES_PER_STEP * 10), (8, 1)]), Some(7));
        assert_eq!(last_of_step(&[(1, 10), (2, 10), (3, BYTES_PER_STEP)]), Some(2));
        assert_eq!(last_of_step(&[(1, 10), (2, 10)]), Some(2));
    }
}

//! The index of the words of messages. It is filled in the background from what is stored, with a cursor for each room, so that
//! a commit never waits for it; it can be dropped and filled again at any time.
//!
//! The databases only store and compare words: `domain::search` splits texts into them. A row has its workspace as a word
//! too, so that the words of others take no time. Start at [`Store::index_messages`]; `query` finds, `changed` remembers the
//! rooms that have new messages. Rows are erased with their room (`crates/store/src/erase`).

mod changed;
mod query;

pub(crate) use changed::ChangedRooms;
pub use query::FoundMessage;

use crate::{
    Store, StoreError,
    catalog::messages::MessageRow,
    database::{Database, begin_sqlite, in_postgres, reading, writing},
    error::{Result, signed},
};
use domain::{ids::RoomId, message::Message, name::Name, owner::Owner, search::indexed_words};
use std::sync::atomic::Ordering;
use uuid::Uuid;

/// Messages of one step, and about how many bytes of words: on SQLite a commit waits for the step.
const MESSAGES_PER_STEP: i64 = 50;
const BYTES_PER_STEP: usize = 128 * 1024;
/// Rooms that are looked at in one query.
const ROOMS_PER_PAGE: i64 = 200;

/// The messages after `$2`, in the order in which they were stored: an answer is stored when it ends. Two queries, because
/// each has an index. An answer of an earlier version has no end.
const UNINDEXED: &str = "SELECT * FROM (\
     SELECT id, room_id, seq, run_id, body, created_at, seq AS stored FROM messages \
     WHERE room_id = $1 AND seq > $2 AND ended_seq IS NULL ORDER BY seq LIMIT $3) AS posts \
     UNION ALL SELECT * FROM (\
     SELECT id, room_id, seq, run_id, body, created_at, ended_seq AS stored FROM messages \
     WHERE room_id = $1 AND ended_seq > $2 ORDER BY ended_seq LIMIT $3) AS answers ORDER BY stored LIMIT $3";

/// A cursor only moves forward: another server may have done the same.
const MOVE_CURSOR: &str = "INSERT INTO search_cursors (room_id, seq) VALUES ($1, $2) \
     ON CONFLICT (room_id) DO UPDATE SET seq = excluded.seq WHERE search_cursors.seq < excluded.seq";

/// What a step has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStep {
    More,
    /// Every message of the room is in the index.
    Done,
}

/// A message as the index has it.
struct IndexedMessage {
    id: Uuid,
    seq: i64,
    words: Vec<String>,
}

/// The word that stands for a workspace. It begins with a letter for private use, so no text has it.
fn workspace_word(owner: &Owner) -> String {
    format!("\u{e000}{}", domain::hex::encode(owner.as_str().as_bytes()))
}

impl Store {
    /// Indexes some of the messages of a room that are not, in one short transaction.
    pub async fn index_messages(&self, room: RoomId) -> Result<IndexStep> {
        let Some((owner, head, cursor)) = self.search_state(room).await? else { return Ok(IndexStep::Done) };
        if head <= cursor {
            return Ok(IndexStep::Done);
        }
        let rows: Vec<StoredMessageRow> = reading!(self.database(), |pool| {
            sqlx::query_as(UNINDEXED).bind(room.0).bind(cursor).bind(MESSAGES_PER_STEP).fetch_all(pool).await
        })?;
        let (mut is_done, mut reached) = ((rows.len() as i64) < MESSAGES_PER_STEP, cursor);
        let (mut messages, mut bytes) = (Vec::new(), 0);
        for StoredMessageRow { message, stored } in rows {
            if bytes > BYTES_PER_STEP {
                is_done = false;
                break;
            }
            reached = stored;
            // What another version has stored is not found, and stops nothing.
            let Ok(message) = Message::try_from(message) else { continue };
            let mut words: Vec<String> = indexed_words(&message.text).into_iter().collect();
            if !words.is_empty() {
                words.push(workspace_word(&owner));
                bytes += words.iter().map(String::len).sum::<usize>();
                messages.push(IndexedMessage { id: message.id.0, seq: signed(message.seq), words });
            }
        }
        // The head was read before the messages: all that were stored by then are among them.
        let reached = if is_done { head.max(reached) } else { reached };
        self.store_words(room, &messages, reached).await?;
        Ok(if is_done { IndexStep::Done } else { IndexStep::More })
    }

    /// The workspace, the head and the cursor of a room that is not deleted.
    async fn search_state(&self, room: RoomId) -> Result<Option<(Owner, i64, i64)>> {
        let found: Option<(String, i64, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT r.owner, j.head, COALESCE(c.seq, 0) FROM rooms r JOIN journals j ON j.room_id = r.id \
                 LEFT JOIN search_cursors c ON c.room_id = r.id WHERE r.id = $1 AND r.deleted_at IS NULL",
            )
            .bind(room.0)
            .fetch_optional(pool)
            .await
        })?;
        let Some((owner, head, cursor)) = found else { return Ok(None) };
        let owner = Name::parse(&owner).map_err(|error| StoreError::unreadable("a name").caused_by(error))?;
        Ok(Some((Owner::new(owner), head, cursor)))
    }

    async fn store_words(&self, room: RoomId, messages: &[IndexedMessage], reached: i64) -> Result<()> {
        // A room that was deleted meanwhile may be erased already: nothing of it may come back.
        const IS_THERE: &str = "SELECT 1 FROM rooms WHERE id = $1 AND deleted_at IS NULL";
        match self.database() {
            Database::Sqlite { write, external_writes, .. } => {
                let mut transaction = begin_sqlite(write, "BEGIN IMMEDIATE").await?;
                external_writes.fetch_add(1, Ordering::Relaxed);
                let there: Option<i64> =
                    sqlx::query_scalar(IS_THERE).bind(room.0).fetch_optional(&mut *transaction).await?;
                if there.is_none() {
                    return Ok(());
                }
                for message in messages {
                    let entry: Option<i64> = sqlx::query_scalar(
                        "INSERT INTO search_entries (room_id, message_id, seq) VALUES ($1, $2, $3) \
                         ON CONFLICT (message_id) DO NOTHING RETURNING id",
                    )
                    .bind(room.0)
                    .bind(message.id)
                    .bind(message.seq)
                    .fetch_optional(&mut *transaction)
                    .await?;
                    let Some(entry) = entry else { continue };
                    sqlx::query("INSERT INTO search_index (rowid, words) VALUES ($1, $2)")
                        .bind(entry)
                        .bind(message.words.join(" "))
                        .execute(&mut *transaction)
                        .await?;
                }
                sqlx::query(MOVE_CURSOR).bind(room.0).bind(reached).execute(&mut *transaction).await?;
                transaction.commit().await?;
            }
            Database::Postgres(pool) => in_postgres!(pool, "BEGIN", |transaction| {
                // Held, so that the room is not erased meanwhile.
                let there: Option<i32> =
                    sqlx::query_scalar("SELECT 1 FROM rooms WHERE id = $1 AND deleted_at IS NULL FOR KEY SHARE")
                        .bind(room.0)
                        .fetch_optional(&mut *transaction)
                        .await?;
                if there.is_none() {
                    return Ok(());
                }
                for message in messages {
                    sqlx::query(
                        "INSERT INTO search_entries (room_id, message_id, seq, words) \
                         VALUES ($1, $2, $3, array_to_tsvector($4)) ON CONFLICT (message_id) DO NOTHING",
                    )
                    .bind(room.0)
                    .bind(message.id)
                    .bind(message.seq)
                    .bind(&message.words)
                    .execute(&mut *transaction)
                    .await?;
                }
                sqlx::query(MOVE_CURSOR).bind(room.0).bind(reached).execute(&mut *transaction).await?;
            }),
        }
        Ok(())
    }

    /// Erases some of the words of a room. Returns whether there were any.
    pub(crate) async fn erase_indexed_words(&self, room: RoomId) -> Result<bool> {
        let entries: Vec<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT id FROM search_entries WHERE room_id = $1 ORDER BY id LIMIT $2")
                .bind(room.0)
                .bind(MESSAGES_PER_STEP)
                .fetch_all(pool)
                .await
        })?;
        let is_sqlite = matches!(self.database(), Database::Sqlite { .. });
        writing!(self.database(), |transaction| {
            for entry in &entries {
                // PostgreSQL has the words in the entry itself.
                if is_sqlite {
                    let words = sqlx::query("DELETE FROM search_index WHERE rowid = $1").bind(entry);
                    words.execute(&mut *transaction).await?;
                }
                let row = sqlx::query("DELETE FROM search_entries WHERE id = $1").bind(entry);
                row.execute(&mut *transaction).await?;
            }
        });
        Ok::<_, StoreError>(!entries.is_empty())
    }

    /// Returns rooms with messages that are not in the index, after one in the order of their ids, and where to go on; `None`
    /// at the end. Reads a part of the rooms at a time.
    pub async fn unindexed_rooms(&self, after: RoomId) -> Result<(Vec<RoomId>, Option<RoomId>)> {
        let page: Vec<(Uuid, i64, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT j.room_id, j.head, COALESCE(c.seq, 0) FROM journals j \
                 LEFT JOIN search_cursors c ON c.room_id = j.room_id WHERE j.room_id > $1 ORDER BY j.room_id LIMIT $2",
            )
            .bind(after.0)
            .bind(ROOMS_PER_PAGE)
            .fetch_all(pool)
            .await
        })?;
        let next = page.last().filter(|_| page.len() as i64 == ROOMS_PER_PAGE).map(|(room, ..)| RoomId(*room));
        let behind = page.into_iter().filter(|(_, head, cursor)| head > cursor).map(|(room, ..)| RoomId(room));
        Ok((behind.collect(), next))
    }

    /// The rooms that got messages on this server since the last call; `None` if there were too many to remember.
    pub fn take_changed_rooms(&self) -> Option<Vec<RoomId>> {
        self.changed_rooms().take()
    }

    /// Returns when a room has got a message on this server.
    pub async fn messages_added(&self) {
        self.changed_rooms().changed().await;
    }

    /// Empties the index; it is filled again in the background.
    pub async fn drop_search_index(&self) -> Result<()> {
        match self.database() {
            Database::Sqlite { write, external_writes, .. } => {
                let mut transaction = begin_sqlite(write, "BEGIN IMMEDIATE").await?;
                external_writes.fetch_add(1, Ordering::Relaxed);
                for statement in
                    ["DELETE FROM search_index", "DELETE FROM search_entries", "DELETE FROM search_cursors"]
                {
                    sqlx::query(statement).execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
            }
            Database::Postgres(pool) => in_postgres!(pool, "BEGIN", |transaction| {
                for statement in ["DELETE FROM search_entries", "DELETE FROM search_cursors"] {
                    sqlx::query(statement).execute(&mut *transaction).await?;
                }
            }),
        }
        Ok(())
    }
}

crate::row::row! {
    struct StoredMessageRow {
        ..message: MessageRow,
        stored: i64,
    }
}

//! Finds messages by their words, newest first.

use super::workspace_word;
use crate::{Store, catalog::messages::MessageRow, database::Database, error::Result};
use domain::{message::Message, owner::Owner, search::SearchQuery};

/// A message that was found.
#[derive(Debug, Clone)]
pub struct FoundMessage {
    /// Newer messages have larger ones; a page goes on below the last.
    pub entry: i64,
    pub message: Message,
    pub room_name: String,
}

crate::row::row! {
    struct FoundMessageRow {
        ..message: MessageRow,
        entry: i64,
        room_name: String,
    }
}

macro_rules! select_found {
    ($from:literal, $matches:literal) => {
        concat!(
            "SELECT m.id, m.room_id, m.seq, m.run_id, m.body, m.created_at, e.id AS entry, r.name AS room_name FROM ",
            $from,
            " JOIN rooms r ON r.id = e.room_id JOIN messages m ON m.id = e.message_id WHERE ",
            $matches,
            " AND r.owner = $2 AND r.deleted_at IS NULL ORDER BY e.id DESC LIMIT $4"
        )
    };
}

impl Store {
    /// Returns the messages of a workspace that have all words of a query, newest first, below an entry.
    pub async fn search_messages(
        &self,
        owner: &Owner,
        query: &SearchQuery,
        below: Option<i64>,
        limit: u32,
    ) -> Result<Vec<FoundMessage>> {
        let Some((whole, beginning)) = query.parts() else { return Ok(Vec::new()) };
        // Words are letters and digits, so they need no escape in a quoted text.
        let own = workspace_word(owner);
        let whole = std::iter::once(&own).chain(whole);
        let (below, limit) = (below.unwrap_or(i64::MAX), i64::from(limit));
        let rows: Vec<FoundMessageRow> = match self.database() {
            Database::Sqlite { read, .. } => {
                let mut words: Vec<String> = whole.map(|word| format!("\"{word}\"")).collect();
                words.push(format!("\"{beginning}\"*"));
                sqlx::query_as(select_found!(
                    "search_index i JOIN search_entries e ON e.id = i.rowid",
                    "i.search_index MATCH $1 AND i.rowid < $3"
                ))
                .bind(words.join(" "))
                .bind(owner.as_str())
                .bind(below)
                .bind(limit)
                .fetch_all(read)
                .await?
            }
            Database::Postgres(pool) => {
                let mut words: Vec<String> = whole.map(|word| format!("'{word}'")).collect();
                words.push(format!("'{beginning}':*"));
                sqlx::query_as(select_found!("search_entries e", "e.words @@ CAST($1 AS tsquery) AND e.id < $3"))
                    .bind(words.join(" & "))
                    .bind(owner.as_str())
                    .bind(below)
                    .bind(limit)
                    .fetch_all(pool)
                    .await?
            }
        };
        let found = |row: FoundMessageRow| {
            let FoundMessageRow { message, entry, room_name } = row;
            Ok(FoundMessage { entry, message: message.try_into()?, room_name })
        };
        rows.into_iter().map(found).collect()
    }
}

//! Rooms and who sits in them.

use super::idempotency::{Attempt, remember};
use crate::{
    Error, Store,
    database::{snapshot, writing},
    error::{Result, unsigned},
    journal::List,
};
use domain::{
    ids::{AgentId, ProjectId, RoomId},
    message::{Author, Message},
    name::Name,
    owner::Owner,
    position::Seq,
    room::{LAST_MESSAGE_CHARS, LastMessage, Room, RoomPolicy, RoomSummary},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use uuid::Uuid;

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    name: String,
    policy: String,
    project_id: Option<Uuid>,
    head: i64,
    created_at: i64,
    updated_at: i64,
}

#[derive(sqlx::FromRow)]
struct SummaryRow {
    #[sqlx(flatten)]
    room: Row,
    last_message: Option<String>,
    unfinished: i64,
    waiting: i64,
}

/// What was said last, in the room's own row.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredLast {
    seq: Seq,
    author: Author,
    text: String,
    at: i64,
}

impl StoredLast {
    /// `None` for who said nothing.
    pub(crate) fn of(message: &Message, seq: Seq) -> Option<Self> {
        if message.text.is_empty() && message.attachments.is_empty() {
            return None;
        }
        let text = message.text.chars().take(LAST_MESSAGE_CHARS).collect();
        Some(Self { seq, author: message.author.clone(), text, at: message.created_at.as_millis() })
    }
}

impl From<StoredLast> for LastMessage {
    fn from(last: StoredLast) -> Self {
        let StoredLast { seq, author, text, at } = last;
        Self { seq, author, text, created_at: Timestamp::from_millis(at) }
    }
}

impl SummaryRow {
    fn with(self, agents: Vec<AgentId>) -> Result<RoomSummary> {
        let last: Option<StoredLast> = self.last_message.as_deref().map(serde_json::from_str).transpose()?;
        Ok(RoomSummary {
            room: self.room.with(agents)?,
            busy: self.unfinished > 0,
            waiting: self.waiting > 0,
            last_message: last.map(LastMessage::from),
        })
    }
}

const SEATS: &str = "SELECT p.agent_id FROM participants p JOIN agents a ON a.id = p.agent_id \
     WHERE p.room_id = $1 AND a.deleted_at IS NULL ORDER BY p.ordinal";

/// Everything a list shows of a room, each part found by an index.
macro_rules! select_summaries {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.name, r.policy, r.project_id, j.head, r.created_at, r.updated_at, r.last_message, ",
            "(SELECT COUNT(*) FROM queue q WHERE q.room_id = r.id) AS unfinished, ",
            "(SELECT COUNT(*) FROM queue q JOIN runs u ON u.id = q.run_id WHERE q.room_id = r.id ",
            "AND u.status = 'waiting_for_approval') AS waiting ",
            "FROM rooms r JOIN journals j ON j.room_id = r.id WHERE r.owner = $1 AND r.deleted_at IS NULL ",
            $rest
        )
    };
}

impl Row {
    fn with(self, agents: Vec<AgentId>) -> Result<Room> {
        Ok(Room {
            id: RoomId(self.id),
            name: Name::parse(&self.name).map_err(|error| Error::Unreadable(error.to_string()))?,
            agents,
            project_id: self.project_id.map(ProjectId),
            policy: serde_json::from_str(&self.policy)?,
            head: unsigned(self.head)?,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

impl Store {
    /// Newest activity first. Two queries, however many rooms there are.
    pub async fn rooms(&self, owner: &Owner, limit: u32) -> Result<Vec<RoomSummary>> {
        let (rows, seats) = snapshot!(self.database(), |transaction| {
            let rows: Vec<SummaryRow> =
                sqlx::query_as(select_summaries!("ORDER BY r.updated_at DESC, r.id DESC LIMIT $2"))
                    .bind(owner.as_str())
                    .bind(i64::from(limit))
                    .fetch_all(&mut *transaction)
                    .await?;
            let seats: Vec<(Uuid, Uuid)> = sqlx::query_as(
                "SELECT p.room_id, p.agent_id FROM participants p JOIN agents a ON a.id = p.agent_id \
                 JOIN rooms r ON r.id = p.room_id WHERE r.owner = $1 AND r.deleted_at IS NULL \
                 AND a.deleted_at IS NULL ORDER BY p.ordinal",
            )
            .bind(owner.as_str())
            .fetch_all(&mut *transaction)
            .await?;
            (rows, seats)
        });
        let mut agents: HashMap<Uuid, Vec<AgentId>> = HashMap::new();
        for (room, agent) in seats {
            agents.entry(room).or_default().push(AgentId(agent));
        }
        rows.into_iter()
            .map(|row| {
                let seats = agents.remove(&row.room.id).unwrap_or_default();
                row.with(seats)
            })
            .collect()
    }

    pub async fn room_summary(&self, owner: &Owner, id: RoomId) -> Result<RoomSummary> {
        let (row, seats) = snapshot!(self.database(), |transaction| {
            let row: SummaryRow = sqlx::query_as(select_summaries!("AND r.id = $2"))
                .bind(owner.as_str())
                .bind(id.0)
                .fetch_one(&mut *transaction)
                .await?;
            let seats: Vec<(Uuid,)> = sqlx::query_as(SEATS).bind(id.0).fetch_all(&mut *transaction).await?;
            (row, seats)
        });
        row.with(seats.into_iter().map(|(agent,)| AgentId(agent)).collect())
    }

    pub async fn room(&self, owner: &Owner, id: RoomId) -> Result<Room> {
        let (row, seats) = snapshot!(self.database(), |transaction| {
            let row: Row = sqlx::query_as(
                "SELECT r.id, r.name, r.policy, r.project_id, j.head, r.created_at, r.updated_at FROM rooms r \
                 JOIN journals j ON j.room_id = r.id WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .fetch_one(&mut *transaction)
            .await?;
            let seats: Vec<(Uuid,)> = sqlx::query_as(SEATS).bind(id.0).fetch_all(&mut *transaction).await?;
            (row, seats)
        });
        row.with(seats.into_iter().map(|(agent,)| AgentId(agent)).collect())
    }

    pub async fn update_room(
        &self,
        owner: &Owner,
        id: RoomId,
        name: &Name,
        policy: &RoomPolicy,
        attempt: Option<&Attempt>,
    ) -> Result<Room> {
        let now = Timestamp::now();
        let policy = serde_json::to_string(policy)?;
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, id, now);
            let changed = sqlx::query(
                "UPDATE rooms SET name = $3, policy = $4, updated_at = $5 WHERE id = $1 AND owner = $2 \
                 AND deleted_at IS NULL",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .bind(name.as_str())
            .bind(policy.as_str())
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await?;
            if changed.rows_affected() == 0 {
                return Err(Error::NotFound);
            }
        });
        self.watches().listed(owner, List::Rooms);
        self.room(owner, id).await
    }

    pub async fn delete_room(&self, owner: &Owner, id: RoomId, attempt: Option<&Attempt>) -> Result<()> {
        let now = Timestamp::now();
        writing!(self.database(), |transaction| {
            remember!(transaction, owner, attempt, id, now);
            let changed =
                sqlx::query("UPDATE rooms SET deleted_at = $3 WHERE id = $1 AND owner = $2 AND deleted_at IS NULL")
                    .bind(id.0)
                    .bind(owner.as_str())
                    .bind(now.as_millis())
                    .execute(&mut *transaction)
                    .await?;
            if changed.rows_affected() == 0 {
                return Err(Error::NotFound);
            }
        });
        self.watches().listed(owner, List::Rooms);
        Ok(())
    }
}

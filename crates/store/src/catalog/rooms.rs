//! Rooms and their participants.

use super::{list_cursor::ListCursor, owned::Delete, projects};
use crate::{
    Store, StoreError,
    commit::{ChangeContext, IdempotentRequest, Refusal, Statement},
    database::{reading, snapshot},
    erase::ErasedObject,
    error::{Result, signed, unsigned},
    notify::OwnerList,
    row::row,
};
use domain::{
    actor::Actor,
    audit::{AuditAction, AuditEntry, AuditedObject},
    ids::{AgentId, ProjectId, RoomId, RunId},
    message::{Author, Message},
    name::Name,
    owner::Owner,
    position::Seq,
    room::{
        ForkedFrom, LAST_MESSAGE_CHARS, LastMessage, Room, RoomPlacement, RoomPlacementPatch, RoomPolicy, RoomSummary,
    },
    run::RunStatus,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use uuid::Uuid;

row! {
    struct RoomRow {
        id: Uuid,
        name: String,
        policy: String,
        project_id: Option<Uuid>,
        parent_run_id: Option<Uuid>,
        forked_room_id: Option<Uuid>,
        forked_seq: Option<i64>,
        head: i64,
        created_at: i64,
        updated_at: i64,
    }
}

row! {
    struct RoomSummaryRow {
        ..room: RoomRow,
        pinned_at: Option<i64>,
        archived_at: Option<i64>,
        folder: Option<String>,
        last_message: Option<String>,
        unfinished: i64,
        waiting: i64,
        newest_run: Option<String>,
    }
}

/// The last message, stored in the room's row.
#[derive(Serialize, Deserialize)]
struct StoredLastMessage {
    seq: Seq,
    author: Author,
    text: String,
    at: i64,
}

impl StoredLastMessage {
    /// Returns `None` for an empty message.
    fn of(message: &Message, seq: Seq) -> Option<Self> {
        if message.text.is_empty() && message.attachments.is_empty() {
            return None;
        }
        let text = message.text.chars().take(LAST_MESSAGE_CHARS).collect();
        Some(Self { seq, author: message.author.clone(), text, at: message.created_at.as_millis() })
    }
}

impl From<StoredLastMessage> for LastMessage {
    fn from(last: StoredLastMessage) -> Self {
        let StoredLastMessage { seq, author, text, at } = last;
        Self { seq, author, text, created_at: Timestamp::from_millis(at) }
    }
}

impl RoomSummaryRow {
    fn with(self, agents: Vec<AgentId>) -> Result<RoomSummary> {
        let last: Option<StoredLastMessage> = self.last_message.as_deref().map(serde_json::from_str).transpose()?;
        Ok(RoomSummary {
            room: self.room.with(agents)?,
            placement: RoomPlacement {
                pinned: self.pinned_at.is_some(),
                archived: self.archived_at.is_some(),
                folder: self.folder.as_deref().map(parse_name).transpose()?,
            },
            busy: self.unfinished > 0,
            waiting: self.waiting > 0,
            failed: self.newest_run.as_deref() == Some(RunStatus::Failed.as_str()),
            last_message: last.map(LastMessage::from),
        })
    }
}

fn parse_name(text: &str) -> Result<Name> {
    Name::parse(text).map_err(|error| StoreError::unreadable("a name").caused_by(error))
}

const PARTICIPANTS: &str = "SELECT p.agent_id FROM participants p JOIN agents a ON a.id = p.agent_id \
     WHERE p.room_id = $1 AND a.deleted_at IS NULL ORDER BY p.ordinal";

/// The agents of a room, in their order.
macro_rules! participants {
    ($transaction:ident, $room:ident) => {{
        let found: Vec<(Uuid,)> = sqlx::query_as(PARTICIPANTS).bind($room.0).fetch_all(&mut *$transaction).await?;
        found.into_iter().map(|(agent,)| AgentId(agent)).collect()
    }};
}

/// All columns of a room summary, each found by an index.
macro_rules! select_summaries {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.name, r.policy, r.project_id, r.parent_run_id, j.head, r.created_at, r.updated_at, r.last_message, ",
            "r.forked_room_id, r.forked_seq, ",
            "r.pinned_at, r.archived_at, r.folder, ",
            "(SELECT COUNT(*) FROM queue q WHERE q.room_id = r.id) AS unfinished, ",
            "(SELECT COUNT(*) FROM queue q JOIN runs u ON u.id = q.run_id WHERE q.room_id = r.id ",
            "AND u.status = 'waiting_for_approval') AS waiting, ",
            "(SELECT u.status FROM runs u WHERE u.room_id = r.id ORDER BY u.queued_seq DESC LIMIT 1) AS newest_run ",
            "FROM rooms r JOIN journals j ON j.room_id = r.id WHERE r.owner = $1 AND r.deleted_at IS NULL ",
            $rest
        )
    };
}

impl RoomRow {
    fn with(self, agents: Vec<AgentId>) -> Result<Room> {
        Ok(Room {
            id: RoomId(self.id),
            name: parse_name(&self.name)?,
            agents,
            project_id: self.project_id.map(ProjectId),
            parent_run_id: self.parent_run_id.map(RunId),
            forked_from: match self.forked_room_id.zip(self.forked_seq) {
                Some((room, seq)) => Some(ForkedFrom { room_id: RoomId(room), seq: unsigned(seq)? }),
                None => None,
            },
            policy: serde_json::from_str(&self.policy)?,
            head: unsigned(self.head)?,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

/// Creates a room with an empty journal, in its project.
pub(crate) fn create(context: &ChangeContext, owner: &Owner, room: &Room) -> Result<Vec<Statement>> {
    let row = Statement::new(
        "INSERT INTO rooms (id, owner, name, policy, project_id, parent_run_id, forked_room_id, forked_seq, created_at, updated_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
    )
    .with(room.id.0)
    .with(owner.as_str())
    .with(room.name.as_str())
    .with(serde_json::to_string(&room.policy)?)
    .with(room.project_id.map(|id| id.0))
    .with(room.parent_run_id.map(|id| id.0))
    .with(room.forked_from.map(|from| from.room_id.0))
    .with(room.forked_from.map(|from| signed(from.seq)))
    .with(context.now.as_millis());
    let journal = Statement::new("INSERT INTO journals (room_id, head) VALUES ($1, 0)").with(room.id.0);
    let project = room.project_id.map(|project| projects::hold(owner, project));
    Ok(project.into_iter().chain([row, journal]).collect())
}

pub(crate) fn update(
    context: &ChangeContext,
    owner: &Owner,
    name: Option<&Name>,
    policy: Option<&RoomPolicy>,
) -> Result<Statement> {
    let policy = policy.map(serde_json::to_string).transpose()?;
    let statement = Statement::new(
        "UPDATE rooms SET name = COALESCE($3, name), policy = COALESCE($4, policy), updated_at = $5 \
         WHERE id = $1 AND owner = $2 AND deleted_at IS NULL",
    );
    Ok(statement
        .with(context.room.0)
        .with(owner.as_str())
        .with(name.map(Name::as_str))
        .with(policy)
        .with(context.now.as_millis())
        .must_change_or(Refusal::NotFound))
}

/// Pins, archives or files a room. `$3` and `$4` are 1 for yes, 0 for no and 2 for unchanged; an empty folder is none.
pub(crate) fn place(context: &ChangeContext, owner: &Owner, patch: &RoomPlacementPatch) -> Statement {
    let wanted = |choice: Option<bool>| choice.map_or(2_i64, i64::from);
    let folder = patch.folder.as_ref().map(|folder| folder.as_ref().map_or("", Name::as_str));
    Statement::new(
        "UPDATE rooms SET pinned_at = CASE $3 WHEN 1 THEN COALESCE(pinned_at, $6) WHEN 0 THEN NULL ELSE pinned_at END, \
         archived_at = CASE $4 WHEN 1 THEN COALESCE(archived_at, $6) WHEN 0 THEN NULL ELSE archived_at END, \
         folder = NULLIF(COALESCE($5, folder), '') WHERE id = $1 AND owner = $2 AND deleted_at IS NULL",
    )
    .with(context.room.0)
    .with(owner.as_str())
    .with(wanted(patch.pinned))
    .with(wanted(patch.archived))
    .with(folder)
    .with(context.now.as_millis())
    .must_change_or(Refusal::NotFound)
}

/// Adds a participant as the last one; a participant keeps its position.
pub(crate) fn join(context: &ChangeContext, agent_id: AgentId) -> Statement {
    Statement::new(
        "INSERT INTO participants (room_id, agent_id, ordinal) \
         SELECT $1, $2, COALESCE(MAX(ordinal), 0) + 1 FROM participants WHERE room_id = $1 \
         ON CONFLICT (room_id, agent_id) DO NOTHING",
    )
    .with(context.room.0)
    .with(agent_id.0)
}

pub(crate) fn leave(context: &ChangeContext, agent_id: AgentId) -> Statement {
    Statement::new("DELETE FROM participants WHERE room_id = $1 AND agent_id = $2")
        .with(context.room.0)
        .with(agent_id.0)
}

/// Records the activity of a new message in the room's row.
pub(crate) fn set_last_message(context: &ChangeContext, message: &Message, seq: Seq) -> Result<Statement> {
    let last = StoredLastMessage::of(message, seq).map(|last| serde_json::to_string(&last));
    Ok(Statement::new("UPDATE rooms SET updated_at = $2, last_message = COALESCE($3, last_message) WHERE id = $1")
        .with(context.room.0)
        .with(context.now.as_millis())
        .with(last.transpose()?))
}

impl Store {
    /// Returns the rooms with the newest activity, without those of child runs. Always two queries.
    pub async fn rooms(&self, owner: &Owner, limit: u32) -> Result<Vec<RoomSummary>> {
        self.rooms_before(owner, None, None, limit).await
    }

    /// The rooms after a position in the list, newest activity first; `archived`: only those that are, or are not.
    pub async fn rooms_before(
        &self,
        owner: &Owner,
        cursor: Option<ListCursor>,
        archived: Option<bool>,
        limit: u32,
    ) -> Result<Vec<RoomSummary>> {
        let (before, last) = ListCursor::values(cursor);
        let (rows, participants) = snapshot!(self.database(), |transaction| {
            let rows: Vec<RoomSummaryRow> = sqlx::query_as(select_summaries!(
                "AND r.parent_run_id IS NULL AND (r.updated_at < $2 OR r.updated_at = $2 AND r.id < $3) \
                     AND ($5 = 2 OR CASE WHEN r.archived_at IS NULL THEN 0 ELSE 1 END = $5) \
                     ORDER BY r.updated_at DESC, r.id DESC LIMIT $4"
            ))
            .bind(owner.as_str())
            .bind(before)
            .bind(last)
            .bind(i64::from(limit))
            .bind(archived.map_or(2_i64, i64::from))
            .fetch_all(&mut *transaction)
            .await?;
            let participants: Vec<(Uuid, Uuid)> = sqlx::query_as(
                "SELECT p.room_id, p.agent_id FROM participants p JOIN agents a ON a.id = p.agent_id \
                 JOIN rooms r ON r.id = p.room_id WHERE r.owner = $1 AND r.deleted_at IS NULL \
                 AND a.deleted_at IS NULL ORDER BY p.ordinal",
            )
            .bind(owner.as_str())
            .fetch_all(&mut *transaction)
            .await?;
            (rows, participants)
        });
        let mut agents: HashMap<Uuid, Vec<AgentId>> = HashMap::new();
        for (room, agent) in participants {
            agents.entry(room).or_default().push(AgentId(agent));
        }
        rows.into_iter()
            .map(|row| {
                let participants = agents.remove(&row.room.id).unwrap_or_default();
                row.with(participants)
            })
            .collect()
    }

    /// Returns the names of rooms with the time of their last activity, most recent first. One small query, for the search.
    pub async fn room_names(&self, owner: &Owner, limit: u32) -> Result<Vec<(RoomId, String, Timestamp)>> {
        let rows: Vec<(Uuid, String, i64)> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, name, updated_at FROM rooms WHERE owner = $1 AND deleted_at IS NULL AND parent_run_id IS NULL \
                 ORDER BY updated_at DESC, id DESC LIMIT $2",
            )
            .bind(owner.as_str())
            .bind(i64::from(limit))
            .fetch_all(pool)
            .await
        })?;
        Ok(rows.into_iter().map(|(id, name, at)| (RoomId(id), name, Timestamp::from_millis(at))).collect())
    }

    pub async fn room_summary(&self, owner: &Owner, id: RoomId) -> Result<RoomSummary> {
        let (row, participants) = snapshot!(self.database(), |transaction| {
            let row: RoomSummaryRow = sqlx::query_as(select_summaries!("AND r.id = $2"))
                .bind(owner.as_str())
                .bind(id.0)
                .fetch_one(&mut *transaction)
                .await?;
            (row, participants!(transaction, id))
        });
        row.with(participants)
    }

    pub async fn room(&self, owner: &Owner, id: RoomId) -> Result<Room> {
        let (row, participants) = snapshot!(self.database(), |transaction| {
            let row: RoomRow = sqlx::query_as(
                "SELECT r.id, r.name, r.policy, r.project_id, r.parent_run_id, r.forked_room_id, r.forked_seq, j.head, r.created_at, \
                 r.updated_at FROM rooms r \
                 JOIN journals j ON j.room_id = r.id WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .fetch_one(&mut *transaction)
            .await?;
            (row, participants!(transaction, id))
        });
        row.with(participants)
    }

    /// Deletes a room. It is erased when the grace period is over.
    pub async fn delete_room(&self, actor: &Actor, id: RoomId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let delete = Delete {
            statement: "UPDATE rooms SET deleted_at = $3 WHERE id = $1 AND owner = $2 AND deleted_at IS NULL",
            object: ErasedObject::Room(id),
            purge: false,
        };
        let entry = AuditEntry::new(actor, AuditAction::Delete, AuditedObject::Room, id).in_room(id);
        self.mark_deleted(delete, id.0, entry, attempt).await?;
        self.list_changed(&actor.workspace, OwnerList::Rooms);
        Ok(())
    }

    /// Deletes a room, or one that is deleted already, to be erased without the grace period.
    pub async fn purge_room(&self, actor: &Actor, id: RoomId, attempt: Option<&IdempotentRequest>) -> Result<()> {
        let delete = Delete {
            statement: "UPDATE rooms SET deleted_at = COALESCE(deleted_at, $3) WHERE id = $1 AND owner = $2",
            object: ErasedObject::Room(id),
            purge: true,
        };
        let entry = AuditEntry::new(actor, AuditAction::Purge, AuditedObject::Room, id).in_room(id);
        self.mark_deleted(delete, id.0, entry, attempt).await?;
        self.list_changed(&actor.workspace, OwnerList::Rooms);
        Ok(())
    }
}

//! Messages: the folded view, written in the transaction of the event that completes them.

use super::events::EventRow;
use crate::{
    Store, StoreError,
    commit::{ChangeContext, ProviderSessionRecord, Statement},
    database::{reading, snapshot},
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    event::{Event, EventBody, EventType},
    fold::Answer,
    ids::{AgentId, MessageId, RoomId, RunId},
    message::{Attachment, Author, Message, MessageStatus, Part, join_texts},
    name::Name,
    owner::Owner,
    position::{Epoch, Seq},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Messages folded up to exactly `head`: events after it are neither missing nor repeated.
#[derive(Debug)]
pub struct MessageHistory {
    pub epoch: Epoch,
    pub head: Seq,
    pub messages: Vec<Message>,
}

/// Which messages of a room a run receives.
#[derive(Debug, Clone, Copy)]
pub struct TranscriptRange {
    /// Posts before this seq; later ones are left to their own runs.
    pub posts_before: Seq,
    /// Answers that had ended at this seq, also if they began later than the posts.
    pub answers_until: Seq,
}

/// The parts of a message that have no column. Text is derived from the parts.
#[derive(Serialize, Deserialize)]
struct StoredMessageBody {
    author: Author,
    status: MessageStatus,
    parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
}

impl StoredMessageBody {
    fn of(message: &Message) -> Self {
        Self {
            author: message.author.clone(),
            status: message.status,
            parts: message.parts.clone(),
            attachments: message.attachments.clone(),
        }
    }
}

row! {
    struct MessageRow {
        id: Uuid,
        room_id: Uuid,
        seq: i64,
        run_id: Option<Uuid>,
        body: String,
        created_at: i64,
    }
}

impl TryFrom<MessageRow> for Message {
    type Error = StoreError;
    fn try_from(row: MessageRow) -> Result<Self> {
        let body: StoredMessageBody = serde_json::from_str(&row.body)?;
        let (text, thinking) = join_texts(&body.parts);
        Ok(Self {
            id: MessageId(row.id),
            room_id: RoomId(row.room_id),
            seq: unsigned(row.seq)?,
            author: body.author,
            run_id: row.run_id.map(RunId),
            status: body.status,
            text,
            thinking,
            parts: body.parts,
            attachments: body.attachments,
            created_at: Timestamp::from_millis(row.created_at),
        })
    }
}

const COLUMNS_IN_RANGE: &str = "SELECT id, room_id, seq, run_id, body, created_at FROM messages \
     WHERE room_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC LIMIT $4";
/// An answer is stored when it ends. `$4` and `$5` are the seqs up to which the session knows posts and answers, `$9` is
/// where its own answer begins. The second part finds the answers that began before all of this and ended later, which
/// happens if several agents answer at the same time; `$10` turns it off. One query, because every run waits for it
/// before its first token.
const MESSAGES_BEFORE_RUN: &str = "SELECT * FROM (\
     SELECT id, room_id, seq, run_id, body, created_at FROM messages \
     WHERE room_id = $1 AND seq > $6 AND ((run_id IS NULL AND seq > $4 AND seq < $2) OR (run_id IS NOT NULL \
     AND COALESCE(ended_seq, seq) > $5 AND COALESCE(ended_seq, seq) <= $8 AND seq <> $9)) \
     AND EXISTS (SELECT 1 FROM rooms r WHERE r.id = $1 AND r.owner = $7 AND r.deleted_at IS NULL) \
     ORDER BY seq DESC LIMIT $3) AS newer \
     UNION ALL SELECT id, room_id, seq, run_id, body, created_at FROM messages \
     WHERE room_id = $1 AND ended_seq > $10 AND ended_seq <= $8 AND seq <= $6 AND seq <> $9 \
     AND EXISTS (SELECT 1 FROM rooms r WHERE r.id = $1 AND r.owner = $7 AND r.deleted_at IS NULL) \
     ORDER BY seq DESC LIMIT $3";
const STREAMING: &str = "SELECT e.room_id, e.seq, e.id, e.kind, e.run_id, e.agent_id, e.created_at, e.data, \
     CAST(NULL AS TEXT) AS raw FROM queue q JOIN events e ON e.room_id = q.room_id AND e.seq >= q.queued_seq \
     AND e.run_id = q.run_id WHERE q.room_id = $1 AND q.holder IS NOT NULL ORDER BY e.seq";

/// `ended` is the seq of the event that ends the answer's run.
pub(crate) fn insert(context: &ChangeContext, message: &Message, seq: Seq, ended: Option<Seq>) -> Result<Statement> {
    Ok(Statement::new(
        "INSERT INTO messages (id, room_id, seq, run_id, body, created_at, ended_seq, user_id) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .with(message.id.0)
    .with(context.room.0)
    .with(signed(seq))
    .with(message.run_id.map(|id| id.0))
    .with(serde_json::to_string(&StoredMessageBody::of(message))?)
    .with(message.created_at.as_millis())
    .with(ended.map(signed))
    .with(message.author.user_id().map(|user| user.0)))
}

impl Store {
    /// Returns the newest `limit` messages with `since < seq < before`, oldest first, including unfinished answers.
    pub async fn history(
        &self,
        owner: &Owner,
        room: RoomId,
        since: Seq,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<MessageHistory> {
        let before = before.map_or(i64::MAX, signed);
        let (head, rows, events, agents) = snapshot!(self.database(), |transaction| {
            let head: i64 = sqlx::query_scalar(
                "SELECT j.head FROM journals j JOIN rooms r ON r.id = j.room_id \
                 WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_one(&mut *transaction)
            .await?;
            let rows: Vec<MessageRow> = sqlx::query_as(COLUMNS_IN_RANGE)
                .bind(room.0)
                .bind(signed(since))
                .bind(before)
                .bind(i64::from(limit))
                .fetch_all(&mut *transaction)
                .await?;
            let events: Vec<EventRow> = sqlx::query_as(STREAMING).bind(room.0).fetch_all(&mut *transaction).await?;
            let agents: Vec<(Uuid, String)> = sqlx::query_as("SELECT id, name FROM agents WHERE owner = $1")
                .bind(owner.as_str())
                .fetch_all(&mut *transaction)
                .await?;
            (head, rows, events, agents)
        });
        let mut messages = rows.into_iter().map(Message::try_from).collect::<Result<Vec<_>>>()?;
        messages.reverse();
        let name_of = |id: AgentId| agents.iter().find(|(agent, _)| *agent == id.0).map_or("agent", |(_, name)| name);
        let events = events.into_iter().map(Event::try_from).collect::<Result<Vec<_>>>()?;
        let streaming = streaming(&events, name_of)?;
        messages.extend(streaming.into_iter().filter(|m| m.seq > since && signed(m.seq) < before));
        messages.sort_by_key(|message| message.seq);
        // An old unfinished answer must not displace newer messages of the page.
        let surplus = messages.len().saturating_sub(limit as usize);
        messages.drain(..surplus);
        Ok(MessageHistory { epoch: self.epoch().clone(), head: unsigned(head)?, messages })
    }

    pub async fn message(&self, owner: &Owner, room: RoomId, id: MessageId) -> Result<Message> {
        let row: MessageRow = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT m.id, m.room_id, m.seq, m.run_id, m.body, m.created_at FROM messages m \
                 JOIN rooms r ON r.id = m.room_id WHERE m.id = $1 AND m.room_id = $2 AND r.owner = $3 \
                 AND r.deleted_at IS NULL",
            )
            .bind(id.0)
            .bind(room.0)
            .bind(owner.as_str())
            .fetch_one(pool)
            .await
        })?;
        row.try_into()
    }

    pub async fn room_of_message(&self, owner: &Owner, id: MessageId) -> Result<RoomId> {
        let room: Uuid = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT m.room_id FROM messages m JOIN rooms r ON r.id = m.room_id \
                 WHERE m.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL",
            )
            .bind(id.0)
            .bind(owner.as_str())
            .fetch_one(pool)
            .await
        })?;
        Ok(RoomId(room))
    }

    /// Returns the messages that an agent gets when its run starts: the posts and answers of the range that `session`
    /// does not know. Limited to the newest `limit`, oldest first.
    pub async fn messages_before_run(
        &self,
        owner: &Owner,
        room: RoomId,
        range: TranscriptRange,
        session: Option<&ProviderSessionRecord>,
        limit: u32,
    ) -> Result<Vec<Message>> {
        let heard = session.map_or(0, |session| signed(session.heard_seq));
        let spoke = session.and_then(|session| session.spoke_seq).map_or(0, signed);
        let own = session.and_then(|session| session.answer_seq).map_or(0, signed);
        let rows: Vec<MessageRow> = reading!(self.database(), |pool| {
            sqlx::query_as(MESSAGES_BEFORE_RUN)
                .bind(room.0)
                .bind(signed(range.posts_before))
                .bind(i64::from(limit))
                .bind(heard)
                .bind(spoke)
                // Messages before both seqs can be skipped, except answers that ended later.
                .bind(heard.min(spoke))
                .bind(owner.as_str())
                .bind(signed(range.answers_until))
                .bind(own)
                .bind(session.map_or(i64::MAX, |_| spoke))
                .fetch_all(pool)
                .await
        })?;
        // Either there are no messages or the room does not exist. With a session, the room exists.
        if rows.is_empty() && session.is_none() {
            self.head(owner, room).await?;
        }
        rows.into_iter().rev().map(Message::try_from).collect()
    }
}

/// Folds the unfinished answers.
fn streaming<'a>(events: &[Event], name_of: impl Fn(AgentId) -> &'a str) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    for start in events.iter().filter(|event| event.kind == EventType::StreamStart) {
        let (EventBody::StreamStart(body), Some(agent_id)) = (start.body()?, start.agent_id) else {
            continue;
        };
        let mut answer = Answer::default();
        for event in events.iter().filter(|event| event.run_id == start.run_id) {
            answer.apply(&event.body()?);
        }
        if answer.ended {
            continue;
        }
        let (text, thinking) = answer.texts();
        let name = Name::parse(name_of(agent_id)).map_err(|error| StoreError::unreadable("a name").caused_by(error))?;
        messages.push(Message {
            id: body.stream_id,
            room_id: start.room_id,
            seq: start.seq,
            author: Author::Agent { id: agent_id, name },
            run_id: start.run_id,
            status: MessageStatus::Streaming,
            text,
            thinking,
            parts: answer.parts,
            attachments: Vec::new(),
            created_at: start.created_at,
        });
    }
    Ok(messages)
}

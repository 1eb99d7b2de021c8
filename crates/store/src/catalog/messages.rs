//! Messages: the folded view, written in the transaction of the event that completes them.

use crate::{
    Store, StoreError,
    commit::{ChangeContext, ProviderSessionRecord, Statement},
    database::reading,
    error::{Result, signed, unsigned},
    row::row,
};
use domain::{
    ids::{MessageId, RoomId, RunId},
    message::{Attachment, Author, Message, MessageStatus, Part, join_texts},
    owner::Owner,
    position::Seq,
    run::Run,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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

/// How many characters are shown of how a text begins.
const TEXT_START: usize = 200;
const FIRST_TEXT: &str = r#""parts":[{"type":"text","text":""#;

/// How the text of a message begins, from the first characters of its stored body. `None` if it begins with
/// something else.
pub(super) fn text_start(body: &str) -> Option<String> {
    // Quotes inside of strings are escaped, so this is never a part of one.
    let rest = &body[body.find(FIRST_TEXT)? + FIRST_TEXT.len()..];
    let mut is_escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    let mut text = &rest[..end.unwrap_or(rest.len())];
    // The body may be cut inside of an escape sequence, of which the longest has twelve characters.
    for _ in 0..=12 {
        if let Ok(text) = serde_json::from_str::<String>(&format!("\"{text}\"")) {
            return Some(text.chars().take(TEXT_START).collect());
        }
        text = &text[..text.char_indices().next_back()?.0];
    }
    None
}

row! {
    pub(crate) struct MessageRow {
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

/// An answer is stored when it ends. `$4` and `$5` are the seqs up to which the session knows posts and answers, `$9` is
/// where its own answer begins. The second part finds the answers that began before all of this and ended later, which
/// happens if several agents answer at the same time; `$10` turns it off. One query, because every run waits for it
/// before its first token.
const MESSAGES_BEFORE_RUN: &str = "WITH known AS (SELECT * FROM (\
     SELECT seq, octet_length(body) AS bytes FROM messages \
     WHERE room_id = $1 AND seq > $6 AND ((run_id IS NULL AND seq > $4 AND seq < $2) OR (run_id IS NOT NULL \
     AND COALESCE(ended_seq, seq) > $5 AND COALESCE(ended_seq, seq) <= $8 AND seq <> $9)) \
     AND EXISTS (SELECT 1 FROM rooms r WHERE r.id = $1 AND r.owner = $7 AND r.deleted_at IS NULL) \
     ORDER BY seq DESC LIMIT $3) AS newer \
     UNION ALL SELECT seq, octet_length(body) AS bytes FROM messages \
     WHERE room_id = $1 AND ended_seq > $10 AND ended_seq <= $8 AND seq <= $6 AND seq <> $9 \
     AND EXISTS (SELECT 1 FROM rooms r WHERE r.id = $1 AND r.owner = $7 AND r.deleted_at IS NULL) \
     ORDER BY seq DESC LIMIT $3), \
     sized AS (SELECT seq, SUM(bytes) OVER (ORDER BY seq DESC) - bytes AS before FROM known) \
     SELECT id, room_id, seq, run_id, body, created_at FROM messages \
     WHERE room_id = $1 AND seq IN (SELECT seq FROM sized WHERE before < $11) ORDER BY seq DESC";
/// The approximate maximum size of the messages that a run receives. More than the context of any model.
const TRANSCRIPT_BYTES: i64 = 8 * 1024 * 1024;

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

    /// Returns the answer of a run that has ended; `None` if it ended before it began to answer. The caller must have checked
    /// the run's owner.
    pub async fn message_of_run(&self, run: &Run) -> Result<Option<Message>> {
        let row: Option<MessageRow> = reading!(self.database(), |pool| {
            sqlx::query_as(
                "SELECT id, room_id, seq, run_id, body, created_at FROM messages \
                 WHERE room_id = $1 AND seq > $2 AND run_id = $3 ORDER BY seq LIMIT 1",
            )
            .bind(run.room_id.0)
            .bind(signed(run.queued_seq))
            .bind(run.id.0)
            .fetch_optional(pool)
            .await
        })?;
        row.map(Message::try_from).transpose()
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

    /// Returns the seqs of people's messages after one seq and up to another, at most `limit`, in order.
    pub async fn post_seqs(&self, owner: &Owner, room: RoomId, after: Seq, until: Seq, limit: u32) -> Result<Vec<Seq>> {
        let seqs: Vec<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar(
                "SELECT m.seq FROM messages m JOIN rooms r ON r.id = m.room_id WHERE m.room_id = $1 AND r.owner = $2 \
                 AND r.deleted_at IS NULL AND m.run_id IS NULL AND m.seq > $3 AND m.seq <= $4 ORDER BY m.seq LIMIT $5",
            )
            .bind(room.0)
            .bind(owner.as_str())
            .bind(signed(after))
            .bind(signed(until))
            .bind(i64::from(limit))
            .fetch_all(pool)
            .await
        })?;
        seqs.into_iter().map(unsigned).collect()
    }

    /// Returns the messages that an agent gets when its run starts: the posts and answers of the range that `session`
    /// does not know. Limited to the newest `limit` and in bytes, oldest first.
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
                .bind(TRANSCRIPT_BYTES)
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

#[cfg(test)]
mod tests {
    use super::{StoredMessageBody, text_start};
    use domain::{
        message::{Author, MessageStatus, Part},
        name::Name,
    };

    fn body(parts: Vec<Part>) -> String {
        let author =
            Author::Person { name: Name::parse(r#"x"parts":[{"type":"text","text":"no"#).unwrap(), user_id: None };
        let body = StoredMessageBody { author, status: MessageStatus::Complete, parts, attachments: Vec::new() };
        serde_json::to_string(&body).unwrap()
    }

    #[test]
    fn the_start_of_a_text_is_read_from_the_start_of_its_body() {
        let text = |text: &str| body(vec![Part::Text { text: text.to_owned(), item: None }]);
        assert_eq!(text_start(&text("hello \"you\" \\ \n there")).unwrap(), "hello \"you\" \\ \n there");
        assert_eq!(text_start(&text("")).unwrap(), "");
        assert_eq!(text_start(&text(&"ä".repeat(300))).unwrap(), "ä".repeat(200));
        assert_eq!(text_start(&body(vec![Part::Thinking { text: "hm".into(), item: None }])), None);
        let whole = text("a\u{0}b 😀 c\\");
        let begin = whole.find("a\\u0000").unwrap();
        for (cut, _) in whole.char_indices().filter(|(at, _)| *at >= begin) {
            let start = text_start(&whole[..cut]).unwrap();
            assert!("a\u{0}b 😀 c\\".starts_with(&start), "{start:?} of {:?}", &whole[..cut]);
        }
    }
}

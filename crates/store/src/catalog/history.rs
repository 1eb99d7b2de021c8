//! Pages of a room's messages, folded up to exactly the head. A page is limited in bytes as well as in number: a room may
//! be larger than the server's memory, and so may be its unfinished answers, which are folded from their events in pieces.

use super::{events::EventRow, messages::MessageRow};
use crate::{
    Store, StoreError,
    database::snapshot,
    error::{Result, signed, unsigned},
};
use domain::{
    event::{Event, EventBody},
    fold::Answer,
    ids::{AgentId, MessageId, RoomId, RunId},
    message::{Author, Message, MessageStatus},
    name::Name,
    owner::Owner,
    position::{Epoch, Seq},
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

/// Messages folded up to exactly `head`: events after it are neither missing nor repeated.
#[derive(Debug)]
pub struct MessageHistory {
    pub epoch: Epoch,
    pub head: Seq,
    pub messages: Vec<Message>,
    /// Whether the range has messages before these; for a page that begins with the oldest, after these.
    pub has_more: bool,
}

/// The approximate maximum size of a page, in stored bytes. A page has at least one message.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;
/// How many bytes of an unfinished answer's events are read at once.
const PIECE_BYTES: i64 = 1024 * 1024;
const PIECE_EVENTS: i64 = 512;

const HEAD: &str = "SELECT j.head FROM journals j JOIN rooms r ON r.id = j.room_id \
     WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL";
/// The size of a value is read without the value itself.
const STORED_SIZES: &str = "SELECT seq, CAST(octet_length(body) AS BIGINT) FROM messages \
     WHERE room_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC LIMIT $4";
const NEXT_SIZES: &str = "SELECT seq, CAST(octet_length(body) AS BIGINT) FROM messages \
     WHERE room_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq LIMIT $4";
const STORED: &str = "SELECT id, room_id, seq, run_id, body, created_at FROM messages \
     WHERE room_id = $1 AND seq >= $2 AND seq < $3 ORDER BY seq";
const UNFINISHED_SIZES: &str = "SELECT q.run_id, MIN(CASE WHEN e.kind = 'stream_start' THEN e.seq END), \
     CAST(SUM(octet_length(e.data)) AS BIGINT) FROM queue q JOIN events e ON e.room_id = q.room_id \
     AND e.seq >= q.queued_seq AND e.run_id = q.run_id WHERE q.room_id = $1 AND q.holder IS NOT NULL GROUP BY q.run_id";
const NEXT_PIECE: &str = "SELECT room_id, seq, id, kind, run_id, agent_id, created_at, data, CAST(NULL AS TEXT) AS raw \
     FROM events WHERE room_id = $1 AND run_id = $2 AND seq > $3 AND seq <= (SELECT MAX(seq) FROM \
     (SELECT seq, SUM(bytes) OVER (ORDER BY seq) - bytes AS before FROM \
     (SELECT seq, octet_length(data) AS bytes FROM events WHERE room_id = $1 AND run_id = $2 AND seq > $3 \
     ORDER BY seq LIMIT $4) AS next) AS sized WHERE before < $5) ORDER BY seq";

/// A message that may be on the page.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PageEntry {
    seq: Seq,
    bytes: u64,
    /// The run of an unfinished answer; `None` if the message is stored.
    unfinished: Option<RunId>,
}

/// At which end of the range a page begins.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PageStart {
    Newest,
    Oldest,
}

/// The entries that fit on a page, from its start on, and whether others are left. An old unfinished answer does not
/// displace newer messages of a page that begins with the newest.
fn fit(mut entries: Vec<PageEntry>, limit: usize, start: PageStart) -> (Vec<PageEntry>, bool) {
    entries.sort_by_key(|entry| entry.seq);
    if start == PageStart::Newest {
        entries.reverse();
    }
    let total = entries.len();
    let mut bytes = 0;
    let fitting: Vec<PageEntry> = entries
        .into_iter()
        .take(limit)
        .take_while(|entry| {
            let fits = bytes < PAGE_BYTES;
            bytes += entry.bytes;
            fits
        })
        .collect();
    let has_more = fitting.len() < total;
    (fitting, has_more)
}

impl Store {
    /// Returns the newest messages with `since < seq < before`, oldest first, including unfinished answers: at most
    /// `limit`, and about 4 MB.
    pub async fn history(
        &self,
        owner: &Owner,
        room: RoomId,
        since: Seq,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<MessageHistory> {
        self.history_from(PageStart::Newest, owner, room, since, before, limit).await
    }

    /// The same for the oldest messages of the range: `has_more` says whether it has messages after these.
    pub async fn history_after(
        &self,
        owner: &Owner,
        room: RoomId,
        since: Seq,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<MessageHistory> {
        self.history_from(PageStart::Oldest, owner, room, since, before, limit).await
    }

    async fn history_from(
        &self,
        start: PageStart,
        owner: &Owner,
        room: RoomId,
        since: Seq,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<MessageHistory> {
        let sizes = match start {
            PageStart::Newest => STORED_SIZES,
            PageStart::Oldest => NEXT_SIZES,
        };
        let end = before.map_or(i64::MAX, signed);
        let is_in_range = |seq: Seq| seq > since && signed(seq) < end;
        let (head, rows, unfinished, has_more) = snapshot!(self.database(), |transaction| {
            let head: i64 =
                sqlx::query_scalar(HEAD).bind(room.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            let stored: Vec<(i64, i64)> = sqlx::query_as(sizes)
                .bind(room.0)
                .bind(signed(since))
                .bind(end)
                // One more shows whether there are others.
                .bind(i64::from(limit) + 1)
                .fetch_all(&mut *transaction)
                .await?;
            let running: Vec<(Uuid, Option<i64>, i64)> =
                sqlx::query_as(UNFINISHED_SIZES).bind(room.0).fetch_all(&mut *transaction).await?;
            let mut entries = Vec::with_capacity(stored.len() + running.len());
            for (seq, bytes) in stored {
                entries.push(PageEntry { seq: unsigned(seq)?, bytes: unsigned(bytes)?, unfinished: None });
            }
            for (run, start, bytes) in running {
                let Some(start) = start else { continue };
                let entry = PageEntry { seq: unsigned(start)?, bytes: unsigned(bytes)?, unfinished: Some(RunId(run)) };
                entries.extend(is_in_range(entry.seq).then_some(entry));
            }
            let (page, has_more) = fit(entries, limit as usize, start);
            let stored = || page.iter().filter(|entry| entry.unfinished.is_none()).map(|entry| entry.seq);
            let rows: Vec<MessageRow> = match stored().min().zip(stored().max()) {
                Some((oldest, newest)) => {
                    sqlx::query_as(STORED)
                        .bind(room.0)
                        .bind(signed(oldest))
                        .bind(signed(newest) + 1)
                        .fetch_all(&mut *transaction)
                        .await?
                }
                None => Vec::new(),
            };
            let mut unfinished = Vec::new();
            for run in page.iter().filter_map(|entry| entry.unfinished) {
                let (mut folded, mut seq) = (UnfinishedAnswer::default(), 0);
                loop {
                    let piece: Vec<EventRow> = sqlx::query_as(NEXT_PIECE)
                        .bind(room.0)
                        .bind(run.0)
                        .bind(signed(seq))
                        .bind(PIECE_EVENTS)
                        .bind(PIECE_BYTES)
                        .fetch_all(&mut *transaction)
                        .await?;
                    if piece.is_empty() {
                        break;
                    }
                    for row in piece {
                        let event = Event::try_from(row)?;
                        seq = event.seq;
                        folded.apply(event)?;
                    }
                }
                if let Some(agent) = folded.agent() {
                    let name: Option<String> =
                        sqlx::query_scalar("SELECT name FROM agents WHERE id = $1 AND owner = $2")
                            .bind(agent.0)
                            .bind(owner.as_str())
                            .fetch_optional(&mut *transaction)
                            .await?;
                    unfinished.push((folded, name));
                }
            }
            (head, rows, unfinished, has_more)
        });
        // A long page takes a while to parse, and a thread of the server would serve nobody else meanwhile.
        let parsed = spawn_blocking(|| rows.into_iter().map(Message::try_from).collect::<Result<Vec<_>>>());
        let mut messages = parsed.await.map_err(|_| StoreError::unavailable("a page could not be parsed"))??;
        for (answer, name) in unfinished {
            let name = Name::parse(name.as_deref().unwrap_or("agent"))
                .map_err(|error| StoreError::unreadable("a name").caused_by(error))?;
            messages.extend(answer.into_message(name));
        }
        messages.sort_by_key(|message| message.seq);
        Ok(MessageHistory { epoch: self.epoch().clone(), head: unsigned(head)?, messages, has_more })
    }
}

/// An answer that is folded from the events of its run, without the events that were applied.
#[derive(Default)]
struct UnfinishedAnswer {
    answer: Answer,
    start: Option<(AgentId, MessageId, Event)>,
}

impl UnfinishedAnswer {
    fn apply(&mut self, event: Event) -> Result<()> {
        let body = event.body()?;
        self.answer.apply(&body);
        if let (EventBody::StreamStart(start), Some(agent)) = (body, event.agent_id) {
            self.start = Some((agent, start.stream_id, event));
        }
        Ok(())
    }

    /// The agent that answers. `None` if the answer has not begun or has ended.
    fn agent(&self) -> Option<AgentId> {
        self.start.as_ref().filter(|_| !self.answer.ended).map(|(agent, ..)| *agent)
    }

    fn into_message(self, name: Name) -> Option<Message> {
        let (agent, id, start) = self.start?;
        let (text, thinking) = self.answer.texts();
        Some(Message {
            id,
            room_id: start.room_id,
            seq: start.seq,
            author: Author::Agent { id: agent, name },
            run_id: start.run_id,
            status: MessageStatus::Streaming,
            text,
            thinking,
            parts: self.answer.parts,
            attachments: Vec::new(),
            created_at: start.created_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, PageEntry, PageStart, fit};
    use domain::ids::RunId;

    fn stored(seq: u64, bytes: u64) -> PageEntry {
        PageEntry { seq, bytes, unfinished: None }
    }

    fn seqs(entries: Vec<PageEntry>, limit: usize) -> (Vec<u64>, bool) {
        let (page, has_more) = fit(entries, limit, PageStart::Newest);
        (page.iter().map(|entry| entry.seq).collect(), has_more)
    }

    #[test]
    fn m6_a_page_ends_at_its_size_but_has_at_least_one_message() {
        let huge = || vec![stored(1, 10), stored(2, PAGE_BYTES), stored(3, PAGE_BYTES)];
        assert_eq!(seqs(huge(), 10), (vec![3], true));
        assert_eq!(seqs(vec![stored(1, 10), stored(2, 10)], 10), (vec![2, 1], false));
        assert_eq!(seqs(vec![stored(1, 10), stored(2, 10)], 1), (vec![2], true));
        assert_eq!(seqs(Vec::new(), 1), (Vec::new(), false));
        let (next, has_more) = fit(huge(), 10, PageStart::Oldest);
        assert_eq!((next.iter().map(|entry| entry.seq).collect::<Vec<_>>(), has_more), (vec![1, 2], true));
    }

    #[test]
    fn m6_an_old_unfinished_answer_displaces_no_newer_message() {
        let old = PageEntry { seq: 1, bytes: PAGE_BYTES * 9, unfinished: Some(RunId::generate()) };
        assert_eq!(seqs(vec![old, stored(2, 10), stored(3, 10)], 10), (vec![3, 2, 1], false));
        assert_eq!(seqs(vec![old, stored(2, PAGE_BYTES), stored(3, 10)], 10), (vec![3, 2], true));
    }
}

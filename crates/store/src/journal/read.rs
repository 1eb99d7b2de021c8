//! Reads a room's journal after a position.

use super::frame::Frame;
use crate::{
    StoreError,
    catalog::events::EventRow,
    database::{reading, snapshot},
    error::{signed, unsigned},
    open::Store,
};
use domain::{
    event::Event,
    ids::{RoomId, RunId},
    owner::Owner,
    position::{Epoch, Position, Seq},
    run::Run,
};
use futures_util::TryStreamExt as _;
use std::sync::Arc;

/// The number of rows per query for a reader that is behind the tail.
const CATCH_UP_ROWS: i64 = 512;
/// The approximate maximum size of a page.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// How much a follower reads at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadLimit {
    rows: i64,
    bytes: usize,
}

impl ReadLimit {
    pub(super) const fn bytes(bytes: usize) -> Self {
        Self { rows: CATCH_UP_ROWS, bytes }
    }

    /// One event of any size.
    pub(super) const ONE_EVENT: Self = Self { rows: 1, bytes: i64::MAX as usize };
}

#[derive(Debug)]
pub struct Page {
    pub epoch: Epoch,
    pub head: Seq,
    pub events: Vec<Event>,
    /// Whether the client's position is not in this journal and the client must start over.
    pub reset: bool,
}

/// The size of an event without its text, for counting.
const EVENT_BYTES: usize = 256;

/// Up to $3 events after seq $2 of room $1, of $4 bytes: those with `$fits`. The database counts the bytes, from the sizes
/// of the values: a reader that stops early has received more by then, all rows from PostgreSQL and some fifty from SQLite,
/// and each of them may have many megabytes.
macro_rules! select_events {
    ($raw:literal, $bytes:literal, $fits:literal) => {
        concat!(
            "SELECT room_id, seq, id, kind, run_id, agent_id, created_at, data, ",
            $raw,
            " AS raw ",
            "FROM events WHERE room_id = $1 AND seq > $2 AND seq <= ",
            "(SELECT MAX(seq) FROM (SELECT seq, SUM(bytes) OVER (ORDER BY seq) AS total, bytes ",
            "FROM (SELECT seq, 256 + ",
            $bytes,
            " AS bytes FROM events WHERE room_id = $1 AND seq > $2 ",
            "ORDER BY seq LIMIT $3) AS next) AS sized WHERE ",
            $fits,
            ") ORDER BY seq"
        )
    };
}

/// No more rows than can fit into so many bytes.
fn rows_within(bytes: usize, limit: i64) -> i64 {
    limit.min(signed((bytes / EVENT_BYTES) as u64 + 1))
}

const HEAD: &str = "SELECT j.head FROM journals j JOIN rooms r ON r.id = j.room_id \
     WHERE r.id = $1 AND r.owner = $2 AND r.deleted_at IS NULL";

impl Store {
    /// The seq of the room's newest event.
    pub async fn head(&self, owner: &Owner, room: RoomId) -> Result<Seq, StoreError> {
        let head: i64 = reading!(self.database(), |pool| {
            sqlx::query_scalar(HEAD).bind(room.0).bind(owner.as_str()).fetch_one(pool).await
        })?;
        unsigned(head)
    }

    /// Returns up to `limit` events after a position, with the head at that time.
    pub async fn page(
        &self,
        owner: &Owner,
        room: RoomId,
        after: &Position,
        limit: u32,
        with_raw: bool,
    ) -> Result<Page, StoreError> {
        let sql = if with_raw {
            select_events!("raw", "octet_length(data) + COALESCE(octet_length(raw), 0)", "total - bytes < $4")
        } else {
            select_events!("CAST(NULL AS TEXT)", "octet_length(data)", "total - bytes < $4")
        };
        let foreign = after.epoch.as_ref().is_some_and(|epoch| epoch != self.epoch());
        let (head, events) = snapshot!(self.database(), |transaction| {
            let head: i64 =
                sqlx::query_scalar(HEAD).bind(room.0).bind(owner.as_str()).fetch_one(&mut *transaction).await?;
            let mut events = Vec::new();
            if !foreign {
                let mut rows = sqlx::query_as::<_, EventRow>(sql)
                    .bind(room.0)
                    .bind(signed(after.seq))
                    .bind(rows_within(PAGE_BYTES, limit.into()))
                    .bind(signed(PAGE_BYTES as u64))
                    .fetch(&mut *transaction);
                while let Some(row) = rows.try_next().await? {
                    events.push(Event::try_from(row)?);
                }
            }
            (unsigned(head)?, events)
        });
        let reset = foreign || after.seq > head;
        Ok(Page { epoch: self.epoch().clone(), head, events, reset })
    }

    /// Reads frames for a follower, none if the next event is larger than the limit. The room was checked when the follower
    /// was opened.
    pub(super) async fn frames_after(
        &self,
        room: RoomId,
        seq: Seq,
        limit: ReadLimit,
    ) -> Result<Vec<Arc<Frame>>, StoreError> {
        let sql = select_events!("CAST(NULL AS TEXT)", "octet_length(data)", "total <= $4");
        reading!(self.database(), |pool| {
            let mut rows = sqlx::query_as::<_, EventRow>(sql)
                .bind(room.0)
                .bind(signed(seq))
                .bind(rows_within(limit.bytes, limit.rows))
                .bind(signed(limit.bytes as u64))
                .fetch(pool);
            let mut frames = Vec::new();
            while let Some(row) = rows.try_next().await? {
                frames.push(Arc::new(Frame::new(self.epoch(), &Event::try_from(row)?)));
            }
            Ok(frames)
        })
    }

    /// The size of the event with this seq, as [`Self::frames_after`] counts it, without reading the event.
    pub(super) async fn event_bytes(&self, room: RoomId, seq: Seq) -> Result<Option<usize>, StoreError> {
        const SQL: &str = "SELECT CAST(256 + octet_length(data) AS BIGINT) FROM events WHERE room_id = $1 AND seq = $2";
        let bytes: Option<i64> = reading!(self.database(), |pool| {
            sqlx::query_scalar(SQL).bind(room.0).bind(signed(seq)).fetch_optional(pool).await
        })?;
        Ok(bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// Returns whether a run has an event after a seq. The caller must have checked the run's owner.
    pub async fn has_run_events(&self, run: &Run, after: Seq) -> Result<bool, StoreError> {
        let found: Option<i32> = reading!(self.database(), |pool| {
            sqlx::query_scalar("SELECT 1 FROM events WHERE room_id = $1 AND seq > $2 AND run_id = $3 LIMIT 1")
                .bind(run.room_id.0)
                .bind(signed(after))
                .bind(run.id.0)
                .fetch_optional(pool)
                .await
        })?;
        Ok(found.is_some())
    }

    /// Returns all events of one run, oldest first, for the fold after a crash.
    pub async fn run_events(&self, room: RoomId, run: RunId, queued_seq: Seq) -> Result<Vec<Event>, StoreError> {
        const SQL: &str = "SELECT room_id, seq, id, kind, run_id, agent_id, created_at, data, CAST(NULL AS TEXT) AS raw \
             FROM events WHERE room_id = $1 AND seq >= $2 AND run_id = $3 ORDER BY seq";
        let rows: Vec<EventRow> = reading!(self.database(), |pool| {
            sqlx::query_as(SQL).bind(room.0).bind(signed(queued_seq)).bind(run.0).fetch_all(pool).await
        })?;
        rows.into_iter().map(Event::try_from).collect()
    }
}

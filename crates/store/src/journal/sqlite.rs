//! The journal's statements on SQLite. Rows travel in statements of a few fixed sizes: each size is prepared once, and
//! one statement a row would cost three times as much. Statements that follow one another travel together: each trip to the
//! thread that SQLite works on takes longer than most of what is done there.

use super::apply::{Connection, Context, Facts, Lease, Subjects};
use super::commit::Change;
use crate::{
    Error,
    error::{signed, unsigned},
};
use domain::{
    event::Event,
    ids::{EventId, RoomId, RunId},
    position::Seq,
};
use sqlx::{AssertSqlSafe, SqliteConnection};
use std::sync::LazyLock;
use uuid::Uuid;

const SIZES: [usize; 5] = [1, 2, 4, 16, 64];

type Statements = [String; SIZES.len()];

/// One statement per size: `head`, then `size` times `row`, then `foot`.
fn statements(head: &str, row: &str, foot: &str) -> Statements {
    SIZES.map(|size| format!("{head} {} {foot};", vec![row; size].join(",")))
}

fn lookups(head: &str) -> Statements {
    statements(&format!("{head} IN ("), "?", ")")
}

static INSERT: LazyLock<Statements> = LazyLock::new(|| {
    let head = "INSERT INTO events (room_id, seq, id, kind, run_id, agent_id, created_at, data, raw) VALUES";
    statements(head, "(?,?,?,?,?,?,?,?,?)", "")
});
static SET_HEADS: LazyLock<Statements> = LazyLock::new(|| {
    let head = "INSERT INTO journals (room_id, head) VALUES";
    statements(head, "(?,?)", "ON CONFLICT (room_id) DO UPDATE SET head = excluded.head")
});
/// What rows of the look-ups tell of, which come back in one row after another.
const HEAD: i64 = 0;
const EVENT: i64 = 1;
const LEASE: i64 = 2;
type Found = (i64, Uuid, i64, Option<String>);
static HEADS: LazyLock<Statements> =
    LazyLock::new(|| lookups(&format!("SELECT {HEAD}, room_id, head, NULL FROM journals WHERE room_id")));
static EXISTING: LazyLock<Statements> =
    LazyLock::new(|| lookups(&format!("SELECT {EVENT}, id, seq, NULL FROM events WHERE id")));
static LEASES: LazyLock<Statements> =
    LazyLock::new(|| lookups(&format!("SELECT {LEASE}, run_id, fence, holder FROM queue WHERE run_id")));

/// Cuts rows into statements: the largest size that is full, again and again.
fn cut<T>(mut rows: &[T]) -> impl Iterator<Item = (usize, &[T])> {
    std::iter::from_fn(move || {
        let size = SIZES.iter().rposition(|&size| size <= rows.len())?;
        let (now, later) = rows.split_at(SIZES[size]);
        rows = later;
        Some((size, now))
    })
}

/// Cuts keys likewise, but fills the last statement up by repeating a key: a look-up does not mind.
fn padded(keys: Vec<Uuid>) -> impl Iterator<Item = (usize, Vec<Uuid>)> {
    let largest = SIZES[SIZES.len() - 1];
    let mut at = 0;
    std::iter::from_fn(move || {
        let chunk = keys[at..].chunks(largest).next()?;
        at += chunk.len();
        let last = *chunk.last()?;
        let size = SIZES.iter().position(|&size| size >= chunk.len())?;
        let mut keys = chunk.to_vec();
        keys.resize(SIZES[size], last);
        Some((size, keys))
    })
}

impl Connection for SqliteConnection {
    /// All runs of SQLite's one writer are held by its transaction.
    async fn look(&mut self, at: &Subjects) -> Result<Facts, Error> {
        let mut rooms = padded(at.rooms.iter().map(|id| id.0).collect());
        let mut events = padded(at.events.iter().map(|id| id.0).collect());
        let mut runs = padded(at.runs.iter().map(|id| id.0).collect());
        let mut facts = Facts::default();
        loop {
            let (mut sql, mut keys) = (String::new(), Vec::new());
            for (statements, next) in [(&HEADS, rooms.next()), (&EXISTING, events.next()), (&LEASES, runs.next())] {
                if let Some((size, wanted)) = next {
                    sql.push_str(&statements[size]);
                    keys.extend(wanted);
                }
            }
            if keys.is_empty() {
                return Ok(facts);
            }
            let query = keys.into_iter().fold(sqlx::query_as(AssertSqlSafe(sql)), sqlx::query::QueryAs::bind);
            let found: Vec<Found> = query.fetch_all(&mut *self).await?;
            for (what, id, number, holder) in found {
                let number = unsigned(number)?;
                match what {
                    HEAD => drop(facts.heads.insert(RoomId(id), number)),
                    EVENT => drop(facts.known.insert(EventId(id), number)),
                    _ => drop(facts.leases.insert(RunId(id), Lease { fence: number, holder })),
                }
            }
        }
    }

    async fn is_idle(&mut self, room: RoomId) -> Result<bool, Error> {
        let unfinished: Option<i64> = sqlx::query_scalar("SELECT queued_seq FROM queue WHERE room_id = $1 LIMIT 1")
            .bind(room.0)
            .fetch_optional(self)
            .await?;
        Ok(unfinished.is_none())
    }

    async fn append(&mut self, events: &[Event], heads: &[(RoomId, Seq)]) -> Result<(), Error> {
        let (mut events, mut heads) = (cut(events).peekable(), cut(heads));
        while let Some((size, events_now)) = events.next() {
            // The last of them take the first heads with them, which are nearly always all.
            let heads_now = if events.peek().is_none() { heads.next() } else { None };
            let mut sql = INSERT[size].clone();
            sql.push_str(heads_now.map_or("", |(size, _)| &SET_HEADS[size]));
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for event in events_now {
                query = query
                    .bind(event.room_id.0)
                    .bind(signed(event.seq))
                    .bind(event.id.0)
                    .bind(event.kind.as_str())
                    .bind(event.run_id.map(|id| id.0))
                    .bind(event.agent_id.map(|id| id.0))
                    .bind(event.created_at.as_millis())
                    .bind(event.data.as_str())
                    .bind(event.raw.as_deref());
            }
            for (room, head) in heads_now.map_or(&[][..], |(_, heads)| heads) {
                query = query.bind(room.0).bind(signed(*head));
            }
            query.execute(&mut *self).await?;
        }
        for (size, heads) in heads {
            let mut query = sqlx::query(AssertSqlSafe(SET_HEADS[size].as_str()));
            for (room, head) in heads {
                query = query.bind(room.0).bind(signed(*head));
            }
            query.execute(&mut *self).await?;
        }
        Ok(())
    }

    async fn change(&mut self, context: Context, change: &Change) -> Result<(), Error> {
        crate::catalog::changes::sqlite(self, context, change).await
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZES, cut, padded};
    use uuid::Uuid;

    #[test]
    fn every_row_travels_once_and_every_key_at_least_once() {
        for count in [0, 1, 2, 3, 4, 5, 63, 64, 65, 200] {
            let rows: Vec<usize> = (0..count).collect();
            let travelled: Vec<usize> = cut(&rows)
                .flat_map(|(size, rows)| {
                    assert_eq!(rows.len(), SIZES[size]);
                    rows.to_vec()
                })
                .collect();
            assert_eq!(travelled, rows);
            let keys: Vec<Uuid> = (0..count).map(|n| Uuid::from_u128(n as u128)).collect();
            let mut asked: Vec<Uuid> = padded(keys.clone())
                .flat_map(|(size, keys)| {
                    assert_eq!(keys.len(), SIZES[size]);
                    keys
                })
                .collect();
            asked.dedup();
            assert_eq!(asked, keys);
        }
    }
}

//! The journal's statements on SQLite. Rows travel in statements of a few fixed sizes: each size is prepared once, and
//! one statement a row would cost three times as much.

use super::apply::{Connection, Context, Lease};
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
use std::{collections::HashMap, sync::LazyLock};
use uuid::Uuid;

const SIZES: [usize; 5] = [1, 2, 4, 16, 64];

type Statements = [String; SIZES.len()];

/// One statement per size: `head`, then `size` times a row of `columns` placeholders, then `foot`.
fn statements(head: &str, columns: usize, foot: &str) -> Statements {
    SIZES.map(|size| {
        let rows: Vec<String> = (0..size)
            .map(|row| {
                let marks: Vec<String> = (1..=columns).map(|column| format!("${}", row * columns + column)).collect();
                format!("({})", marks.join(","))
            })
            .collect();
        format!("{head} {} {foot}", rows.join(","))
    })
}

fn lookups(head: &str) -> Statements {
    SIZES.map(|size| {
        let marks: Vec<String> = (1..=size).map(|n| format!("${n}")).collect();
        format!("{head} IN ({})", marks.join(","))
    })
}

static INSERT: LazyLock<Statements> = LazyLock::new(|| {
    let head = "INSERT INTO events (room_id, seq, id, kind, run_id, agent_id, created_at, data, raw) VALUES";
    statements(head, 9, "")
});
static SET_HEADS: LazyLock<Statements> = LazyLock::new(|| {
    let head = "INSERT INTO journals (room_id, head) VALUES";
    statements(head, 2, "ON CONFLICT (room_id) DO UPDATE SET head = excluded.head")
});
static EXISTING: LazyLock<Statements> = LazyLock::new(|| lookups("SELECT id, seq FROM events WHERE id"));
static HEADS: LazyLock<Statements> = LazyLock::new(|| lookups("SELECT room_id, head FROM journals WHERE room_id"));
static LEASES: LazyLock<Statements> = LazyLock::new(|| lookups("SELECT run_id, fence, holder FROM queue WHERE run_id"));

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
fn padded(keys: &[Uuid]) -> impl Iterator<Item = (usize, Vec<Uuid>)> {
    let largest = SIZES[SIZES.len() - 1];
    keys.chunks(largest).filter_map(|chunk| {
        let last = *chunk.last()?;
        let size = SIZES.iter().position(|&size| size >= chunk.len())?;
        let mut keys = chunk.to_vec();
        keys.resize(SIZES[size], last);
        Some((size, keys))
    })
}

async fn look_up<R>(connection: &mut SqliteConnection, sql: &'static Statements, keys: &[Uuid]) -> Result<Vec<R>, Error>
where
    R: for<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow> + Send + Unpin,
{
    let mut found = Vec::new();
    for (size, keys) in padded(keys) {
        let mut query = sqlx::query_as(AssertSqlSafe(sql[size].as_str()));
        for key in keys {
            query = query.bind(key);
        }
        found.extend(query.fetch_all(&mut *connection).await?);
    }
    Ok(found)
}

impl Connection for SqliteConnection {
    async fn existing(&mut self, ids: &[EventId]) -> Result<HashMap<EventId, Seq>, Error> {
        let keys: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows: Vec<(Uuid, i64)> = look_up(self, &EXISTING, &keys).await?;
        rows.into_iter().map(|(id, seq)| Ok((EventId(id), unsigned(seq)?))).collect()
    }

    async fn heads(&mut self, rooms: &[RoomId]) -> Result<HashMap<RoomId, Seq>, Error> {
        let keys: Vec<Uuid> = rooms.iter().map(|id| id.0).collect();
        let rows: Vec<(Uuid, i64)> = look_up(self, &HEADS, &keys).await?;
        rows.into_iter().map(|(id, head)| Ok((RoomId(id), unsigned(head)?))).collect()
    }

    async fn leases(&mut self, runs: &[RunId], _: &[RoomId]) -> Result<HashMap<RunId, Lease>, Error> {
        let keys: Vec<Uuid> = runs.iter().map(|id| id.0).collect();
        let rows: Vec<(Uuid, i64, Option<String>)> = look_up(self, &LEASES, &keys).await?;
        let lease = |(id, fence, holder)| Ok((RunId(id), Lease { fence: unsigned(fence)?, holder }));
        rows.into_iter().map(lease).collect()
    }

    async fn is_idle(&mut self, room: RoomId) -> Result<bool, Error> {
        let unfinished: Option<i64> = sqlx::query_scalar("SELECT queued_seq FROM queue WHERE room_id = $1 LIMIT 1")
            .bind(room.0)
            .fetch_optional(self)
            .await?;
        Ok(unfinished.is_none())
    }

    async fn insert(&mut self, events: &[Event]) -> Result<(), Error> {
        for (size, events) in cut(events) {
            let mut query = sqlx::query(AssertSqlSafe(INSERT[size].as_str()));
            for event in events {
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
            query.execute(&mut *self).await?;
        }
        Ok(())
    }

    async fn set_heads(&mut self, heads: &[(RoomId, Seq)]) -> Result<(), Error> {
        for (size, heads) in cut(heads) {
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
            let mut asked: Vec<Uuid> = padded(&keys)
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

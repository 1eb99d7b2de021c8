//! The journal's statements on SQLite. Rows travel in statements of a few fixed sizes: each size is prepared once, and
//! one statement a row would cost three times as much. What follows one another travels together, a [`Script`] at a time: each
//! trip to the thread that SQLite works on takes longer than most of what is done there. A lone commit makes two, one that
//! begins and looks and one that stores and commits; or only the second, where the writer knows what it would see.

use super::{
    plan::{Facts, Lease, Plan, Subjects},
    statement::{Value, bind_all},
};
use crate::{
    Error,
    error::{signed, unsigned},
};
use domain::{
    event::Event,
    ids::{EventId, RoomId, RunId},
    position::Seq,
};
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, pool::PoolConnection};
use std::{fmt::Write as _, sync::LazyLock};
use uuid::Uuid;

const SIZES: [usize; 5] = [1, 2, 4, 16, 64];
/// Statements of more rows travel alone, and so do all of a plan with more than a few: such a script would hardly ever be the
/// same again, and so be prepared each time.
const SMALL: usize = 4;
const FEW: usize = 12;

type Statements = [String; SIZES.len()];

/// One statement per size: `head`, then `size` times a row of `columns` parameters, then `foot`.
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

fn lookups(head: &str, foot: &str) -> Statements {
    SIZES.map(|size| {
        let marks: Vec<String> = (1..=size).map(|n| format!("${n}")).collect();
        format!("{head} IN ({}) {foot}", marks.join(","))
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
const USED: &str = "SELECT owner, key FROM idempotency WHERE owner = $1 AND key = $2";

/// What a row tells of: those of several look-ups come back one after another.
const HEAD: i64 = 0;
const EVENT: i64 = 1;
const LEASE: i64 = 2;
const UNFINISHED: i64 = 3;
type Found = (i64, Uuid, i64, Option<String>);

static HEADS: LazyLock<Statements> =
    LazyLock::new(|| lookups(&format!("SELECT {HEAD}, room_id, head, NULL FROM journals WHERE room_id"), ""));
static EXISTING: LazyLock<Statements> =
    LazyLock::new(|| lookups(&format!("SELECT {EVENT}, id, seq, NULL FROM events WHERE id"), ""));
static LEASES: LazyLock<Statements> =
    LazyLock::new(|| lookups(&format!("SELECT {LEASE}, run_id, fence, holder FROM queue WHERE run_id"), ""));
static COUNTS: LazyLock<Statements> = LazyLock::new(|| {
    lookups(&format!("SELECT {UNFINISHED}, room_id, COUNT(*), NULL FROM queue WHERE room_id"), "GROUP BY room_id")
});

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

/// Statements that travel together.
#[derive(Default)]
struct Script {
    sql: String,
    values: Vec<Value>,
    statements: usize,
}

impl Script {
    /// The parameters of a statement count from 1, those of a script go on counting.
    fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        let before = self.values.len();
        let mut parts = sql.split('$');
        self.sql.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let number: usize = part[..digits].parse().unwrap_or_default();
            // Writing to a string cannot fail.
            write!(self.sql, "${}{}", before + number, &part[digits..]).unwrap_or_default();
        }
        self.sql.push(';');
        self.values.extend(values);
        self.statements += 1;
    }

    fn take(&mut self) -> Option<(String, Vec<Value>)> {
        let Self { sql, values, statements } = std::mem::take(self);
        (statements > 0).then_some((sql, values))
    }
}

/// One transaction of the writer's. What is dropped before it is over takes its connection with it, and so is undone.
pub(super) struct Transaction {
    connection: PoolConnection<Sqlite>,
    has_begun: bool,
    is_over: bool,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.has_begun && !self.is_over {
            self.connection.close_on_drop();
        }
    }
}

impl Transaction {
    pub(super) async fn on(pool: &SqlitePool) -> Result<Self, Error> {
        Ok(Self { connection: pool.acquire().await?, has_begun: false, is_over: false })
    }

    /// Begins. Nobody else writes from now on, so what is found stays true.
    pub(super) async fn look(&mut self, at: &Subjects) -> Result<Facts, Error> {
        let keys: [Vec<Uuid>; 4] = [
            at.rooms.iter().map(|id| id.0).collect(),
            at.events.iter().map(|id| id.0).collect(),
            at.runs.iter().map(|id| id.0).collect(),
            at.idle.iter().map(|id| id.0).collect(),
        ];
        let mut script = Script::default();
        self.begin(&mut script);
        let mut facts = Facts::about(at);
        for (statements, keys) in [&*HEADS, &*EXISTING, &*LEASES, &*COUNTS].into_iter().zip(&keys) {
            for (size, keys) in padded(keys) {
                if SIZES[size] > SMALL {
                    self.find(&mut script, &mut facts).await?;
                }
                script.add(&statements[size], keys.into_iter().map(Value::from));
                if SIZES[size] > SMALL {
                    self.find(&mut script, &mut facts).await?;
                }
            }
        }
        self.find(&mut script, &mut facts).await?;
        for (owner, key) in &at.keys {
            let query = sqlx::query_as(USED).bind(owner.as_str()).bind(key.as_str());
            facts.used.extend(query.fetch_optional(&mut *self.connection).await?);
        }
        Ok(facts)
    }

    fn begin(&mut self, script: &mut Script) {
        if !std::mem::replace(&mut self.has_begun, true) {
            script.add("BEGIN IMMEDIATE", []);
        }
    }

    async fn find(&mut self, script: &mut Script, facts: &mut Facts) -> Result<(), Error> {
        let Some((sql, values)) = script.take() else { return Ok(()) };
        let found: Vec<Found> =
            bind_all!(sqlx::query_as(AssertSqlSafe(sql)), values).fetch_all(&mut *self.connection).await?;
        for (what, id, number, holder) in found {
            let number = unsigned(number)?;
            match what {
                HEAD => drop(facts.heads.insert(RoomId(id), number)),
                EVENT => drop(facts.known.insert(EventId(id), number)),
                LEASE => drop(facts.leases.insert(RunId(id), Lease { fence: number, holder })),
                _ => drop(facts.unfinished.insert(RoomId(id), number)),
            }
        }
        Ok(())
    }

    pub(super) async fn commit(mut self, plan: &Plan) -> Result<(), Error> {
        let stored = self.store(plan).await;
        // What was stored before is refused here, and that is no reason to part with the connection.
        self.is_over = stored.is_ok() || sqlx::query("ROLLBACK").execute(&mut *self.connection).await.is_ok();
        stored
    }

    async fn store(&mut self, plan: &Plan) -> Result<(), Error> {
        let events = plan.events();
        let together = plan.statements.len() <= FEW && events.len() <= 2 * SMALL && plan.heads.len() <= SMALL;
        let mut script = Script::default();
        self.begin(&mut script);
        for statement in &plan.statements {
            script.add(statement.sql, statement.values.iter().cloned());
            if !together {
                self.send(&mut script).await?;
            }
        }
        for (size, events) in cut(&events) {
            script.add(&INSERT[size], events.iter().flat_map(|event| row(event)));
            if !together {
                self.send(&mut script).await?;
            }
        }
        for (size, heads) in cut(&plan.heads) {
            script.add(&SET_HEADS[size], heads.iter().flat_map(moved));
            if !together {
                self.send(&mut script).await?;
            }
        }
        script.add("COMMIT", []);
        self.send(&mut script).await
    }

    async fn send(&mut self, script: &mut Script) -> Result<(), Error> {
        if let Some((sql, values)) = script.take() {
            bind_all!(sqlx::query(AssertSqlSafe(sql)), values).execute(&mut *self.connection).await?;
        }
        Ok(())
    }
}

fn row(event: &Event) -> [Value; 9] {
    [
        event.room_id.0.into(),
        signed(event.seq).into(),
        event.id.0.into(),
        event.kind.as_str().into(),
        event.run_id.map(|id| id.0).into(),
        event.agent_id.map(|id| id.0).into(),
        event.created_at.as_millis().into(),
        event.data.as_str().into(),
        event.raw.as_deref().into(),
    ]
}

fn moved((room, head): &(RoomId, Seq)) -> [Value; 2] {
    [room.0.into(), signed(*head).into()]
}

#[cfg(test)]
mod tests {
    use super::{SIZES, Script, Value, cut, padded};
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

    #[test]
    fn the_parameters_of_a_script_count_on() {
        let mut script = Script::default();
        assert!(script.take().is_none());
        script.add("BEGIN", []);
        script.add("INSERT INTO a VALUES ($1, $2, $1)", [Value::from(1), Value::from("two")]);
        script.add("UPDATE a SET b = $10 + $2", [Value::from(3)]);
        let (sql, values) = script.take().unwrap();
        assert_eq!(sql, "BEGIN;INSERT INTO a VALUES ($1, $2, $1);UPDATE a SET b = $12 + $4;");
        assert_eq!(values.len(), 3);
        assert!(script.take().is_none());
    }
}

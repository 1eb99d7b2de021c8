//! The journal's statements on SQLite. Rows are sent in statements of a few fixed sizes: each size is prepared once,
//! and one statement per row would cost three times as much. Statements are sent together as a [`Script`], because a
//! round trip to SQLite's thread takes longer than most statements. A single commit takes two round trips, one to begin
//! and read and one to store and commit; or only the second, if the cached facts are enough.

use super::plan::{CommitPlan, CommitSubjects, GrownJournal, JournalFacts, LeaseState};
use crate::{
    StoreError,
    commit::{Refusal, Value, bind_all},
    error::{signed, unsigned},
};
use domain::{
    event::Event,
    ids::{EventId, RoomId, RunId},
};
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, pool::PoolConnection};
use std::{collections::HashMap, fmt::Write as _, sync::LazyLock};
use uuid::Uuid;

const SIZES: [usize; 5] = [1, 2, 4, 16, 64];
/// Larger statements, and all statements of a large plan, are sent on their own: a script with them would rarely repeat
/// and would be prepared each time.
const SMALL_ROWS: usize = 4;
const MAX_SCRIPT_STATEMENTS: usize = 12;

type SizedStatements = [String; SIZES.len()];

/// One statement per size: `head`, then `size` times a row of `columns` parameters, then `foot`.
fn statements(head: &str, columns: usize, foot: &str) -> SizedStatements {
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

fn lookups(head: &str, foot: &str) -> SizedStatements {
    SIZES.map(|size| {
        let marks: Vec<String> = (1..=size).map(|n| format!("${n}")).collect();
        format!("{head} IN ({}) {foot}", marks.join(","))
    })
}

static INSERT: LazyLock<SizedStatements> = LazyLock::new(|| {
    let head = "INSERT INTO events (room_id, seq, id, kind, run_id, agent_id, created_at, data, raw) VALUES";
    statements(head, 9, "")
});
static GROW: LazyLock<SizedStatements> = LazyLock::new(|| {
    let head = "INSERT INTO journals (room_id, head, bytes) VALUES";
    statements(
        head,
        3,
        "ON CONFLICT (room_id) DO UPDATE SET head = excluded.head, bytes = journals.bytes + excluded.bytes",
    )
});
const USED: &str = "SELECT owner, key FROM idempotency WHERE owner = $1 AND key = $2";

/// The kind of a result row: the rows of several lookups are returned together.
const HEAD: i64 = 0;
const EVENT: i64 = 1;
const LEASE: i64 = 2;
const UNFINISHED: i64 = 3;
const SIGNAL: i64 = 4;
const TAPE: i64 = 5;
/// The kind, the key, a number, a text, and the id of a signal.
type FactRow = (i64, Uuid, i64, Option<String>, Option<Uuid>);

static HEADS: LazyLock<SizedStatements> =
    LazyLock::new(|| lookups(&format!("SELECT {HEAD}, room_id, head, NULL, NULL FROM journals WHERE room_id"), ""));
static EXISTING: LazyLock<SizedStatements> =
    LazyLock::new(|| lookups(&format!("SELECT {EVENT}, id, seq, NULL, NULL FROM events WHERE id"), ""));
static LEASES: LazyLock<SizedStatements> =
    LazyLock::new(|| lookups(&format!("SELECT {LEASE}, run_id, fence, holder, NULL FROM queue WHERE run_id"), ""));
static COUNTS: LazyLock<SizedStatements> = LazyLock::new(|| {
    lookups(&format!("SELECT {UNFINISHED}, room_id, COUNT(*), NULL, NULL FROM queue WHERE room_id"), "GROUP BY room_id")
});

static SIGNALS: LazyLock<SizedStatements> = LazyLock::new(|| {
    let head = format!("SELECT {SIGNAL}, run_id, 0, kind, id FROM signals WHERE outcome IS NULL AND run_id");
    lookups(&head, "")
});

/// A script commits in the same round trip, so the database itself must notice a statement that changed no row: an
/// insert into this view fails with the name of the refusal. The view exists only in the write connection.
pub(crate) const PREPARE_WRITE_CONNECTION: &str = "CREATE TEMP VIEW refusals AS SELECT '' AS name; \
     CREATE TEMP TRIGGER refuse INSTEAD OF INSERT ON refusals BEGIN SELECT RAISE(ABORT, NEW.name); END;";
const REFUSE_IF_UNCHANGED: &str = "INSERT INTO refusals SELECT $1 WHERE changes() = 0";

/// Returns the refusal that stopped a script.
fn refusal(error: &sqlx::Error) -> Option<Refusal> {
    const CONSTRAINT_TRIGGER: &str = "1811";
    let error = error.as_database_error().filter(|error| error.code().as_deref() == Some(CONSTRAINT_TRIGGER))?;
    Refusal::ALL.into_iter().find(|refusal| refusal.as_str() == error.message())
}

static TAPES: LazyLock<SizedStatements> =
    LazyLock::new(|| lookups(&format!("SELECT {TAPE}, room_id, version, NULL, NULL FROM tapes WHERE room_id"), ""));

/// Splits rows into full statements, always of the largest size that fits.
fn chunks<T>(mut rows: &[T]) -> impl Iterator<Item = (usize, &[T])> {
    std::iter::from_fn(move || {
        let size = SIZES.iter().rposition(|&size| size <= rows.len())?;
        let (now, later) = rows.split_at(SIZES[size]);
        rows = later;
        Some((size, now))
    })
}

/// Splits keys into statements; the last statement is filled by repeating a key, which does not change a lookup.
fn padded_chunks(keys: &[Uuid]) -> impl Iterator<Item = (usize, Vec<Uuid>)> {
    let largest = SIZES[SIZES.len() - 1];
    keys.chunks(largest).filter_map(|chunk| {
        let last = *chunk.last()?;
        let size = SIZES.iter().position(|&size| size >= chunk.len())?;
        let mut keys = chunk.to_vec();
        keys.resize(SIZES[size], last);
        Some((size, keys))
    })
}

/// Statements that are sent together.
#[derive(Default)]
struct Script {
    sql: String,
    values: Vec<Value>,
    statements: usize,
}

impl Script {
    /// Renumbers the parameters: each statement counts from 1, a script counts on.
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

/// A transaction of the writer. Dropping it before its end closes the connection, which rolls it back.
pub(super) struct JournalTransaction {
    connection: PoolConnection<Sqlite>,
    has_begun: bool,
    is_over: bool,
}

impl Drop for JournalTransaction {
    fn drop(&mut self) {
        if self.has_begun && !self.is_over {
            self.connection.close_on_drop();
        }
    }
}

impl JournalTransaction {
    pub(super) async fn acquire(pool: &SqlitePool) -> Result<Self, StoreError> {
        Ok(Self { connection: pool.acquire().await?, has_begun: false, is_over: false })
    }

    /// Begins the transaction and reads the facts. Nobody else can write from now on, so they stay valid.
    pub(super) async fn load_facts(&mut self, at: &CommitSubjects) -> Result<JournalFacts, StoreError> {
        let keys: [Vec<Uuid>; 6] = [
            at.rooms.iter().map(|id| id.0).collect(),
            at.first_events.iter().map(|id| id.0).collect(),
            at.runs.iter().map(|id| id.0).collect(),
            at.idle_checks.iter().map(|id| id.0).collect(),
            // Of all runs and rooms, because the same script finds them, and later commits need not read them.
            at.runs.iter().map(|id| id.0).collect(),
            at.rooms.iter().map(|id| id.0).collect(),
        ];
        let mut script = Script::default();
        self.begin(&mut script);
        let mut facts = JournalFacts::for_subjects(at);
        facts.pending_signals.extend(at.runs.iter().map(|run| (*run, HashMap::new())));
        facts.tapes.extend(at.rooms.iter().map(|room| (*room, 0)));
        for (statements, keys) in [&*HEADS, &*EXISTING, &*LEASES, &*COUNTS, &*SIGNALS, &*TAPES].into_iter().zip(&keys) {
            for (size, keys) in padded_chunks(keys) {
                if SIZES[size] > SMALL_ROWS {
                    self.find(&mut script, &mut facts).await?;
                }
                script.add(&statements[size], keys.into_iter().map(Value::from));
                if SIZES[size] > SMALL_ROWS {
                    self.find(&mut script, &mut facts).await?;
                }
            }
        }
        self.find(&mut script, &mut facts).await?;
        for (owner, key) in &at.keys {
            let query = sqlx::query_as(USED).bind(owner.as_str()).bind(key.as_str());
            facts.used_keys.extend(query.fetch_optional(&mut *self.connection).await?);
        }
        Ok(facts)
    }

    fn begin(&mut self, script: &mut Script) {
        if !std::mem::replace(&mut self.has_begun, true) {
            script.add("BEGIN IMMEDIATE", []);
        }
    }

    async fn find(&mut self, script: &mut Script, facts: &mut JournalFacts) -> Result<(), StoreError> {
        let Some((sql, values)) = script.take() else { return Ok(()) };
        let found: Vec<FactRow> =
            bind_all!(sqlx::query_as(AssertSqlSafe(sql)), values).fetch_all(&mut *self.connection).await?;
        for (what, id, number, text, signal) in found {
            let number = unsigned(number)?;
            match what {
                HEAD => drop(facts.heads.insert(RoomId(id), number)),
                EVENT => drop(facts.stored_events.insert(EventId(id), number)),
                LEASE => drop(facts.leases.insert(RunId(id), LeaseState { fence: number, holder: text })),
                UNFINISHED => drop(facts.unfinished.insert(RoomId(id), number)),
                TAPE => drop(facts.tapes.insert(RoomId(id), number)),
                _ => {
                    if let Some((signal, kind)) = signal.zip(text) {
                        facts.add_signal(RunId(id), signal, &kind);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) async fn commit(mut self, plan: &CommitPlan) -> Result<(), StoreError> {
        let stored = self.store(plan).await;
        // A duplicate or a refusal is rejected here; the connection is still usable after a rollback.
        self.is_over = stored.is_ok() || sqlx::query("ROLLBACK").execute(&mut *self.connection).await.is_ok();
        stored
    }

    async fn store(&mut self, plan: &CommitPlan) -> Result<(), StoreError> {
        let events = plan.events();
        let together = plan.statements.len() <= MAX_SCRIPT_STATEMENTS
            && events.len() <= 2 * SMALL_ROWS
            && plan.grown.len() <= SMALL_ROWS;
        let mut script = Script::default();
        self.begin(&mut script);
        for statement in &plan.statements {
            script.add(statement.sql, statement.values.iter().cloned());
            if let Some(refusal) = statement.must_change {
                script.add(REFUSE_IF_UNCHANGED, [refusal.as_str().into()]);
            }
            if !together {
                self.send(&mut script).await?;
            }
        }
        for (size, events) in chunks(&events) {
            script.add(&INSERT[size], events.iter().flat_map(|event| event_row(event)));
            if !together {
                self.send(&mut script).await?;
            }
        }
        for (size, journals) in chunks(&plan.grown) {
            script.add(&GROW[size], journals.iter().flat_map(grown_row));
            if !together {
                self.send(&mut script).await?;
            }
        }
        script.add("COMMIT", []);
        self.send(&mut script).await
    }

    async fn send(&mut self, script: &mut Script) -> Result<(), StoreError> {
        if let Some((sql, values)) = script.take() {
            let sent = bind_all!(sqlx::query(AssertSqlSafe(sql)), values).execute(&mut *self.connection).await;
            sent.map_err(|error| refusal(&error).map_or_else(|| error.into(), StoreError::from))?;
        }
        Ok(())
    }
}

fn event_row(event: &Event) -> [Value; 9] {
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

fn grown_row(journal: &GrownJournal) -> [Value; 3] {
    [journal.room.0.into(), signed(journal.head).into(), signed(journal.bytes).into()]
}

#[cfg(test)]
mod tests {
    use super::{SIZES, Script, Value, chunks, padded_chunks};
    use uuid::Uuid;

    #[test]
    fn every_row_is_sent_once_and_every_key_at_least_once() {
        for count in [0, 1, 2, 3, 4, 5, 63, 64, 65, 200] {
            let rows: Vec<usize> = (0..count).collect();
            let sent: Vec<usize> = chunks(&rows)
                .flat_map(|(size, rows)| {
                    assert_eq!(rows.len(), SIZES[size]);
                    rows.to_vec()
                })
                .collect();
            assert_eq!(sent, rows);
            let keys: Vec<Uuid> = (0..count).map(|n| Uuid::from_u128(n as u128)).collect();
            let mut asked: Vec<Uuid> = padded_chunks(&keys)
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
    fn script_parameters_are_renumbered() {
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

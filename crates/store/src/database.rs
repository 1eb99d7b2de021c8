//! The two databases behind one type. Chosen once when the store opens; queries are written once, and these macros
//! expand them for both.

use futures_util::future::BoxFuture;
use sqlx::{PgPool, Postgres, Sqlite, SqlitePool, Transaction, pool::PoolConnection};
use std::sync::{Arc, atomic::AtomicU64};

#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// One write connection and several read connections: SQLite has one writer, and readers never wait for it.
    Sqlite {
        write: SqlitePool,
        read: SqlitePool,
        /// The number of writes by anything but the journal writer, counted while the connection is held.
        external_writes: Arc<AtomicU64>,
    },
    Postgres(PgPool),
}

/// A connection that is about to begin a transaction. sqlx 0.9.0 loses track of a BEGIN whose caller was cancelled
/// before the reply: the connection would return to the pool inside an open transaction, and later readers would see
/// an old snapshot indefinitely. This guard closes such a connection instead.
#[derive(Debug)]
pub(crate) struct BeginGuard {
    pub connection: PoolConnection<Postgres>,
    pub begun: bool,
}

impl BeginGuard {
    /// Boxed, because acquiring may connect, and that future takes 14 KiB: without the box every query's future and
    /// every task that holds one would take that much too, and the code would be compiled once for each.
    pub(crate) fn acquire(pool: &PgPool) -> BoxFuture<'_, Result<Self, sqlx::Error>> {
        Box::pin(async move { Ok(Self { connection: pool.acquire().await?, begun: false }) })
    }
}

impl Drop for BeginGuard {
    fn drop(&mut self) {
        if !self.begun {
            self.connection.close_on_drop();
        }
    }
}

/// Begins a transaction with the given statement. Boxed for the same reason as [`BeginGuard::acquire`].
pub(crate) fn begin_sqlite<'a>(
    pool: &'a SqlitePool,
    statement: &'static str,
) -> BoxFuture<'a, Result<Transaction<'static, Sqlite>, sqlx::Error>> {
    Box::pin(pool.begin_with(statement))
}

/// Runs the block in a PostgreSQL transaction that begins with the given statement.
macro_rules! in_postgres {
    ($pool:expr, $begin:literal, |$transaction:ident| $body:block) => {{
        let mut beginning = $crate::database::BeginGuard::acquire($pool).await?;
        let $crate::database::BeginGuard { connection, begun } = &mut beginning;
        let mut $transaction = sqlx::Connection::begin_with(&mut **connection, $begin).await?;
        *begun = true;
        let out = $body;
        $transaction.commit().await?;
        out
    }};
}

/// Runs one query on a read connection.
macro_rules! reading {
    ($database:expr, |$pool:ident| $query:expr) => {
        match $database {
            $crate::database::Database::Sqlite { read, .. } => {
                let $pool = read;
                $query
            }
            $crate::database::Database::Postgres(pool) => {
                let $pool = pool;
                $query
            }
        }
    };
}

/// Runs the block in one read transaction with a consistent snapshot.
macro_rules! snapshot {
    ($database:expr, |$transaction:ident| $body:block) => {
        match $database {
            $crate::database::Database::Sqlite { read, .. } => {
                let mut $transaction = $crate::database::begin_sqlite(read, "BEGIN").await?;
                let out = $body;
                $transaction.commit().await?;
                out
            }
            $crate::database::Database::Postgres(pool) => {
                $crate::database::in_postgres!(
                    pool,
                    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                    |$transaction| $body
                )
            }
        }
    };
}

/// Runs the block in one write transaction. An early return rolls back.
macro_rules! writing {
    ($database:expr, |$transaction:ident| $body:block) => {
        match $database {
            $crate::database::Database::Sqlite { write, external_writes, .. } => {
                let mut $transaction = $crate::database::begin_sqlite(write, "BEGIN IMMEDIATE").await?;
                external_writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let out = $body;
                $transaction.commit().await?;
                out
            }
            $crate::database::Database::Postgres(pool) => {
                $crate::database::in_postgres!(pool, "BEGIN", |$transaction| $body)
            }
        }
    };
}

pub(crate) use {in_postgres, reading, snapshot, writing};

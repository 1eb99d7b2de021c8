//! The two engines behind one name. Chosen once when the store opens; past it, a query is written once and expanded for
//! both by these macros.

use sqlx::{PgPool, Postgres, SqlitePool, pool::PoolConnection};
use std::sync::atomic::AtomicU64;

#[derive(Debug)]
pub(crate) enum Database {
    /// One connection that writes, several that read: SQLite has one writer, and readers never wait for it.
    Sqlite {
        write: SqlitePool,
        read: SqlitePool,
        /// How often it was written by anybody but the journal's writer, counted while the connection is held.
        meddled: AtomicU64,
    },
    Postgres(PgPool),
}

/// A connection that is about to begin a transaction. sqlx 0.9.0 forgets a BEGIN whose caller went away before the
/// answer came: the connection would go back to the pool inside a transaction that nobody ends, and the next reader
/// would look at an old moment for ever. Such a connection is closed instead.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub connection: PoolConnection<Postgres>,
    pub begun: bool,
}

impl Beginning {
    pub(crate) async fn on(pool: &PgPool) -> Result<Self, sqlx::Error> {
        Ok(Self { connection: pool.acquire().await?, begun: false })
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if !self.begun {
            self.connection.close_on_drop();
        }
    }
}

/// Runs the block in a PostgreSQL transaction that begins with this statement.
macro_rules! in_postgres {
    ($pool:expr, $begin:literal, |$transaction:ident| $body:block) => {{
        let mut beginning = $crate::database::Beginning::on($pool).await?;
        let $crate::database::Beginning { connection, begun } = &mut beginning;
        let mut $transaction = sqlx::Connection::begin_with(&mut **connection, $begin).await?;
        *begun = true;
        let out = $body;
        $transaction.commit().await?;
        out
    }};
}

/// Runs one query on a connection that only reads.
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

/// Runs the block in one transaction that sees one moment of the database.
macro_rules! snapshot {
    ($database:expr, |$transaction:ident| $body:block) => {
        match $database {
            $crate::database::Database::Sqlite { read, .. } => {
                let mut $transaction = read.begin().await?;
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

/// Runs the block in one transaction that writes. An early return rolls back.
macro_rules! writing {
    ($database:expr, |$transaction:ident| $body:block) => {
        match $database {
            $crate::database::Database::Sqlite { write, meddled, .. } => {
                let mut $transaction = write.begin_with("BEGIN IMMEDIATE").await?;
                meddled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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

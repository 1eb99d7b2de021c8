//! The two engines behind one name. Chosen once when the store opens; past it, a query is written once and expanded for
//! both by these macros.

use sqlx::{PgPool, SqlitePool};

#[derive(Debug)]
pub(crate) enum Database {
    /// One connection that writes, several that read: SQLite has one writer, and readers never wait for it.
    Sqlite {
        write: SqlitePool,
        read: SqlitePool,
    },
    Postgres(PgPool),
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
                let mut $transaction = pool
                    .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    .await?;
                let out = $body;
                $transaction.commit().await?;
                out
            }
        }
    };
}

/// Runs the block in one transaction that writes. An early return rolls back.
macro_rules! writing {
    ($database:expr, |$transaction:ident| $body:block) => {
        match $database {
            $crate::database::Database::Sqlite { write, .. } => {
                let mut $transaction = write.begin_with("BEGIN IMMEDIATE").await?;
                let out = $body;
                $transaction.commit().await?;
                out
            }
            $crate::database::Database::Postgres(pool) => {
                let mut $transaction = pool.begin().await?;
                let out = $body;
                $transaction.commit().await?;
                out
            }
        }
    };
}

pub(crate) use {reading, snapshot, writing};

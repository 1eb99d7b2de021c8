//! The contract of the store, kept by both engines: every case is written once and runs on SQLite and on PostgreSQL.
//!
//! A case takes a fresh [`testkit::database::TestDatabase`]; `contract!` makes it a test of each engine. `scene` holds
//! what the cases are built from.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

/// Makes each case a test of both engines. Under `many threads` tasks really run beside each other; under `one thread`
/// commits that are handed in together reach the writer as one group.
macro_rules! contract {
    ($(many threads: $($many:ident),+;)? $(one thread: $($one:ident),+;)?) => {
        contract!(@engine sqlite, $($($many),+)?; $($($one),+)?);
        contract!(@engine postgres, $($($many),+)?; $($($one),+)?);
    };
    (@engine $engine:ident, $($many:ident),*; $($one:ident),*) => {
        mod $engine {
            use testkit::database::TestDatabase;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $many() {
                super::$many(TestDatabase::$engine()).await;
            })*
            $(#[tokio::test(flavor = "current_thread")]
            async fn $one() {
                super::$one(TestDatabase::$engine()).await;
            })*
        }
    };
}

mod agents;
mod append;
mod broken;
mod cancelled;
mod durable;
mod epoch;
mod follow;
mod group;
mod guards;
mod history;
mod idempotent;
mod killed;
mod mcp_servers;
mod memory;
mod owner;
mod queue;
mod rooms;
mod run_pages;
mod runs;
mod scene;
mod skills;
mod summaries;
mod text;
mod tokens;
mod tools;
mod uploads;
mod usage;
mod visits;
mod watch;

//! The contract of the store for both databases: every case is written once and runs on SQLite and on PostgreSQL.
//!
//! A case takes a fresh [`testkit::database::TestDatabase`]; `contract!` makes it a test for each database. `scene`
//! holds shared helpers.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a panic fails the test")]

/// Makes each case a test for both databases. With `many threads` tasks run in parallel; with `one thread` commits that
/// are submitted together reach the writer as one group.
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
mod audit;
mod broken;
mod browser_sessions;
mod cancelled;
mod durable;
mod epoch;
mod erase;
mod follow;
mod foreign_keys;
mod group;
mod guards;
mod history;
mod idempotent;
mod killed;
mod mcp_servers;
mod memory;
mod notify;
mod owner;
mod provider_settings;
mod queue;
mod rooms;
mod run_pages;
mod run_status;
mod run_trees;
mod runs;
mod scene;
mod search;
mod secrets;
mod signals;
mod skills;
mod summaries;
mod tapes;
mod text;
mod tokens;
mod tools;
mod uploads;
mod usage;
mod watch;
mod workspaces;

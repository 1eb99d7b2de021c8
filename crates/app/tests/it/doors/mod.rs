//! The whole server, driven through its public doors only, with the scripted provider.
//!
//! Every case is written once and runs on both engines: `sqlite::name` and `postgres::name`. A case under `server` is
//! handed a running one, which is checked when the case is done: see [`testkit::server::TestServer::finish`]. A case under
//! `database` starts what it needs itself, the real binary among it. `scene` holds what the cases are built from.

/// Makes each case a test of both engines.
macro_rules! doors {
    ($(server: $($served:ident),+;)? $(database: $($bare:ident),+;)?) => {
        doors!(@engine sqlite, $($($served),+)?; $($($bare),+)?);
        doors!(@engine postgres, $($($served),+)?; $($($bare),+)?);
    };
    (@engine $engine:ident, $($served:ident),*; $($bare:ident),*) => {
        mod $engine {
            use testkit::database::TestDatabase;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $served() {
                let server = testkit::server::TestServer::start(TestDatabase::$engine()).await;
                super::$served(server.api()).await;
                server.finish().await;
            })*
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $bare() {
                super::$bare(TestDatabase::$engine()).await;
            })*
        }
    };
}

mod accounts;
mod agents;
mod approvals;
mod backup;
mod bad_content;
mod bad_positions;
mod bad_requests;
mod bad_sockets;
mod binary;
mod cancel;
mod command_line;
mod crash;
mod doctor;
mod execute;
mod feed;
mod figures;
mod history;
mod idempotent;
mod limits;
mod mcp_hostile;
mod mcp_live;
mod mcp_passes;
mod mcp_scene;
mod mcp_servers;
mod mcp_stdio;
mod mcp_streams;
mod mcp_tools;
mod openapi;
mod paused;
mod providers;
mod readme;
mod reconnect;
mod remembered;
mod rooms;
mod roster;
mod run_pages;
mod run_stream;
pub mod scene;
mod session;
mod skills;
mod skills_training;
mod skills_transfer;
mod slow;
mod stop;
mod tokens;
mod two_servers;
mod uploads;
mod usage;
mod when_busy;

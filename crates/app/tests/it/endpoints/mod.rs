//! The whole server, tested through its public endpoints only, with the scripted provider.
//!
//! Every test is written once and runs on both engines: `sqlite::name` and `postgres::name`. A test under `server` gets
//! a running server, which is checked at the end: see [`testkit::server::TestServer::finish`]. A test under `database`
//! starts what it needs itself, such as the real binary. `requests` has the shared helpers.

/// Defines each test for both engines.
macro_rules! on_both_databases {
    ($(server: $($served:ident),+;)? $(database: $($bare:ident),+;)?) => {
        on_both_databases!(@engine sqlite, $($($served),+)?; $($($bare),+)?);
        on_both_databases!(@engine postgres, $($($served),+)?; $($($bare),+)?);
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
mod agent_files;
mod agent_memory;
mod agents;
mod approvals;
mod audit;
mod backup;
mod bad_content;
mod bad_positions;
mod bad_requests;
mod bad_sockets;
mod binary;
mod budgets;
mod cancel;
mod closed;
mod command_line;
mod contract_bodies;
mod contract_headers;
mod contract_lists;
mod crash;
mod described_chat;
mod described_run;
mod described_sequences;
mod doctor;
mod egress;
mod erase;
mod execute;
mod execute_resume;
mod exhaustion;
mod feed;
mod figures;
mod history;
mod idempotent;
mod initiate;
mod large_events;
mod limits;
mod mcp_agent_tokens;
mod mcp_calling_agent;
mod mcp_hostile;
mod mcp_live;
mod mcp_requests;
mod mcp_servers;
mod mcp_stdio;
mod mcp_streams;
mod mcp_tools;
mod mcp_variables;
mod mentions;
mod openapi;
mod paused;
mod project_commands;
mod project_files;
mod project_ports;
mod project_programs;
mod project_tools;
mod projects;
mod provider_settings;
mod providers;
mod raw_data;
mod readme;
mod reconnect;
mod remembered;
pub mod requests;
mod roles;
mod room_forks;
mod room_list;
mod room_placement;
mod rooms;
mod run_pages;
mod run_stream;
mod run_trees;
pub mod search;
mod session;
mod shares;
mod skill_trust;
mod skills;
mod skills_training;
mod skills_transfer;
mod slow;
mod stop;
pub mod tape;
mod tape_interrupts;
mod tape_on_two_servers;
mod tape_policies;
mod tls;
mod tokens;
mod two_servers;
mod upgrade_check;
mod uploads;
mod usage;
mod when_busy;

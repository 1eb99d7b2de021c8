//! Tests of the engine on a real store, with a provider that the test controls.
//!
//! A case takes a fresh [`testkit::database::TestDatabase`]; `contract!` makes it a test on each database engine. Start
//! at `harness`: it holds the helpers.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "an unexpected value fails the test")]

macro_rules! contract {
    ($($case:ident),+ $(,)?) => {
        contract!(@engine sqlite, $($case),+);
        contract!(@engine postgres, $($case),+);
    };
    (@engine $engine:ident, $($case:ident),+) => {
        mod $engine {
            use testkit::database::TestDatabase;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(TestDatabase::$engine()).await;
            })*
        }
    };
}

mod actors;
mod agent_workspace;
mod approvals;
mod budgets;
mod cells;
mod clocks;
mod connections;
mod context;
mod handoff;
mod harness;
mod mcp_servers;
mod providers;
mod sessions;
mod signals;
mod skills;
mod steer;

//! The engine on a real store, with a provider whose every word the test says itself.
//!
//! A case takes a fresh [`testkit::database::TestDatabase`]; `contract!` makes it a test of each engine. `scene` holds
//! what the cases are built from.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that meets the unexpected has failed")]

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

mod approvals;
mod clocks;
mod equipment;
mod handoff;
mod place;
mod providers;
mod scene;
mod sessions;
mod skills;
mod steer;

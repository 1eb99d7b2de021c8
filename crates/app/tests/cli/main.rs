//! The real `claude`, `codex` and `gemini`, driven by the real server, against a double of their model APIs.
//!
//! Every scenario is written once and runs with each of them: `claude_code::name`, `codex::name`, `gemini::name`.
//! `cargo xtask test cli` installs the pinned programs and passes their paths; without it there is nothing to run, so
//! this target is not part of a plain `cargo test`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking, its helpers too")]

#[path = "../it/endpoints/requests.rs"]
#[allow(dead_code, reason = "the endpoint tests use all of it")]
mod requests;

/// Defines a test of each scenario for all three programs.
macro_rules! with_each_cli {
    ($($scenario:ident),+ $(,)?) => {
        with_each_cli!(@one claude_code, ClaudeCode, $($scenario),+);
        with_each_cli!(@one codex, Codex, $($scenario),+);
        with_each_cli!(@one gemini, Gemini, $($scenario),+);
    };
    (@one $name:ident, $cli:ident, $($scenario:ident),+) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                let fixture = crate::cli_fixture::CliFixture::start(crate::cli_fixture::Cli::$cli).await;
                super::$scenario(&fixture).await;
                fixture.finish().await;
            })+
        }
    };
}

mod answers;
mod budgets;
mod cli_fixture;
mod crowd;
mod failures;
mod hostile;
mod inside;
mod mixed_rooms;
mod projects;
mod sessions;
mod skills;
mod steering;
mod stops;
mod tools;

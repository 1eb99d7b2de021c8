//! Switches for tests, in builds with the feature `test-hooks`. Each is off until its variable turns it on, so that one
//! build serves all tests:
//!
//! - `GREENROOM_PLANTED_BUG=emit-before-commit` or `synchronous-off`: a deliberate bug, to prove that the crash harness
//!   detects it.
//! - `GREENROOM_TEST_CONFORMANCE=1`: MCP clients get the fixture that the official conformance suite requires, instead
//!   of Greenroom. Only in debug builds.
//!
//! No released binary has the feature: `cargo xtask dist` and `cargo xtask serve` build without it. Such a build ignores
//! the variables.

use server::McpHandlerKind;
use store::PlantedBug;

#[cfg(feature = "test-hooks")]
pub fn planted_bug() -> anyhow::Result<Option<PlantedBug>> {
    let bug = match variable("GREENROOM_PLANTED_BUG").as_deref() {
        None => return Ok(None),
        Some("emit-before-commit") => PlantedBug::EmitBeforeCommit,
        Some("synchronous-off") => PlantedBug::SynchronousOff,
        Some(other) => anyhow::bail!("unknown planted bug {other:?}; use emit-before-commit or synchronous-off"),
    };
    tracing::warn!(?bug, "TEST HOOK: this server has a planted bug and loses data; unset GREENROOM_PLANTED_BUG");
    Ok(Some(bug))
}

#[cfg(feature = "test-hooks")]
pub fn mcp_handler() -> anyhow::Result<McpHandlerKind> {
    match variable("GREENROOM_TEST_CONFORMANCE").as_deref() {
        None => return Ok(McpHandlerKind::Greenroom),
        Some("1") => {}
        Some(other) => anyhow::bail!("GREENROOM_TEST_CONFORMANCE is {other:?}; use 1, or unset it"),
    }
    anyhow::ensure!(
        cfg!(debug_assertions),
        "GREENROOM_TEST_CONFORMANCE works in debug builds only; unset it, or build without --release"
    );
    tracing::warn!("TEST HOOK: MCP clients get the conformance fixture; unset GREENROOM_TEST_CONFORMANCE");
    Ok(McpHandlerKind::ConformanceFixture)
}

/// An empty variable counts as unset.
#[cfg(feature = "test-hooks")]
#[expect(clippy::disallowed_methods, reason = "the application is where the environment is read")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(not(feature = "test-hooks"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail in builds with the feature")]
pub fn planted_bug() -> anyhow::Result<Option<PlantedBug>> {
    Ok(None)
}

#[cfg(not(feature = "test-hooks"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail in builds with the feature")]
pub fn mcp_handler() -> anyhow::Result<McpHandlerKind> {
    Ok(McpHandlerKind::Greenroom)
}

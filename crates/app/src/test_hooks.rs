//! Deliberate bugs, selected by GREENROOM_PLANTED_BUG in builds with the feature `planted-bugs`. They prove that the
//! crash harness detects such bugs. Other builds have none.

use store::PlantedBug;

#[cfg(feature = "planted-bugs")]
#[expect(clippy::disallowed_methods, reason = "the application is where the environment is read")]
pub fn from_environment() -> anyhow::Result<Option<PlantedBug>> {
    match std::env::var("GREENROOM_PLANTED_BUG").as_deref() {
        Err(_) | Ok("") => Ok(None),
        Ok("emit-before-commit") => Ok(Some(PlantedBug::EmitBeforeCommit)),
        Ok("synchronous-off") => Ok(Some(PlantedBug::SynchronousOff)),
        Ok(other) => {
            anyhow::bail!("unknown planted bug {other:?}; use emit-before-commit or synchronous-off")
        }
    }
}

#[cfg(not(feature = "planted-bugs"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail in builds with the feature")]
pub fn from_environment() -> anyhow::Result<Option<PlantedBug>> {
    Ok(None)
}

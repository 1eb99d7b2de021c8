//! Bugs on purpose, chosen by GREENROOM_PLANTED_BUG in builds with the feature `planted-bugs`: they show that the crash
//! harness would see such a bug. Every other build has none.

use store::Planted;

#[cfg(feature = "planted-bugs")]
#[expect(clippy::disallowed_methods, reason = "the application is where the environment is read")]
pub fn from_environment() -> anyhow::Result<Option<Planted>> {
    match std::env::var("GREENROOM_PLANTED_BUG").as_deref() {
        Err(_) | Ok("") => Ok(None),
        Ok("emit-before-commit") => Ok(Some(Planted::EmitBeforeCommit)),
        Ok("synchronous-off") => Ok(Some(Planted::SynchronousOff)),
        Ok(other) => {
            anyhow::bail!("there is no planted bug {other:?}; there are emit-before-commit and synchronous-off")
        }
    }
}

#[cfg(not(feature = "planted-bugs"))]
#[expect(clippy::unnecessary_wraps, reason = "the other build of it can fail")]
pub fn from_environment() -> anyhow::Result<Option<Planted>> {
    Ok(None)
}

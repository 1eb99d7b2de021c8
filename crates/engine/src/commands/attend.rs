//! Runs whose client waits for them: what becomes of one when the client goes away.

use crate::Engine;
use domain::{ids::RunId, owner::Owner};
use serde::Deserialize;

/// What becomes of a run whose client goes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It goes on; its answer is in the room.
    #[default]
    Continue,
    Cancel,
}

/// Held for as long as a client waits. Dropped before its end, it cancels the run if the client asked for that.
pub struct Attendance {
    engine: Engine,
    owner: Owner,
    run: RunId,
    cancels: bool,
}

impl Engine {
    pub fn attend(&self, owner: &Owner, run: RunId, on_disconnect: OnDisconnect) -> Attendance {
        let cancels = on_disconnect == OnDisconnect::Cancel;
        Attendance { engine: self.clone(), owner: owner.clone(), run, cancels }
    }
}

impl Attendance {
    /// The client has what it waited for, or was told why not.
    pub fn end(&mut self) {
        self.cancels = false;
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        if !self.cancels {
            return;
        }
        let (engine, owner, run) = (self.engine.clone(), self.owner.clone(), self.run);
        self.engine.chores().spawn(async move {
            if let Err(error) = engine.cancel_run(&owner, run).await {
                tracing::warn!(%run, %error, "a run whose client left could not be cancelled");
            }
        });
    }
}

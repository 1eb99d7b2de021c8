//! Cancels a run when the client that waits for it disconnects, if the client asked for that.

use crate::Engine;
use domain::{actor::Actor, ids::RunId, owner::Owner};
use serde::Deserialize;

/// What happens to a run when its client disconnects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// The run continues; its answer is stored in the room.
    #[default]
    Continue,
    Cancel,
}

/// Held while a client waits for a run. Cancels the run when dropped, unless disarmed.
pub struct DisconnectGuard {
    engine: Engine,
    workspace: Owner,
    run: RunId,
    is_armed: bool,
}

impl Engine {
    pub fn cancel_on_disconnect(&self, actor: &Actor, run: RunId, on_disconnect: OnDisconnect) -> DisconnectGuard {
        let cancels = on_disconnect == OnDisconnect::Cancel;
        DisconnectGuard { engine: self.clone(), workspace: actor.workspace.clone(), run, is_armed: cancels }
    }
}

impl DisconnectGuard {
    /// Call when the client has received the result or an error.
    pub fn disarm(&mut self) {
        self.is_armed = false;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        if !self.is_armed {
            return;
        }
        let (engine, actor, run) = (self.engine.clone(), Actor::system(self.workspace.clone()), self.run);
        self.engine.background_tasks().spawn(async move {
            if let Err(error) = engine.cancel_run(&actor, run).await {
                tracing::warn!(%run, %error, "could not cancel the run of a disconnected client");
            }
        });
    }
}

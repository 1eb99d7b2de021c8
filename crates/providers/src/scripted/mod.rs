//! The scripted provider, offline and deterministic: for demos, tests and load generation.
//!
//! The message is a script: `directive` parses it into steps (`script` parses the long form, `demo` translates a few plain
//! sentences), `player` plays them. The same message gives the same events, except for the ids of approvals. `docs/scripted.md` is the manual.

mod demo;
mod directive;
mod player;
mod script;
#[cfg(test)]
mod tests;

use crate::{Capabilities, Provider, TurnChannel, TurnFuture, TurnRequest};

#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedProvider;

impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        "scripted"
    }

    fn label(&self) -> &str {
        "Demo"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { steer: true, approvals: true, thinking: true, ..Capabilities::default() }
    }

    fn uses_settings(&self) -> bool {
        false
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(player::turn(request, channel))
    }
}

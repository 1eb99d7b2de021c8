//! Offline and deterministic: the demo, the test double and the load generator.
//!
//! The message says what to play: `directive` reads it into steps (`script` reads the long form), `play` sends them. The
//! same message gives the same events, but for the ids of approvals. `docs/scripted.md` is the manual.

mod directive;
mod play;
mod script;
#[cfg(test)]
mod tests;

use crate::{Capabilities, Provider, TurnChannel, TurnFuture, TurnRequest};

#[derive(Clone, Copy, Debug, Default)]
pub struct Scripted;

impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { steer: true, approvals: true, thinking: true, ..Capabilities::default() }
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(play::turn(request.prompt, channel))
    }
}

//! Any agent that speaks the Agent Client Protocol, version 1, by its command line. Gemini CLI is the first of them.
//!
//! `preset` says how each known agent is started and where it differs from the others. `turn` takes one turn: it gets an
//! `agent` that runs, opens a `session` with it, and has an `exchange` that ends with the answer to one prompt. `parse` and
//! `calls` make events of what is said meanwhile, `ending` of how it ended; they are pure. Start with `turn`.

mod agent;
mod calls;
mod ending;
mod exchange;
mod folder;
mod gemini;
#[cfg(test)]
mod own_tools;
mod parse;
mod preset;
mod session;
pub(crate) mod talk;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod transcripts;
#[cfg(test)]
mod troubles;
mod turn;

pub use preset::Preset;

use crate::{
    Capabilities, CloseFuture, InspectFuture, Inspection, Place, Provider, TurnChannel, TurnFuture, TurnRequest,
    crashes::Crashes,
    host_tools::pass::Door,
    pool::{Limits, Pool},
    program::Program,
};
use agent::Maker;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::JoinSet;
use turn::Shared;

const INSPECT: Duration = Duration::from_secs(10);
/// Made ready before anybody asks; each is a whole process.
const SPARES: usize = 1;

#[derive(Debug)]
pub struct Config {
    pub preset: Preset,
    /// Its `command` decides; a preset only suggests one.
    pub program: Program,
    /// How many processes there may be at a time.
    pub pool: usize,
    /// How long one is kept for the next turn of its conversation.
    pub idle: Duration,
    /// By which agents come to the host tools.
    pub door: Door,
}

#[derive(Debug)]
pub struct Acp {
    shared: Arc<Shared>,
    preparing: Mutex<JoinSet<()>>,
}

impl Acp {
    pub fn new(config: Config) -> Self {
        let Config { preset, program, pool, idle, door } = config;
        let pool = Pool::new(Limits { places: pool, idle, spares: SPARES });
        let crashes = Crashes::new(&preset.name);
        let maker = Maker { preset, program, door };
        Self { shared: Arc::new(Shared { maker, pool, crashes }), preparing: Mutex::default() }
    }
}

impl Provider for Acp {
    fn name(&self) -> &str {
        &self.shared.maker.preset.name
    }

    fn capabilities(&self) -> Capabilities {
        let preset = &self.shared.maker.preset;
        Capabilities {
            resume: true,
            steer: false,
            approvals: true,
            thinking: preset.thinking,
            mcp: true,
            skills: preset.skills.is_some(),
        }
    }

    fn inspect(&self) -> InspectFuture {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let maker = &shared.maker;
            let Some(program) = maker.program.locate() else { return Inspection::Missing { advice: maker.missing() } };
            // Not every agent knows the question; some start to serve instead.
            let version = tokio::time::timeout(INSPECT, agent::version(&maker.program, &program)).await;
            Inspection::Ready { version: version.ok().flatten(), program: Some(program) }
        })
    }

    fn prepare(&self, coming: Place) {
        if self.shared.crashes.check(&coming.agent.id).is_err() {
            return;
        }
        let Some(place) = self.shared.pool.spare(turn::key(&coming)) else { return };
        let shared = Arc::clone(&self.shared);
        let mut preparing = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        while preparing.try_join_next().is_some() {}
        preparing.spawn(async move {
            let error = match shared.maker.start(&coming).await {
                Ok(mut agent) => match agent.initialize().await {
                    Ok(()) => return place.keep(agent).await,
                    Err(error) => shared.maker.not_opened(agent, &error).await.0,
                },
                Err(error) => error,
            };
            shared.crashes.failed(&coming.agent.id, &error);
            // Whoever asks in earnest is told.
            tracing::debug!(error = error.message, "an agent could not be made ready ahead");
        });
    }

    fn close(&self) -> CloseFuture {
        let shared = Arc::clone(&self.shared);
        let mut preparing = std::mem::take(&mut *self.preparing.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move {
            preparing.shutdown().await;
            shared.pool.close().await;
        })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.shared), request, channel))
    }
}

//! Claude Code, driven by its command line program `claude` over pipes: JSON lines both ways, with a control channel
//! for permissions, hooks, interrupts and the host tools.
//!
//! One process is one conversation. It is kept between turns (`pool.rs` one folder up), because a warm turn costs a
//! tenth of a cold one, and it goes on from its own session when it had to be ended meanwhile. Start reading at `turn`;
//! what the program says is understood in `parse`, what it asks is answered in `asks`.

mod asks;
mod blocks;
mod command;
mod control;
mod conversation;
mod exchange;
mod failure;
mod folders;
mod inspect;
mod launch;
mod meter;
mod parse;
mod process;
#[cfg(test)]
mod tests;
mod turn;
mod wire;

use crate::{
    Capabilities, CloseFuture, InspectFuture, Place, Provider, TurnChannel, TurnFuture, TurnRequest,
    crashes::Crashes,
    pool::{self, Limits, Pool},
    program::Program,
};
use domain::{agent::AgentSpec, ids::AgentId, run::RunError};
use launch::Launcher;
use process::Process;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::JoinSet;
use turn::Key;

#[derive(Clone, Debug)]
pub struct Config {
    pub program: Program,
    /// How many processes there may be at once.
    pub pool: usize,
    /// How long one is kept for the next turn of its conversation.
    pub idle: Duration,
    /// How many are made ready before they are asked anything.
    pub spares: usize,
}

pub struct ClaudeCode {
    shared: Arc<Shared>,
    /// Spares that are being made ready.
    preparing: Mutex<JoinSet<()>>,
}

struct Shared {
    program: Program,
    launcher: Arc<dyn Launcher>,
    pool: Pool<Key, Process>,
    crashes: Crashes<AgentId>,
}

impl ClaudeCode {
    pub fn new(config: Config) -> Self {
        let launcher = Arc::new(config.program.supervisor.clone());
        Self::with(config, launcher)
    }

    fn with(config: Config, launcher: Arc<dyn Launcher>) -> Self {
        let Config { program, pool, idle, spares } = config;
        let pool = Pool::new(Limits { places: pool, idle, spares });
        let shared = Shared { program, launcher, pool, crashes: Crashes::new("Claude Code") };
        Self { shared: Arc::new(shared), preparing: Mutex::new(JoinSet::new()) }
    }

    fn preparing(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.preparing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ClaudeCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shared { program, pool, .. } = &*self.shared;
        f.debug_struct("ClaudeCode").field("program", program).field("pool", pool).finish_non_exhaustive()
    }
}

impl Shared {
    fn locate(&self) -> Result<PathBuf, RunError> {
        self.program.locate().ok_or_else(|| RunError::new("program_missing", inspect::advice(&self.program)))
    }
}

impl Provider for ClaudeCode {
    fn name(&self) -> &str {
        "claude_code"
    }

    /// It cannot be steered: a message in the middle of an answer waits for its end, but one in the middle of a tool
    /// call is folded into it, and which of the two it will be cannot be known beforehand.
    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: true, steer: false, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), String> {
        match &spec.model {
            Some(model) if model.trim().is_empty() || model.chars().any(char::is_control) => {
                Err("model: give the name of a model, such as `sonnet`, or leave it out for the default".into())
            }
            _ => Ok(()),
        }
    }

    fn inspect(&self) -> InspectFuture {
        let program = self.shared.program.clone();
        Box::pin(inspect::inspect(program))
    }

    fn prepare(&self, coming: Place) {
        let mut preparing = self.preparing();
        while preparing.try_join_next().is_some() {}
        if self.shared.crashes.check(&coming.agent.id).is_err() {
            return;
        }
        if let Some(place) = self.shared.pool.spare(turn::key(&coming)) {
            preparing.spawn(make_ready(Arc::clone(&self.shared), coming, place));
        }
    }

    fn close(&self) -> CloseFuture {
        let mut preparing = std::mem::take(&mut *self.preparing());
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            preparing.shutdown().await;
            shared.pool.close().await;
        })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        Box::pin(turn::turn(Arc::clone(&self.shared), request, channel))
    }
}

/// A hint that comes to nothing is no failure: the turn will say what is wrong.
async fn make_ready(shared: Arc<Shared>, coming: Place, place: pool::Place<Key, Process>) {
    let Ok(program) = shared.locate() else { return };
    let fixed = command::Fixed::of(&coming, program);
    let model = coming.agent.spec.model.as_deref();
    let error = match Process::start(&*shared.launcher, &shared.program, fixed, model, None).await {
        Ok(mut process) => match process.conversation.ready().await {
            Ok(()) => return place.keep(process).await,
            Err(broken) => process.failed(broken).await.0,
        },
        Err(error) => error,
    };
    shared.crashes.failed(&coming.agent.id, &error);
    tracing::debug!(error = error.message, "a spare Claude Code did not get ready");
}

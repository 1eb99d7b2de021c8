//! Codex, run through `codex app-server`: JSON-RPC over the pipes of a program that serves many conversations at once.
//!
//! `pool` chooses the program for a turn, `instance` is a running program, `turn` runs one turn on it, and `parse` and
//! `requests` interpret its messages. Nothing here knows about rooms or journals. Start with `turn`.

mod command;
mod home;
mod incoming;
mod instance;
mod leftovers;
mod open_thread;
mod parse;
mod pool;
mod requests;
mod stop;
#[cfg(test)]
mod tests;
mod thread_router;
mod thread_settings;
mod turn;

use crate::{
    AgentWorkspace, Capabilities, CloseFuture, InspectFuture, Inspection, ModelApiUse, Provider, TurnChannel, TurnEnd,
    TurnFuture, TurnOutcome, TurnRequest, program::AgentProgram,
};
use domain::{agent::Thinking, provider_settings::WorkspaceProviders, run::RunError};
use instance::INSTALL_ADVICE;
use pool::CodexPool;
use std::time::Duration;

/// How long a program may take to print its version.
const INSPECT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct CodexConfig {
    pub program: AgentProgram,
    /// The maximum number of running programs.
    pub instances: usize,
    /// How long an unused program is kept.
    pub idle: Duration,
}

#[derive(Debug)]
pub struct CodexProvider {
    program: AgentProgram,
    pool: CodexPool,
}

impl CodexProvider {
    pub fn new(config: CodexConfig) -> Self {
        let CodexConfig { program, instances, idle } = config;
        Self { pool: CodexPool::new(program.clone(), instances, idle), program }
    }
}

impl Provider for CodexProvider {
    fn name(&self) -> &str {
        "codex"
    }

    fn label(&self) -> &str {
        "Codex"
    }

    fn efforts(&self) -> &'static [Thinking] {
        &[Thinking::Low, Thinking::Medium, Thinking::High]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: true, steer: true, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn lends_login(&self, settings: &WorkspaceProviders) -> bool {
        let program = self.program.without_own_access(&command::WIRES, settings);
        program.lends_file(&[home::SHARED_LOGIN]) || program.lends_variable(&command::PASSED)
    }

    fn model_apis(&self) -> Vec<ModelApiUse> {
        self.program.model_apis(&command::WIRES)
    }

    fn runs_program(&self) -> bool {
        true
    }

    fn inspect(&self) -> InspectFuture {
        let program = self.program.clone();
        Box::pin(async move {
            let Some(found) = program.locate() else {
                return Inspection::Missing { advice: INSTALL_ADVICE.to_owned() };
            };
            let version = tokio::time::timeout(INSPECT, async {
                let mut child = program.launcher.launch(command::version(&program, &found)).await.ok()?;
                let line = child.stdout.next().await.ok().flatten()?;
                // `codex-cli 0.166.0`
                Some(line.split_whitespace().last()?.to_owned())
            });
            Inspection::Ready { version: version.await.ok().flatten(), program: Some(found) }
        })
    }

    fn prepare(&self, workspace: AgentWorkspace) {
        self.pool.warm(&home::CodexHome::of(&workspace));
    }

    fn close(&self) -> CloseFuture {
        let pool = self.pool.clone();
        Box::pin(async move { pool.close().await })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        let pool = self.pool.clone();
        Box::pin(async move {
            // The turn runs in a task of the pool: if this future is dropped, the turn must still be interrupted and
            // its processes stopped.
            let abandoned = pool.closing().child_token();
            let dropped = abandoned.clone().drop_guard();
            let task = pool.tasks().spawn(turn::run_turn(pool.clone(), request, channel, abandoned));
            let outcome = task.await;
            dropped.disarm();
            outcome.unwrap_or_else(|error| {
                tracing::error!(%error, "a Codex turn task failed");
                TurnOutcome::from_end(TurnEnd::Failed(RunError::new(
                    "internal",
                    "Internal error in Greenroom during this turn.",
                )))
            })
        })
    }
}

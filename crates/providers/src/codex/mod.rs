//! Codex, through `codex app-server`: JSON-RPC on the pipes of a program that serves many conversations at once.
//!
//! `pool` says which program a turn gets, `instance` is one that runs, `turn` drives one turn on it, `parse` and `ask`
//! know what its messages mean. Nothing here knows of rooms or journals.

mod ask;
mod command;
mod desk;
mod hear;
mod home;
mod instance;
mod launch;
mod leftovers;
mod open;
mod parse;
mod pool;
mod room;
mod settings;
mod stop;
#[cfg(test)]
mod tests;
mod turn;

use crate::{
    Capabilities, CloseFuture, InspectFuture, Inspection, Place, Provider, TurnChannel, TurnEnd, TurnFuture,
    TurnOutcome, TurnRequest, program::Program,
};
use domain::run::RunError;
use launch::{ADVICE, Launch};
use pool::Pool;
use std::time::Duration;

/// How long a program may take to say its version.
const INSPECT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Config {
    pub program: Program,
    /// How many programs may run at once.
    pub instances: usize,
    /// How long one is kept that nobody uses.
    pub idle: Duration,
}

#[derive(Debug)]
pub struct Codex {
    program: Program,
    pool: Pool,
}

impl Codex {
    pub fn new(config: Config) -> Self {
        Self::with(Box::new(config.program.clone()), config)
    }

    fn with(launch: Box<dyn Launch>, Config { program, instances, idle }: Config) -> Self {
        Self { program, pool: Pool::new(launch, instances, idle) }
    }
}

impl Provider for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: true, steer: true, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn inspect(&self) -> InspectFuture {
        let program = self.program.clone();
        Box::pin(async move {
            let Some(found) = program.locate() else { return Inspection::Missing { advice: ADVICE.to_owned() } };
            let version = tokio::time::timeout(INSPECT, async {
                let mut child = program.supervisor.start(command::version(&program, &found)).await.ok()?;
                let line = child.stdout.next().await.ok().flatten()?;
                // `codex-cli 0.166.0`
                Some(line.split_whitespace().last()?.to_owned())
            });
            Inspection::Ready { version: version.await.ok().flatten(), program: Some(found) }
        })
    }

    fn prepare(&self, coming: Place) {
        self.pool.warm(&coming.home);
    }

    fn close(&self) -> CloseFuture {
        let pool = self.pool.clone();
        Box::pin(async move { pool.close().await })
    }

    fn turn(&self, request: TurnRequest, channel: TurnChannel) -> TurnFuture {
        let pool = self.pool.clone();
        Box::pin(async move {
            // The turn runs in a task of the pool's and not in this future: dropped, this future can only say that
            // nobody waits any more, and the turn still has to be interrupted and what it started to be stopped.
            let given_up = pool.closing().child_token();
            let dropped = given_up.clone().drop_guard();
            let driven = pool.tasks().spawn(turn::drive(pool.clone(), request, channel, given_up));
            let outcome = driven.await;
            dropped.disarm();
            outcome.unwrap_or_else(|error| {
                tracing::error!(%error, "a turn of Codex broke off");
                TurnOutcome::of(TurnEnd::Failed(RunError::new("internal", "Greenroom itself failed in this turn.")))
            })
        })
    }
}

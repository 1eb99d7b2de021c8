//! Claude Code, driven through its command-line program `claude` over pipes: JSON lines in both directions, with a
//! control channel for permissions, hooks, interrupts and the host tools.
//!
//! Each process serves one conversation. It is kept between turns (`pool.rs` in the parent folder), because a warm turn
//! takes a tenth of the time of a cold one; if it was stopped in between, a new process resumes the session. Start with
//! `turn`; `parse` parses the program's output, and `requests` answers its requests.

mod blocks;
mod command;
mod control;
mod conversation;
mod exchange;
mod failure;
mod folders;
mod inspect;
mod meter;
mod parse;
mod process;
mod requests;
mod steering;
#[cfg(test)]
mod tests;
mod turn;
mod wire;

use crate::{
    AgentWorkspace, Capabilities, CloseFuture, InspectFuture, ModelApiUse, Provider, RefusedSetting, TurnChannel,
    TurnFuture, TurnRequest,
    crash_breaker::CrashBreaker,
    pool::{self, ConversationKey, PoolLimits, ProcessPool},
    program::AgentProgram,
};
use domain::{
    agent::{AgentSpec, Thinking},
    ids::AgentId,
    provider_settings::WorkspaceProviders,
    run::RunError,
};
use process::ClaudeProcess;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::JoinSet;

#[derive(Clone, Debug)]
pub struct ClaudeCodeConfig {
    pub program: AgentProgram,
    /// The maximum number of processes.
    pub pool: usize,
    /// How long an idle process is kept for the next turn of its conversation.
    pub idle: Duration,
    /// The maximum number of processes started before they are needed.
    pub spares: usize,
}

pub struct ClaudeCodeProvider {
    shared: Arc<ClaudeShared>,
    /// Spare processes that are starting.
    preparing: Mutex<JoinSet<()>>,
}

struct ClaudeShared {
    program: AgentProgram,
    pool: ProcessPool<ConversationKey, ClaudeProcess>,
    crash_breaker: CrashBreaker<AgentId>,
}

impl ClaudeCodeProvider {
    pub fn new(config: ClaudeCodeConfig) -> Self {
        let ClaudeCodeConfig { program, pool, idle, spares } = config;
        let pool = ProcessPool::new(PoolLimits { slots: pool, idle_timeout: idle, spares });
        let shared = ClaudeShared { program, pool, crash_breaker: CrashBreaker::new("Claude Code") };
        Self { shared: Arc::new(shared), preparing: Mutex::new(JoinSet::new()) }
    }

    fn preparing(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.preparing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ClaudeCodeProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ClaudeShared { program, pool, .. } = &*self.shared;
        f.debug_struct("ClaudeCode").field("program", program).field("pool", pool).finish_non_exhaustive()
    }
}

impl ClaudeShared {
    fn locate(&self) -> Result<PathBuf, RunError> {
        self.program.locate().ok_or_else(|| RunError::new("program_missing", inspect::advice(&self.program)))
    }
}

impl Provider for ClaudeCodeProvider {
    fn name(&self) -> &str {
        "claude_code"
    }

    fn label(&self) -> &str {
        "Claude Code"
    }

    fn efforts(&self) -> &'static [Thinking] {
        &[Thinking::Low, Thinking::Medium, Thinking::High]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { resume: true, steer: true, approvals: true, thinking: true, mcp: true, skills: true }
    }

    fn check(&self, spec: &AgentSpec) -> Result<(), RefusedSetting> {
        match &spec.model {
            Some(model) if model.trim().is_empty() || model.chars().any(char::is_control) => {
                Err("model: give the name of a model, such as `sonnet`, or leave it out for the default".into())
            }
            _ => Ok(()),
        }
    }

    fn lends_login(&self, settings: &WorkspaceProviders) -> bool {
        let program = &self.shared.program.without_own_access(&command::WIRES, settings);
        folders::operator_login(program).is_some() || program.lends_variable(&command::login_variables(program))
    }

    fn model_apis(&self) -> Vec<ModelApiUse> {
        self.shared.program.model_apis(&command::WIRES)
    }

    fn runs_program(&self) -> bool {
        true
    }

    fn inspect(&self) -> InspectFuture {
        let program = self.shared.program.clone();
        Box::pin(inspect::inspect(program))
    }

    fn prepare(&self, workspace: AgentWorkspace) {
        let mut preparing = self.preparing();
        while preparing.try_join_next().is_some() {}
        if self.shared.crash_breaker.check(&workspace.agent.id).is_err() {
            return;
        }
        if let Some(slot) = self.shared.pool.acquire_spare(ConversationKey::of(&workspace)) {
            preparing.spawn(prepare_spare(Arc::clone(&self.shared), workspace, slot));
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

/// Starts a spare process. Failures are only logged; the turn itself will report them.
async fn prepare_spare(
    shared: Arc<ClaudeShared>,
    workspace: AgentWorkspace,
    slot: pool::PoolSlot<ConversationKey, ClaudeProcess>,
) {
    let Ok(program) = shared.locate() else { return };
    let fixed = command::ClaudeLaunchSettings::of(&workspace, program);
    let model = workspace.agent.spec.model.as_deref();
    let error = match ClaudeProcess::start(&shared.program, fixed, model, None).await {
        Ok(mut process) => match process.conversation.wait_until_ready().await {
            Ok(()) => return slot.put_back(process).await,
            Err(broken) => process.into_error(broken).await.0,
        },
        Err(error) => error,
    };
    shared.crash_breaker.record_failure(&workspace.agent.id, &error);
    tracing::debug!(error = error.message, "could not start a spare Claude Code process");
}
